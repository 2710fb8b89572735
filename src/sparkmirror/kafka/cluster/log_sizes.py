"""Sizes of partitions on their leaders' disks, and brokers' free space.

All in bytes, as DescribeLogDirs tells them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kafka.protocol.admin import DescribeLogDirsRequest

from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.wire.topic_partition import TopicPartition


def log_sizes(client: ClusterClient, broker: int, partitions: Mapping[str, Sequence[int]]) -> dict[TopicPartition, int]:
    """Read each partition's size at one broker, in bytes.

    Partitions stay out if the principal lacks DESCRIBE on the cluster.
    """
    request = DescribeLogDirsRequest(
        topics=[
            DescribeLogDirsRequest.DescribableLogDirTopic(topic=topic, partitions=list(indexes))
            for topic, indexes in partitions.items()
        ]
    )
    return {
        (topic.name, part.partition_index): part.partition_size
        for directory in client.ask(broker, request).results
        if not directory.error_code
        for topic in directory.topics
        for part in topic.partitions
        if not part.is_future_key
    }


class DiskSpace(NamedTuple):
    """Space of the directories that hold brokers' logs."""

    total: int
    free: int


def disk_space(client: ClusterClient, brokers: Iterable[int]) -> DiskSpace | None:
    """Return the brokers' space; None if any does not tell.

    They tell since Kafka 3.3 (KIP-827), to principals with DESCRIBE on the cluster. Raises `ConnectionError`s.
    """
    total = free = 0
    for broker in brokers:
        directories = client.ask(broker, DescribeLogDirsRequest(topics=[])).results
        if not directories:
            return None
        for directory in directories:
            size, usable = (getattr(directory, name, None) for name in ("total_bytes", "usable_bytes"))
            if directory.error_code or size is None or usable is None or size < 0 or usable < 0:
                return None
            total += size
            free += usable
    return DiskSpace(total, free)
