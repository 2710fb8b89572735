"""The client's own principals, found by trial.

Brokers may map a certificate or a token to any principal, and no request tells the principal. But a coordinator tells
the allowed operations on a group (KIP-430), even on a missing group: so an ACL on a missing group shows whether the
ACL's principal is the client's.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable

from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.acl_changes import add, remove, shown_by_brokers
from sparkmirror.kafka.cluster.acls import ALLOW, ANYWHERE, DENY, DESCRIBE, Acl, AclResource
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.group_permissions import group_operations

GROUPS = "mm2-sparkmirror-principal-"
"""Prefix of the missing groups' names."""
_PATIENCE_S, _PAUSE_S = 10.0, 0.05


def own_among(client: ClusterClient, candidates: Iterable[str]) -> frozenset[str]:
    """Return the candidates whose ACLs count for this client.

    An empty result proves that no ACL for a candidate touches the client, which has another principal or is a super
    user. For a moment the cluster has an ACL for each candidate, on a missing group. Raises `SecurityDisabled`, and
    `ClusterUnreachable`, also if the coordinators can't tell (before Kafka 2.3).
    """
    life = f"{GROUPS}{uuid.uuid4()}"
    names = {f"{life}-{number}": who for number, who in enumerate(sorted(set(candidates)), 1)}
    before = _may_describe(client, [life])[life]
    trial = tuple(
        Acl(
            resource=AclResource.GROUP,
            name=group,
            principal=who,
            host=ANYWHERE,
            operation=DESCRIBE,
            permission=DENY if before else ALLOW,
        )
        for group, who in names.items()
    )
    add(client, trial)
    try:
        _wait_until_shown(client, trial)
        after = _may_describe(client, list(names))
    finally:
        remove(client, trial)
    return frozenset(who for group, who in names.items() if after[group] != before)


def _may_describe(client: ClusterClient, groups: list[str]) -> dict[str, bool]:
    told = group_operations(client, groups)
    untold = next((group for group in groups if group not in told), None)
    if untold is not None:
        raise ClusterUnreachable(
            f"cluster {client.config.alias}: its brokers can't tell what this client may do with groups, so its "
            "principal can't be found out; sign in by SCRAM or PLAIN, where the name is known"
        )
    return {group: "DESCRIBE" in told[group] for group in groups}


def _wait_until_shown(client: ClusterClient, acls: tuple[Acl, ...]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while acls and not shown_by_brokers(client, acls).everywhere:
        if time.monotonic() > deadline:
            raise ClusterUnreachable(
                f"cluster {client.config.alias}: an ACL is not known to all brokers after {_PATIENCE_S:g} s"
            )
        time.sleep(_PAUSE_S)
