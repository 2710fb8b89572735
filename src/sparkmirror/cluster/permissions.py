"""What a cluster lets us do: asked, not tried (KIP-430)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafka.protocol.admin import DescribeClusterRequest, DescribeGroupsRequest
from kafka.protocol.metadata import MetadataRequest

from sparkmirror.cluster.client import TOPICS_PER_REQUEST, ClusterClient
from sparkmirror.cluster.coordinators import PASSING, Coordinators

OPERATIONS = {
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    7: "ALTER",
    8: "DESCRIBE",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
}
"""By Kafka's codes (`AclOperation`)."""

_GROUP_REFUSED = 30
_TOPIC_REFUSED = 29


def cluster_operations(client: ClusterClient) -> frozenset[str] | None:
    """What we may do with the cluster itself; None if the brokers can't say (before Kafka 2.8)."""
    try:
        answer = client.ask_any(lambda: DescribeClusterRequest(include_cluster_authorized_operations=True))
    except ConnectionError:
        return None
    return _named(answer, "cluster_authorized_operations")


def topic_operations(client: ClusterClient, topics: Iterable[str]) -> dict[str, frozenset[str]]:
    """What we may do with topics that are there; nothing for those that we may not even see."""
    wanted = sorted(set(topics))
    found: dict[str, frozenset[str]] = {}
    for start in range(0, len(wanted), TOPICS_PER_REQUEST):
        chunk = wanted[start : start + TOPICS_PER_REQUEST]
        answer = client.ask_any(lambda chunk=chunk: _metadata(chunk))  # type: ignore[misc]
        for topic in answer.topics:
            if topic.error_code == _TOPIC_REFUSED:
                found[topic.name] = frozenset()
            elif not topic.error_code and (operations := _named(topic, "topic_authorized_operations")) is not None:
                found[topic.name] = operations
    return found


def group_operations(client: ClusterClient, wanted: Iterable[str]) -> dict[str, frozenset[str]]:
    """What we may do with groups, also with those that are not there yet; without those of which brokers can't say."""
    found: dict[str, frozenset[str] | None] = {}

    def ask(broker: int, groups: Sequence[str]) -> dict[str, int]:
        request = DescribeGroupsRequest(groups=list(groups), include_authorized_operations=True)
        passing = {}
        for one in client.ask(broker, request).groups:
            if one.error_code in PASSING:
                passing[one.group_id] = one.error_code
            else:
                found[one.group_id] = None if one.error_code else _named(one, "authorized_operations")
                if one.error_code == _GROUP_REFUSED:
                    found[one.group_id] = frozenset()
        return passing

    lost = Coordinators(client).ask_each(list(wanted), ask, {}, "reading what we may do with groups")
    found |= {group: frozenset() for group, code in lost.items() if code == _GROUP_REFUSED}
    return {group: operations for group, operations in found.items() if operations is not None}


def _metadata(topics: list[str]) -> Any:
    return MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in topics],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )


def _named(answer: Any, field: str) -> frozenset[str] | None:
    """The operations by name; kafka-python calls the field differently in some of its messages."""
    codes = getattr(answer, "authorized_operations", None)
    codes = codes if codes is not None else getattr(answer, field, None)
    return None if codes is None else _known(codes, OPERATIONS)


def _known(codes: Iterable[int], names: Mapping[int, str]) -> frozenset[str]:
    return frozenset(names[int(code)] for code in codes if int(code) in names)
