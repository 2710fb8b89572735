"""Handing back: MirrorMaker 2's own offsets topic is kept up to date, so that it can go on where we stopped.

A real MirrorMaker 2 resumes right behind the offset that it finds there (`mm2.md` 3.4). After a clean stop that is
exact. Otherwise it repeats what was copied since the last run of this duty, and skips nothing: an offset is written
only when its record has been acknowledged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping

from sparkmirror.cluster.admin import ClusterAdmin
from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.config import FlowConfig
from sparkmirror.offsets.connect_offsets import (
    SourcePartition,
    java_partition,
    offset_value,
    offsets_topics,
)
from sparkmirror.offsets.stored_offsets import read_stored_offsets
from sparkmirror.wire.topic_partition import TopicPartition


class ConnectOffsets:
    """For one flow: `run` each `offset.flush.interval.ms`, and once more when the pumps have ended for good.

    `copied` gives the upstream offset of the last record copied, by source topic and partition; offsets without a
    record count as copied when they were passed over. The admin is the caller's, and is left open.
    """

    def __init__(
        self, flow: FlowConfig, target: ClusterAdmin, copied: Callable[[], Mapping[TopicPartition, int]]
    ) -> None:
        self._flow = flow
        self._admin = target
        self._copied = copied
        self._client = ClusterClient(flow.target, f"{flow.name}|sparkmirror-connect-offsets")
        self._topics = offsets_topics(flow.source.alias, flow.connect.offset_storage_topic)
        self._logs: dict[str, TopicLog] = {}
        self._names: dict[TopicPartition, set[tuple[str, str]]] | None = None
        """Under which names partitions are known, beside the flow's own: offsets topic and connector."""
        self._written: dict[TopicPartition, int] = {}

    def run(self) -> None:
        """Write the offsets of all partitions that have moved; the first run creates the topic.

        Raises `SparkMirrorError`s and `ConnectionError`s; then the next run writes them.
        """
        moved = {
            where: upstream
            for where, upstream in self._copied().items()
            if upstream >= 0 and self._written.get(where) != upstream
        }
        if self._names is None:
            self._names = self._begin()
        records: dict[tuple[str, int], list[tuple[bytes, bytes | None]]] = defaultdict(list)
        for where, upstream in moved.items():
            for topic, connector in {(self._topics[0], self._flow.connect.connector)} | self._names.get(where, set()):
                key = SourcePartition(connector, self._flow.source.alias, *where).key()
                home = java_partition(key, self._log(topic).partitions)
                records[topic, home].append((key, offset_value(upstream)))
        for (topic, home), entries in records.items():
            self._log(topic).append(home, entries)
        self._written |= moved

    def close(self) -> None:
        """Hang up."""
        self._client.close()

    def _begin(self) -> dict[TopicPartition, set[tuple[str, str]]]:
        """Create the topic as Connect does, and see what partitions were called before."""
        storage = self._flow.connect
        created = self._admin.create_compacted_topic(
            self._topics[0],
            storage.offset_storage_partitions,
            storage.offset_storage_replication_factor,
            factor_key="offset.storage.replication.factor",
        )
        # A new one has no leaders for a moment, and says nothing.
        before = self._topics[1:] if created else self._topics
        found = read_stored_offsets(self._client, before, self._flow.source.alias)
        return {where: {(one.offsets_topic, one.of.connector) for one in some} for where, some in found.items()}

    def _log(self, topic: str) -> TopicLog:
        return self._logs.setdefault(topic, TopicLog(self._client, topic))
