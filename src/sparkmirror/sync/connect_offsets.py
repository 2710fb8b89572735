"""Handing back: MirrorMaker 2's own offsets topic is kept up to date, so that it can go on where we stopped.

A real MirrorMaker 2 resumes right behind the offset that it finds there (`mm2.md` 3.4). After a clean stop that is
exact. Otherwise it repeats what was copied since the last run of this duty, and skips nothing: an offset is written
only when its record has been acknowledged.

Every partition is written under every name that the flow's connector has, or had: one that MirrorMaker 2 was killed
before it stored, or that is newer than our takeover, is not to be copied again by it.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from sparkmirror.cluster.admin import ClusterAdmin
from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.config import FlowConfig
from sparkmirror.offsets.connect_offsets import (
    STRIMZIS_TOPIC,
    SourcePartition,
    java_partition,
    offset_value,
    offsets_topics,
    strimzis_connector,
)
from sparkmirror.offsets.stored_offsets import read_stored_offsets
from sparkmirror.wire.topic_partition import TopicPartition

_NOT_AUTHORIZED = 29

log = logging.getLogger(__name__)


class _Name(NamedTuple):
    """What a connector is called, in the offsets topic of its worker."""

    offsets_topic: str
    connector: str


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
        self._names: set[_Name] = set()
        """Under which partitions are written; the first run finds them."""
        self._guessed: set[str] = set()
        """Topics in which nothing of this flow was found."""
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
        self._names = self._names or self._begin()
        records: dict[tuple[str, int], list[tuple[bytes, bytes | None]]] = defaultdict(list)
        for where, upstream in moved.items():
            for topic, connector in self._names:
                key = SourcePartition(connector, self._flow.source.alias, *where).key()
                home = java_partition(key, self._log(topic).partitions)
                records[topic, home].append((key, offset_value(upstream)))
        for (topic, home), entries in records.items():
            try:
                self._log(topic).append(home, entries)
            except LogUnavailable as error:
                if error.code != _NOT_AUTHORIZED or topic not in self._guessed:
                    raise
                self._names = {name for name in self._names if name.offsets_topic != topic}
                log.info("no offsets are kept in %s: it may be another flow's, and is not for us to write to", topic)
        self._written |= moved

    def close(self) -> None:
        """Hang up."""
        self._client.close()

    def _begin(self) -> set[_Name]:
        """Create the topic as Connect does, and see what the connector is called."""
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
        stored = {_Name(one.offsets_topic, one.of.connector) for some in found.values() for one in some}
        guessed = set() if stored else self._strimzis(before)
        self._guessed = {name.offsets_topic for name in guessed} - {self._topics[0]}
        return {_Name(self._topics[0], storage.connector)} | stored | guessed

    def _strimzis(self, topics: Sequence[str]) -> set[_Name]:
        """Its name can be told where it has its topic, though it has stored nothing yet."""
        if STRIMZIS_TOPIC not in topics or self._client.metadata([STRIMZIS_TOPIC])[STRIMZIS_TOPIC].error:
            return set()
        return {_Name(STRIMZIS_TOPIC, strimzis_connector(self._flow.source.alias, self._flow.target.alias))}

    def _log(self, topic: str) -> TopicLog:
        return self._logs.setdefault(topic, TopicLog(self._client, topic))
