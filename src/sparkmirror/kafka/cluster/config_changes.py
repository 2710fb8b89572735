"""Change topics' properties one by one: IncrementalAlterConfigs (KIP-339).

Any broker accepts the request.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka.protocol.admin import IncrementalAlterConfigsRequest

from sparkmirror.chunks import chunks
from sparkmirror.kafka.cluster.client import TOPICS_PER_REQUEST, ClusterClient
from sparkmirror.kafka.cluster.refusal_lines import ADVICE as _AT_CREATION
from sparkmirror.kafka.cluster.refusal_lines import refusal
from sparkmirror.kafka.wire.error_codes import ErrorCode

ADVICE: Mapping[int, str] = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "grant sparkmirror's principal ALTER_CONFIGS on it",
    ErrorCode.INVALID_CONFIG: _AT_CREATION[ErrorCode.INVALID_CONFIG],
    ErrorCode.POLICY_VIOLATION: "the cluster's alter.config.policy forbids it",
}
_TOPIC, _SET, _DELETE = 2, 0, 1


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """Changes to one topic's properties; a broker makes all of them or none."""

    topic: str
    values: dict[str, str] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    """Properties to reset to the broker's default."""

    def __bool__(self) -> bool:
        return bool(self.values or self.removed)

    def __str__(self) -> str:
        values = [f"{name}={value}" for name, value in self.values.items()]
        return ", ".join([*values, *(f"{name} back to its default" for name in self.removed)])


def alter_topic_configs(client: ClusterClient, changes: Sequence[ConfigChange]) -> dict[str, str | None]:
    """Make the changes; return for each topic None, or one line with the failure.

    Raises `ConnectionError`; `UnsupportedBroker` from brokers before Kafka 2.3.
    """
    outcomes: dict[str, str | None] = {}
    for chunk in chunks(changes, TOPICS_PER_REQUEST):
        answer = client.ask_any(functools.partial(_request, chunk))
        for result in answer.responses:
            code = result.error_code
            outcomes[result.resource_name] = refusal(code, result.error_message, ADVICE) if code else None
    return outcomes


def _request(changes: Sequence[ConfigChange]) -> Any:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    return IncrementalAlterConfigsRequest(
        resources=[
            resource(
                resource_type=_TOPIC,
                resource_name=change.topic,
                configs=[
                    *(_entry(name, _SET, value) for name, value in change.values.items()),
                    *(_entry(name, _DELETE, None) for name in change.removed),
                ],
            )
            for change in changes
        ],
        validate_only=False,
    )


def _entry(name: str, operation: int, value: str | None) -> Any:
    entry = IncrementalAlterConfigsRequest.AlterConfigsResource.AlterableConfig
    return entry(name=name, config_operation=operation, value=value)
