"""Log offsets, with the id of the topic that each log belongs to.

A report that names an offset may be about an earlier topic with the same name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from sparkmirror.exact.durable.noted_progress import ReportedProgress
from sparkmirror.exact.position.target_reading import by_topic
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.list_offsets import list_offsets
from sparkmirror.kafka.wire.topic_partition import TopicPartition


class LogOffset(NamedTuple):
    """An offset in a partition's log, and the topic's id."""

    offset: int
    topic_id: bytes

    def is_end_for(self, reported: ReportedProgress) -> bool:
        """Tell whether a report can be about the log that ends here.

        A report of an earlier topic of this name says nothing about this topic's log.
        """
        return reported.is_of(self.topic_id) and reported.downstream <= self.offset


def offsets_and_ids(
    client: ClusterClient, partitions: Iterable[TopicPartition], at: int
) -> dict[TopicPartition, LogOffset]:
    """Return an offset for each partition whose leader answers."""
    wanted = list(partitions)
    by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
    topics = client.metadata({topic for topic, _ in wanted}) if wanted else {}
    for partition in wanted:
        led = topics[partition[0]].partitions.get(partition[1])
        if led is not None and led.leader >= 0:
            by_leader[led.leader].append(partition)
    return {
        partition: LogOffset(listed.offset, topics[partition[0]].topic_id)
        for node, led_there in by_leader.items()
        for partition, listed in list_offsets(client, node, by_topic(led_there), at).items()
        if not listed.error
    }
