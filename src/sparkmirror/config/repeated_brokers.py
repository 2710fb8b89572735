"""Brokers written again for a client or a flow, or with a scheme in front.

Tried with MirrorMaker 2 4.3.1: a client's brokers count behind its cluster's alias, and behind a flow if the role names
a cluster's client; in all other places the cluster's own brokers win (`mm2.md` section 1.6).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sparkmirror.config.lookup import Lookup
from sparkmirror.config.model import ClusterConfig
from sparkmirror.config.scopes import Level, ScopedKey
from sparkmirror.config.security import meant_clusters
from sparkmirror.config.settings import SECURITY_PROTOCOL, SOURCE_SERVERS
from sparkmirror.values import schemes

_CLIENTS = ("consumer.", "producer.", "admin.")
_OBEYED = {
    Level.TOP: (),
    Level.CLUSTER: _CLIENTS,
    Level.FLOW: ("producer.override.", *(end + role for end in ("source.", "target.") for role in _CLIENTS)),
}
"""Roles, by level, behind which MirrorMaker 2 would go to other brokers."""


def check_repeated(
    lookup: Lookup, keys: Iterable[ScopedKey], flows: Iterable[tuple[str, str]], spoken: Mapping[str, ClusterConfig]
) -> None:
    """Check brokers that are written again for a client or a flow.

    The same brokers pass. Other brokers are a mistake in places that MirrorMaker 2 obeys, and a warning elsewhere.
    """
    pairs = tuple(flows)
    for key in keys:
        if key.name != SOURCE_SERVERS.name or not (key.role or key.level is Level.FLOW):
            continue
        lookup.looked_up.add(key.entry.key)
        clusters = [spoken[alias] for alias in sorted(meant_clusters(key, pairs)) if alias in spoken]
        given = lookup.parsed(SOURCE_SERVERS, key.entry)
        if not clusters or not isinstance(given, tuple):
            continue
        if all(set(given) == set(cluster.bootstrap_servers) for cluster in clusters):
            continue
        instead = " or ".join(f"{cluster.alias}.bootstrap.servers" for cluster in clusters)
        if key.role in _OBEYED[key.level]:
            lookup.mistakes.add(
                key.entry.error(f"names other brokers than {instead}, and one client can't have its own: take one out")
            )
        else:
            lookup.warn(key.entry.note(f"has no effect in this place, nor in MirrorMaker 2: {instead} counts"))


def check_scheme(lookup: Lookup, cluster: ClusterConfig) -> None:
    """Warn if `scheme://` before the brokers contradicts `security.protocol`.

    `security.protocol` alone counts.
    """
    own = f"{cluster.alias}.{SOURCE_SERVERS.name}"
    entry = lookup.properties.get(own) or lookup.properties.get(SOURCE_SERVERS.name)
    if entry is None or lookup.references(entry):
        return
    for scheme in schemes(entry.value):
        if scheme and scheme.upper() != cluster.security_protocol:
            wanted = f"; write {cluster.alias}.{SECURITY_PROTOCOL.name} = {scheme.upper()} if that is meant"
            known = scheme.upper() in getattr(SECURITY_PROTOCOL.kind, "options", ())
            lookup.warn(
                entry.note(
                    f"{scheme}:// is not looked at, nor by Kafka: {cluster.security_protocol} is spoken"
                    + wanted * known
                )
            )
