"""Clients' security settings that MirrorMaker 2 has and sparkmirror lacks.

Clients connect to a cluster in two ways at most: as the admin clients do, and as the client that fetches or produces
does. The run stops if a key asks for another way for another client, which MirrorMaker 2 would obey (`mm2.md` section
1.6): data must not travel otherwise than the file says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from sparkmirror.config.entries import Entry
from sparkmirror.config.model import ClusterConfig
from sparkmirror.config.scopes import Level, ScopedKey
from sparkmirror.config.settings import SASL_SETTINGS, SECURITY_PROTOCOL, SSL_SETTINGS
from sparkmirror.errors import ConfigError

HONOURED = {setting.name: setting for setting in (SECURITY_PROTOCOL, *SSL_SETTINGS, *SASL_SETTINGS)}


def meant_clusters(key: ScopedKey, flows: Iterable[tuple[str, str]]) -> set[str]:
    """Return the running flows' clusters with clients that the key reaches."""
    pairs = [pair for pair in flows if key.level is not Level.FLOW or key.prefix == "->".join(pair) + "."]
    if key.level is Level.CLUSTER:
        return {key.prefix.removesuffix(".")}
    sources, targets = {source for source, _ in pairs}, {target for _, target in pairs}
    if key.role.startswith("source."):
        return sources
    if key.role.startswith("target.") or key.role == "producer.override.":
        return targets
    return sources | targets


def concerns(name: str, cluster: ClusterConfig | None) -> bool:
    """True if a TLS or SASL setting can have an effect for a cluster."""
    if cluster is None:
        return False
    return cluster.signs_in if name.startswith("sasl.") else cluster.encrypted


def is_exception(key: ScopedKey) -> bool:
    """True if a security setting is only for a single client or a single flow.

    Only keys in places that MirrorMaker 2 reads count.
    """
    # At the top MirrorMaker 2 drops keys with a role, and applies keys without a role to all clusters.
    return key.name in HONOURED and (key.level is Level.FLOW or (key.level is Level.CLUSTER and key.role != ""))


def refused_exceptions(
    keys: Iterable[ScopedKey],
    looked_up: Collection[str],
    flows: Collection[tuple[str, str]],
    spoken: Mapping[str, ClusterConfig],
    properties: Mapping[str, Entry],
) -> Iterator[ConfigError]:
    """Yield an error for each key that would make a client connect unlike the others."""
    for key in keys:
        if not is_exception(key) or key.entry.key in looked_up:
            continue
        setting = HONOURED[key.name]
        for alias in sorted(meant_clusters(key, flows)):
            if setting is not SECURITY_PROTOCOL and not concerns(setting.name, spoken.get(alias)):
                continue
            stated = properties.get(f"{alias}.{key.name}", properties.get(key.name))
            try:
                wanted = setting.kind.parse(key.entry.value)
                holds = setting.kind.parse(stated.value) if stated else setting.default
            except ValueError as error:
                yield key.entry.error(str(error))
                break
            if wanted != holds:
                yield key.entry.error(f"there is no such client here: write {alias}.{key.name}")
                break
