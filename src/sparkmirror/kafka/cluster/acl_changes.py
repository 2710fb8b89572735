"""Temporary ACLs: added, seen at every broker, and removed word for word.

An ACL that the operator had made before is never among the added ACLs, and stays. A broker answers DescribeAcls from
the broker's own state; so an ACL is in force everywhere once every broker shows the ACL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.acls import Acl, AclResource, create_acls, delete_acls, read_acls
from sparkmirror.kafka.cluster.client import ClusterClient


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAcls:
    """Each broker's own answer about some ACLs."""

    lacking: Mapping[int, tuple[Acl, ...]]
    """Missing ACLs by node id; empty for a broker that shows all."""
    silent: Mapping[int, str]
    """Brokers that did not answer, with the reason."""

    @property
    def everywhere(self) -> bool:
        """True if every broker in the cluster's metadata shows all the ACLs."""
        return bool(self.lacking) and not self.silent and not any(self.lacking.values())


def not_there(client: ClusterClient, wanted: Iterable[Acl]) -> tuple[Acl, ...]:
    """Return the ACLs that no broker shows, word for word, in order.

    A caller that may have to undo `add` after a crash writes the ACLs down first. Raises `SecurityDisabled`, and
    `ClusterUnreachable` if a broker doesn't answer: an operator's own ACL could seem to be missing.
    """
    acls = tuple(sorted(set(wanted)))
    if not acls:
        return ()
    shown = shown_by_brokers(client, acls)
    if shown.silent or not shown.lacking:
        node, reason = next(iter(shown.silent.items()), (-1, "it names no brokers"))
        raise ClusterUnreachable(
            f"cluster {client.config.alias}: broker {node} doesn't tell its ACLs ({reason}); nothing was changed"
        )
    return tuple(sorted(set.intersection(*map(set, shown.lacking.values()))))


def add(client: ClusterClient, acls: Sequence[Acl]) -> None:
    """Add all ACLs, or none.

    If the cluster refuses an ACL, the others are removed again. Raises `ClusterUnreachable`.
    """
    refused = _refusals(create_acls(client, acls))
    if refused:
        remove(client, [acl for acl in acls if acl not in refused])
        raise _failed(client, "adding", refused)


def remove(client: ClusterClient, acls: Sequence[Acl]) -> None:
    """Remove exactly these ACLs; a missing ACL is no error.

    Raises `ClusterUnreachable`.
    """
    refused = _refusals(delete_acls(client, acls))
    if refused:
        raise _failed(client, "removing", refused)


def shown_by_brokers(client: ClusterClient, acls: Iterable[Acl]) -> ShownAcls:
    """Ask every broker which of these ACLs it shows.

    Raises `SecurityDisabled`, and `ClusterUnreachable` if the principal may not read ACLs.
    """
    wanted = sorted(set(acls))
    kinds: tuple[AclResource, ...] = tuple(sorted({acl.resource for acl in wanted}))
    lacking: dict[int, tuple[Acl, ...]] = {}
    silent: dict[int, str] = {}
    client.metadata([])
    for node in sorted(client.brokers):
        try:
            there = read_acls(client, *kinds, broker=node)
        except ClusterUnreachable:
            raise
        except ConnectionError as error:
            silent[node] = " ".join(str(error).split())
            continue
        lacking[node] = tuple(acl for acl in wanted if acl not in there)
    return ShownAcls(lacking=lacking, silent=silent)


def _refusals(outcomes: Mapping[Acl, str | None]) -> dict[Acl, str]:
    return {acl: reason for acl, reason in outcomes.items() if reason is not None}


def _failed(client: ClusterClient, doing: str, refused: Mapping[Acl, str]) -> ClusterUnreachable:
    first, reason = next(iter(refused.items()))
    more = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
    return ClusterUnreachable(f"cluster {client.config.alias}: {doing} the ACL `{first}`{more} failed: {reason}")
