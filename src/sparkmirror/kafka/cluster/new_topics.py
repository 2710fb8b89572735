"""Requests to a cluster's controller: new topics, and more partitions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka.protocol.admin import CreatePartitionsRequest, CreateTopicsRequest

from sparkmirror.chunks import chunks
from sparkmirror.kafka.cluster.client import TOPICS_PER_REQUEST, ClusterClient
from sparkmirror.kafka.cluster.mutation_quota import MutationAnswers
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.rpc import BrokerUnreachable


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
    return creation_answers(client, specs, dry=dry).topics


def creation_answers(client: ClusterClient, specs: Iterable[NewTopicSpec], *, dry: bool = False) -> MutationAnswers:
    """Create topics, as `create_topics` does, and return how long to wait, too."""
    answers = MutationAnswers({})
    for chunk in chunks(list(specs), TOPICS_PER_REQUEST):
        answer = _ask_controller(client, functools.partial(_creation, client, chunk, dry), "topics")
        topics = {topic.name: (topic.error_code, topic.error_message or "") for topic in answer.topics}
        answers = MutationAnswers(answers.topics | topics, _longest(answers, answer))
    return answers


def growth_answers(client: ClusterClient, counts: Mapping[str, int]) -> MutationAnswers:
    """Grow topics to these total partition counts.

    The code is 0 for a topic that has as many partitions now, or more.
    """
    answers = MutationAnswers({})
    for chunk in chunks(sorted(counts), TOPICS_PER_REQUEST):
        grown = {name: counts[name] for name in chunk}
        answer = _ask_controller(client, functools.partial(_growth, client, grown), "results")
        topics = {
            result.name: (ErrorCode.NONE, "")
            if result.error_code == ErrorCode.INVALID_PARTITIONS
            else (result.error_code, result.error_message or "")
            for result in answer.results
        }
        answers = MutationAnswers(answers.topics | topics, _longest(answers, answer))
    return answers


def _longest(answers: MutationAnswers, answer: Any) -> float:
    return max(answers.throttle_s, float(answer.throttle_time_ms) / 1000)


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
