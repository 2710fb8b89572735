"""Fences of ACLs on real clusters, set as a migration sets them."""

from __future__ import annotations

from collections.abc import Iterable

from sparkmirror.kafka.cluster.acl_changes import ShownAcls, add, not_there, shown_by_brokers
from sparkmirror.kafka.cluster.acls import Acl
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.write_fence import Principals, write_denials


def add_missing(client: ClusterClient, wanted: Iterable[Acl]) -> tuple[Acl, ...]:
    """Add the ACLs that are not there, and return them: `remove` undoes it."""
    missing = not_there(client, wanted)
    add(client, missing)
    return missing


def deny(client: ClusterClient, principals: Principals, own: str) -> tuple[Acl, ...]:
    """Deny the principals WRITE on the topics; return the ACLs that were added."""
    return add_missing(client, write_denials(principals, own))


def denied(client: ClusterClient, principals: Principals, own: str) -> ShownAcls:
    """Ask every broker whether it denies the principals WRITE on the topics."""
    return shown_by_brokers(client, write_denials(principals, own))
