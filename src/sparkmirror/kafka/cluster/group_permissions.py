"""Operations that brokers allow the principal on groups and cluster (KIP-430)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kafka.protocol.admin import DescribeClusterRequest, DescribeGroupsRequest

from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.coordinators import PASSING, Coordinators
from sparkmirror.kafka.cluster.permissions import operations_of
from sparkmirror.kafka.wire.error_codes import ErrorCode

_OF_MISSING_GROUPS = 5
"""Newest DescribeGroups version with the operations on missing groups.

From version 6 on a missing group is an error (KIP-1043), and a group with another type than `classic` as well.
"""


def cluster_operations(client: ClusterClient) -> frozenset[str] | None:
    """Read the allowed operations on the cluster; None before Kafka 2.8."""
    try:
        answer = client.ask_any(lambda: DescribeClusterRequest(include_cluster_authorized_operations=True))
    except ConnectionError:
        return None
    return operations_of(answer, "cluster_authorized_operations")


def group_operations(client: ClusterClient, wanted: Iterable[str]) -> dict[str, frozenset[str]]:
    """Read the allowed operations on groups, by group; a group need not exist yet.

    A group is left out if the brokers can't tell.
    """
    allowed: dict[str, frozenset[str] | None] = {}

    def ask(broker: int, groups: Sequence[str]) -> dict[str, int]:
        request = DescribeGroupsRequest(groups=list(groups), include_authorized_operations=True)
        passing = {}
        for entry in client.ask(broker, request, newest=_OF_MISSING_GROUPS).groups:
            if entry.error_code in PASSING:
                passing[entry.group_id] = entry.error_code
            else:
                allowed[entry.group_id] = None if entry.error_code else operations_of(entry, "authorized_operations")
                if entry.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
                    allowed[entry.group_id] = frozenset()
        return passing

    lost = Coordinators(client).ask_each(list(wanted), ask, {}, "reading sparkmirror's rights on groups")
    allowed |= {group: frozenset() for group, code in lost.items() if code == ErrorCode.GROUP_AUTHORIZATION_FAILED}
    return {group: operations for group, operations in allowed.items() if operations is not None}
