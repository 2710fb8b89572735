"""The hand-back duty: MirrorMaker 2's own offsets topic, kept up to date.

MirrorMaker 2 can then continue where sparkmirror's copy ends: a real MirrorMaker 2 resumes right after the offset in
its offsets topic (`mm2.md` 3.4). After a clean stop the hand-back is exact. Otherwise MirrorMaker 2 repeats the records
copied since this duty's last run, and skips none: the duty writes an offset only when the record has been acknowledged.

The duty writes every partition under the names that are the flow's connector's. Of several unknown names it writes
under each only the partitions stored there. So MirrorMaker 2 copies none of these again: records whose offsets it was
killed before storing, and records copied since the takeover.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from sparkmirror.config import FlowConfig
from sparkmirror.events import Event
from sparkmirror.exact.mm2.connect_offsets import SourcePartition, java_partition, offset_value, offsets_topics
from sparkmirror.exact.mm2.connector_names import ConnectorNames, find_names
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.topic_partition import TopicPartition

log = logging.getLogger(__name__)


class ConnectOffsets:
    """One flow's hand-back duty.

    `run` is due each `offset.flush.interval.ms`, and once more when the pumps have ended for good. `copied` gives the
    last copied record's upstream offset, by source topic and partition; offsets without a record count as copied when
    the pump has passed over them. The caller closes the admin.
    """

    def __init__(
        self, flow: FlowConfig, target: ClusterAdmin, copied: Callable[[], Mapping[TopicPartition, int]]
    ) -> None:
        self._flow = flow
        self._admin = target
        self._copied = copied
        self._client = ClusterClient(flow.target, f"{flow.name}|sparkmirror-connect-offsets")
        self._topic = offsets_topics(flow.source.alias, flow.connect.offset_storage_topic)[0]
        self._logs: dict[str, TopicLog] = {}
        self._names: ConnectorNames | None = None
        """The connector's names, found by the first run."""
        self._written: dict[TopicPartition, int] = {}

    def run(self) -> None:
        """Write moved partitions' offsets; the first run creates the topic.

        Raises `SparkMirrorError`s and `ConnectionError`s; then the next run writes the offsets.
        """
        moved = {
            partition: upstream
            for partition, upstream in self._copied().items()
            if upstream >= 0 and self._written.get(partition) != upstream
        }
        names = self._names = self._names or self._begin()
        records: dict[str, list[tuple[bytes, bytes | None]]] = defaultdict(list)
        for partition, upstream in moved.items():
            for topic, connector in names.of(partition):
                key = SourcePartition(connector, self._flow.mm2_source, *partition).key()
                records[topic].append((key, offset_value(upstream)))
        failed: list[LogUnavailable] = []
        for topic in sorted(records, key=self._order):
            try:
                self._write(topic, records[topic])
            except LogUnavailable as error:
                if not self._is_given_up(topic, error):
                    failed.append(error)
        if failed:
            raise failed[0]
        self._written |= moved

    def _order(self, topic: str) -> tuple[bool, str]:
        """Sort key with the flow's own topic first: other topics' failures come later."""
        return topic != self._topic, topic

    def _write(self, topic: str, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        log_of = self._logs.setdefault(topic, TopicLog(self._client, topic))
        homes: dict[int, list[tuple[bytes, bytes | None]]] = defaultdict(list)
        for key, value in records:
            homes[java_partition(key, log_of.partitions)].append((key, value))
        for home, entries in homes.items():
            log_of.append(home, entries)

    def _is_given_up(self, topic: str, error: LogUnavailable) -> bool:
        """Tell whether to give up a topic that refuses writes, or to try again."""
        names, gone = self._names, error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if names is None or (gone and topic == self._topic):
            self._names, self._written = None, {}  # the next run creates the topic
        elif gone or (error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED and topic in names.guessed):
            self._names = names.without(topic)
            why = "is gone" if gone else "may be another flow's, so sparkmirror does not write to it"
            log.info(
                "flow %s: no offsets are kept in %s, which %s",
                self._flow.name,
                topic,
                why,
                extra=Event.CONNECT_OFFSETS_NOT_KEPT.extra,
            )
            return True
        return False

    def close(self) -> None:
        self._client.close()

    def _begin(self) -> ConnectorNames:
        """Create the topic as Connect does, and find the connector's names."""
        storage = self._flow.connect
        created = self._admin.create_compacted_topic(
            self._topic,
            storage.offset_storage_partitions,
            storage.offset_storage_replication_factor,
            factor_key="offset.storage.replication.factor",
        )
        return find_names(self._client, self._flow, is_new=created)
