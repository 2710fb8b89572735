"""Fences as both brokers and words tell: who may write, and who is denied."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sparkmirror.kafka.cluster.acls import ALL, ANYWHERE, DENY, EVERYBODY, READ, WRITE, Acl, AclResource, read_acls
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.write_fence import readers, writers
from sparkmirror.migrate.observation import FenceSeen
from sparkmirror.mirror.sync.migration_words import fence_key

NO_AUTHORIZER = "the cluster keeps no ACLs, since its brokers have no authorizer: use fence: hook or fence: none"


def read_by_broker(client: ClusterClient) -> list[set[Acl]]:
    """Ask every broker for its ACLs on topics and groups.

    Raises `SecurityDisabled`, and `ConnectionError`s: a broker that doesn't tell may still let producers write.
    """
    client.metadata([])
    return [read_acls(client, AclResource.TOPIC, AclResource.GROUP, broker=node) for node in sorted(client.brokers)]


def fence_seen(brokers: Sequence[set[Acl]], topic: str, own: str, words: Mapping[str, Sequence[Acl]]) -> FenceSeen:
    """Return a topic's fence from each broker's ACLs and the migration's own words."""
    everything = set().union(*brokers)
    holders = writers(everything, [topic], own)
    may = frozenset(holders.principals[topic])
    denials = [_denials(acls, AclResource.TOPIC, WRITE, topic) for acls in brokers]
    denied = [_held(who, may) for who in denials]
    added = {acl for acl in words.get(fence_key(AclResource.TOPIC, topic), ()) if acl in everything}
    impossible = ""
    if everybody := holders.everybody[topic]:
        impossible = f"`{everybody[0]}`: a denial of it would hold the mirror, too; grant the producers by name instead"
    elif not may:
        impossible = (
            "no ACL allows WRITE, so only super users can write, or all clients can: use fence: hook or fence: none"
        )
    return FenceSeen(
        writers=may,
        denied=frozenset.intersection(*denied) if denied else frozenset(),
        denied_somewhere=frozenset().union(*denied, *denials) - {EVERYBODY},
        impossible=impossible,
        shut=not may and not holders.everybody[topic],
        added=frozenset(acl.principal for acl in added),
    )


def group_readers(brokers: Sequence[set[Acl]], group: str, own: str) -> frozenset[str]:
    """Return the principals that can read as a group's members.

    Some broker lets them read, and a denial can hold them.
    """
    may = frozenset(readers(set().union(*brokers), [group], own).principals[group])
    denials = [_denials(acls, AclResource.GROUP, READ, group) for acls in brokers]
    denied = [_held(who, may) for who in denials]
    return may - (frozenset.intersection(*denied) if denied else frozenset())


def read_denied(brokers: Sequence[set[Acl]], group: str, words: Mapping[str, Sequence[Acl]]) -> bool:
    """Tell whether any broker has one of this migration's denials of a group."""
    added = words.get(fence_key(AclResource.GROUP, group), ())
    return any(acl in acls for acls in brokers for acl in added)


def _denials(acls: Iterable[Acl], resource: AclResource, operation: int, name: str) -> frozenset[str]:
    return frozenset(
        acl.principal
        for acl in acls
        if acl.resource is resource
        and acl.permission == DENY
        and acl.operation in (operation, ALL)
        and acl.host == ANYWHERE
        and acl.is_about(name)
    )


def _held(denied: frozenset[str], may: frozenset[str]) -> frozenset[str]:
    return may if EVERYBODY in denied else may & denied
