"""ListOffsets: start and end offsets of a leader's logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kafka.protocol.consumer import ListOffsetsRequest

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.wire.topic_partition import TopicPartition

EARLIEST = -2
LATEST = -1

CONSUMER = -1
"""Value of `replica_id` for which the log end is the high watermark."""
DEBUG_CONSUMER = -2
"""Value of `replica_id` for the leader's own log end.

Source: `exactness.md`, reading the position.
"""


class ListedOffset(NamedTuple):
    """An offset, or Kafka's error code."""

    offset: int
    error: int


def list_offsets(
    client: ClusterClient,
    leader: int,
    partitions: Mapping[str, Sequence[int]],
    timestamp: int,
    *,
    replica_id: int = CONSUMER,
    isolation_level: int = 0,
) -> dict[TopicPartition, ListedOffset]:
    """Ask `leader` for one offset of each partition.

    `timestamp` is EARLIEST, LATEST or milliseconds. At isolation level 1 (read_committed) LATEST is the last stable
    offset.
    """
    request = ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=isolation_level,
        topics=[
            ListOffsetsRequest.ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(
                        partition_index=partition, current_leader_epoch=-1, timestamp=timestamp
                    )
                    for partition in indexes
                ],
            )
            for topic, indexes in partitions.items()
        ],
        timeout_ms=client.config.request_timeout_ms,
    )
    return {
        (topic.name, part.partition_index): ListedOffset(part.offset, part.error_code)
        for topic in client.ask(leader, request).topics
        for part in topic.partitions
    }
