"""OffsetForLeaderEpoch, asked of one leader: where in its log a leader epoch ends (KIP-101, KIP-320)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from kafka.protocol.consumer import OffsetForLeaderEpochRequest

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.wire.topic_partition import TopicPartition

CONSUMER = -1


class EpochEnd(NamedTuple):
    """The newest leader epoch that is not newer than the one asked for, and the offset after its last record.

    Both are -1 where the leader doesn't know; `error` is Kafka's code.
    """

    epoch: int
    end: int
    error: int


def epoch_ends(
    client: ClusterClient, leader: int, epochs: Mapping[TopicPartition, int]
) -> dict[TopicPartition, EpochEnd]:
    """Ask `leader` for the end of one epoch of each partition."""
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
    return {
        (topic.topic, part.partition): EpochEnd(part.leader_epoch, part.end_offset, part.error_code)
        for topic in client.ask(leader, request).topics
        for part in topic.partitions
    }
