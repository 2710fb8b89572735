"""Requests to a cluster's controller: new topics, and more partitions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka.protocol.admin import CreatePartitionsRequest, CreateTopicsRequest

from sparkmirror.chunks import chunks
from sparkmirror.cluster.client import TOPICS_PER_REQUEST, ClusterClient
from sparkmirror.cluster.refusal_lines import refusal
from sparkmirror.wire.error_codes import ErrorCode
from sparkmirror.wire.rpc import BrokerUnreachable


@dataclass(frozen=True, slots=True)
class NewTopicSpec:
    """A topic to create; -1 stands for the broker's default."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)


def create_topics(
    client: ClusterClient, specs: Iterable[NewTopicSpec], *, dry: bool = False
) -> dict[str, tuple[int, str]]:
    """Create topics; return for each name Kafka's error code and the broker's words.

    Code 0: created. A `dry` run only returns the answers, without creating a topic.
    """
    wanted = list(specs)
    outcomes: dict[str, tuple[int, str]] = {}
    for chunk in chunks(wanted, TOPICS_PER_REQUEST):
        answer = _ask_controller(client, functools.partial(_creation, client, chunk, dry), "topics")
        outcomes |= {topic.name: (topic.error_code, topic.error_message or "") for topic in answer.topics}
    return outcomes


def grow_topics(client: ClusterClient, counts: Mapping[str, int]) -> dict[str, str | None]:
    """Grow topics to these total counts of partitions.

    Return for each topic None if it has as many partitions now, or more; else one line with the failure.
    """
    outcomes: dict[str, str | None] = {}
    for chunk in chunks(sorted(counts), TOPICS_PER_REQUEST):
        grown = {name: counts[name] for name in chunk}
        answer = _ask_controller(client, functools.partial(_growth, client, grown), "results")
        for result in answer.results:
            fine = result.error_code in (ErrorCode.NONE, ErrorCode.INVALID_PARTITIONS)
            outcomes[result.name] = None if fine else refusal(result.error_code, result.error_message)
    return outcomes


def _ask_controller(client: ClusterClient, request: Callable[[], Any], parts: str) -> Any:
    """Ask the controller, and once more if the controller has moved.

    `parts` is the answer's field with an error code for each topic. Before KRaft only the controller creates topics;
    with KRaft each broker asks the controller.
    """
    for _ in range(2):
        client.metadata([])
        if client.controller < 0:
            break
        answer = client.ask(client.controller, request())
        if all(part.error_code != ErrorCode.NOT_CONTROLLER for part in getattr(answer, parts)):
            return answer
    raise BrokerUnreachable(f"cluster {client.config.alias} has no controller now")


def _creation(client: ClusterClient, specs: Iterable[NewTopicSpec], dry: bool) -> Any:
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
        timeout_ms=client.config.request_timeout_ms,
        validate_only=dry,
    )


def _growth(client: ClusterClient, counts: Mapping[str, int]) -> Any:
    return CreatePartitionsRequest(
        topics=[
            CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=count, assignments=None)
            for name, count in counts.items()
        ],
        timeout_ms=client.config.request_timeout_ms,
        validate_only=False,
    )
