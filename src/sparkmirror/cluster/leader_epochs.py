"""OffsetForLeaderEpoch, asked of one leader: where in its log a leader epoch ends (KIP-101, KIP-320).

Before Kafka 2.1 it is the brokers' own question: where there is an authorizer it takes CLUSTER_ACTION, and who may not
ask gets no answer. Before 2.0 the answer does not name the epoch that it is about (KIP-279): it is taken for the one
asked for, and may be a later offset than the one where two histories part.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

from kafka.protocol.consumer import OffsetForLeaderEpochRequest

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.wire.rpc import UnsupportedBroker
from sparkmirror.wire.topic_partition import TopicPartition

CONSUMER = -1


class EpochEnd(NamedTuple):
    """The newest leader epoch that is not newer than the one asked for, and the offset after its last record.

    Both are -1 where the leader doesn't know; `error` is Kafka's code.
    """

    epoch: int
    end: int
    error: int


_UNKNOWN = EpochEnd(-1, -1, 0)
_NOT_FOR_CLIENTS = 31
"""CLUSTER_AUTHORIZATION_FAILED."""


def epoch_ends(
    client: ClusterClient, leader: int, epochs: Mapping[TopicPartition, int]
) -> dict[TopicPartition, EpochEnd]:
    """Ask `leader` for the end of one epoch of each partition; one that won't tell a client doesn't know."""
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
                    kind.OffsetForLeaderPartition(partition=partition, current_leader_epoch=-1, leader_epoch=epoch)
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
    return {
        (topic.topic, part.partition): _end(part, epochs[topic.topic, part.partition])
        for topic in answer.topics
        for part in topic.partitions
    }


def _end(part: Any, asked: int) -> EpochEnd:
    if part.error_code == _NOT_FOR_CLIENTS:
        return _UNKNOWN
    names_none = part.leader_epoch < 0 <= part.end_offset
    return EpochEnd(asked if names_none else part.leader_epoch, part.end_offset, part.error_code)
