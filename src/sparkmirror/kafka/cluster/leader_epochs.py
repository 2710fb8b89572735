"""OffsetForLeaderEpoch: where a leader epoch ends in a leader's log.

KIP-101, KIP-320. Before Kafka 2.1 the request is meant for brokers: with an authorizer it needs CLUSTER_ACTION, and a
client without that right gets no answer. Before 2.0 the answer does not name its epoch (KIP-279): this module takes the
epoch for the requested one, and the offset may be later than the offset at which two histories diverge.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from kafka.protocol.consumer import OffsetForLeaderEpochRequest

from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.only_asked import only_asked
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.rpc import UnsupportedBroker
from sparkmirror.kafka.wire.topic_partition import TopicPartition

CONSUMER = -1


class EpochEnd(NamedTuple):
    """Newest leader epoch up to the requested one, and its end offset.

    The end offset is the offset after the epoch's last record. Both are -1 if the leader doesn't know; `error` is
    Kafka's code.
    """

    epoch: int
    end: int
    error: int


_UNKNOWN = EpochEnd(-1, -1, 0)


class EpochStart(NamedTuple):
    """A leader epoch, and the offset of the first record that a log has of it."""

    epoch: int
    start: int


def epoch_ends(
    client: ClusterClient,
    leader: int,
    epochs: Mapping[TopicPartition, int],
    present: Mapping[TopicPartition, int] = MappingProxyType({}),
) -> dict[TopicPartition, EpochEnd]:
    """Ask `leader` where one epoch ends in each partition.

    A leader that does not answer clients counts as one that doesn't know. One whose own leader epoch isn't the
    `present` one refuses.
    """
    by_topic: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for (topic, partition), epoch in epochs.items():
        by_topic[topic].append((partition, epoch))
    kind = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    request = OffsetForLeaderEpochRequest(
        replica_id=CONSUMER,
        topics=[
            kind(
                topic=topic,
                partitions=[
                    kind.OffsetForLeaderPartition(
                        partition=partition,
                        current_leader_epoch=present.get((topic, partition), -1),
                        leader_epoch=epoch,
                    )
                    for partition, epoch in asked
                ],
            )
            for topic, asked in by_topic.items()
        ],
    )
    try:
        answer = client.ask(leader, request)
    except UnsupportedBroker:
        return dict.fromkeys(epochs, _UNKNOWN)
    told = {(topic.topic, part.partition): part for topic in answer.topics for part in topic.partitions}
    asked = only_asked(told, epochs, "OffsetForLeaderEpoch")
    return {partition: _end(part, epochs[partition]) for partition, part in asked.items()}


def _end(part: Any, asked: int) -> EpochEnd:
    if part.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        return _UNKNOWN
    names_none = part.leader_epoch < 0 <= part.end_offset
    return EpochEnd(asked if names_none else part.leader_epoch, part.end_offset, part.error_code)
