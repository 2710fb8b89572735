"""Dry runs of CreateTopics: a cluster's answers, without creating topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kafka.protocol.admin import CreateTopicsRequest

from sparkmirror.cluster.admin import NewTopicSpec
from sparkmirror.cluster.client import ClusterClient
from sparkmirror.wire.error_codes import ErrorCode

TOPICS_PER_REQUEST = 300


def try_creation(client: ClusterClient, specs: Iterable[NewTopicSpec]) -> dict[str, tuple[int, str]]:
    """Return Kafka's error code and message for each topic, without creating any.

    Code 0: the cluster would create the topic.
    """
    wanted = list(specs)
    answers: dict[str, tuple[int, str]] = {}
    for start in range(0, len(wanted), TOPICS_PER_REQUEST):
        chunk = wanted[start : start + TOPICS_PER_REQUEST]
        for answer in _ask(client, chunk):
            answers |= {topic.name: (topic.error_code, topic.error_message or "") for topic in answer.topics}
            if all(topic.error_code != ErrorCode.NOT_CONTROLLER for topic in answer.topics):
                break
    return answers


def _ask(client: ClusterClient, specs: list[NewTopicSpec]) -> Iterator[Any]:
    """Ask one broker after another: before KRaft only the controller creates topics."""
    client.metadata([])
    for node in client.brokers:
        yield client.ask(node, _request(specs, client.config.request_timeout_ms))


def _request(specs: list[NewTopicSpec], timeout_ms: int) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.CreatableTopic
    return CreateTopicsRequest(
        topics=[
            topic(
                name=spec.name,
                num_partitions=spec.partitions,
                replication_factor=spec.replication_factor,
                assignments=[],
                configs=[
                    topic.CreatableTopicConfig(name=name, value=value) for name, value in sorted(spec.configs.items())
                ],
            )
            for spec in specs
        ],
        timeout_ms=timeout_ms,
        validate_only=True,
    )
