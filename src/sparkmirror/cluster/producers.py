"""DescribeProducers, asked of one leader: the last sequence it holds for a producer id.

Any replica answers it without an error, so the caller must ask the leader (`exactness.md` section 3).
It needs READ on the topic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kafka.protocol.admin import DescribeProducersRequest

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.wire.topic_partition import TopicPartition


class ProducerEntry(NamedTuple):
    """A broker's in-memory state of one producer on one partition."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int


class DescribedPartition(NamedTuple):
    """All producers of a partition, or Kafka's error code."""

    error: int
    producers: tuple[ProducerEntry, ...]


def describe_producers(
    client: ClusterClient, leader: int, partitions: Mapping[str, Sequence[int]]
) -> dict[TopicPartition, DescribedPartition]:
    """Ask `leader` which producers it knows on each partition."""
    request = DescribeProducersRequest(
        topics=[
            DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=list(indexes))
            for topic, indexes in partitions.items()
        ]
    )
    return {
        (topic.name, part.partition_index): DescribedPartition(
            part.error_code,
            tuple(
                ProducerEntry(p.producer_id, p.producer_epoch, p.last_sequence, p.last_timestamp)
                for p in part.active_producers
            ),
        )
        for topic in client.ask(leader, request).topics
        for part in topic.partitions
    }
