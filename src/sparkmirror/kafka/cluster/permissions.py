"""Operations that a cluster allows the principal, as the brokers report (KIP-430).

Nothing is tried out: the answers carry the authorized operations.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

from kafka.protocol.metadata import MetadataRequest

from sparkmirror.chunks import chunks
from sparkmirror.kafka.cluster.client import TOPICS_PER_REQUEST, ClusterClient
from sparkmirror.kafka.wire.error_codes import ErrorCode

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
"""Operation names, by Kafka's codes (`AclOperation`)."""
_NOT_TOLD = -(1 << 31)
"""Number when a broker was not asked for the operations, or is too old to tell."""


def topic_operations(client: ClusterClient, topics: Iterable[str]) -> dict[str, frozenset[str]]:
    """Read the allowed operations on existing topics, by topic.

    The set is empty for a topic that the principal may not even describe.
    """
    wanted = sorted(set(topics))
    allowed: dict[str, frozenset[str]] = {}
    for chunk in chunks(wanted, TOPICS_PER_REQUEST):
        answer = client.ask_any(functools.partial(_metadata, chunk))
        for topic in answer.topics:
            if topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                allowed[topic.name] = frozenset()
            elif (
                not topic.error_code and (operations := operations_of(topic, "topic_authorized_operations")) is not None
            ):
                allowed[topic.name] = operations
    return allowed


def _metadata(topics: Sequence[str]) -> Any:
    return MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in topics],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )


def operations_of(answer: Any, field: str) -> frozenset[str] | None:
    """Return an answer's operations by name; None if the answer has none.

    kafka-python names the field differently in some messages.
    """
    told = getattr(answer, "authorized_operations", None)
    bits = told if told is not None else getattr(answer, field, None)
    if bits is None or bits == _NOT_TOLD:
        return None
    return frozenset(name for code, name in OPERATIONS.items() if bits >> code & 1)
