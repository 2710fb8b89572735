"""DescribeLogDirs: partition sizes on their leader's disks, in bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
