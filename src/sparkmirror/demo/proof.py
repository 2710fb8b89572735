"""The proof: partitions' logs compared byte for byte, as the brokers store them.

Batch by batch, equal means equal offsets, timestamps, codecs, attributes and records. The comparison leaves out the
fields that a copy can't share: producer id, epoch and sequence, the partition leader epoch, and the CRC, which covers
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sparkmirror.config import ClusterConfig
from sparkmirror.errors import CopyIncomplete
from sparkmirror.kafka.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.fetch_once import FetchBounds, fetch_once, only_part
from sparkmirror.kafka.cluster.list_offsets import EARLIEST, LATEST, list_offsets
from sparkmirror.kafka.wire.batches import CODECS, HEADER_SIZE, BatchHeader, batch_headers

_BOUNDS = FetchBounds(max_bytes=8 << 20, partition_bytes=8 << 20, wait_ms=500)


@dataclass(frozen=True, slots=True)
class LogDifference:
    """First difference between two logs."""

    offset: int
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProof:
    """Result of comparing one partition."""

    source_topic: str
    target_topic: str
    partition: int
    batches: int
    records: int
    bytes: int
    codecs: tuple[str, ...]
    difference: LogDifference | None

    @property
    def identical(self) -> bool:
        return self.difference is None


class LogReader:
    """Read the raw batches of one cluster's partitions."""

    def __init__(self, bootstrap_servers: str, alias: str = "cluster") -> None:
        config = ClusterConfig(alias=alias, bootstrap_servers=tuple(bootstrap_servers.split(",")))
        self._client = ClusterClient(config, "sparkmirror-proof")

    def partitions(self, topic: str) -> tuple[int, ...]:
        """Return a topic's partitions.

        Raises `CopyIncomplete` if there is no such topic.
        """
        return tuple(sorted(self._described(topic).partitions))

    def _described(self, topic: str) -> TopicLeaders:
        leaders = self._client.metadata([topic])[topic]
        if leaders.error:
            raise CopyIncomplete(f"{self._client.config.alias}: topic {topic}: {error_name(leaders.error)}")
        return leaders

    def _offset(self, leader: int, topic: str, partition: int, which: int) -> int:
        listed = list_offsets(self._client, leader, {topic: [partition]}, which)[topic, partition]
        if listed.error:
            raise CopyIncomplete(f"{self._client.config.alias}: {topic}-{partition}: {error_name(listed.error)}")
        return listed.offset

    def batches(self, topic: str, partition: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Yield each batch of a partition: its header and all its bytes.

        From the log's start to the high watermark at the time of the call.
        """
        described = self._described(topic)
        leader = described.partitions[partition].leader
        offset, end = (self._offset(leader, topic, partition, which) for which in (EARLIEST, LATEST))
        topic_ids = {topic: described.topic_id}
        while offset < end:
            part = only_part(fetch_once(self._client, leader, {(topic, partition): offset}, topic_ids, _BOUNDS))
            error = part if isinstance(part, int) else part.error
            if isinstance(part, int) or error:
                raise CopyIncomplete(f"{self._client.config.alias}: {topic}-{partition}: {error_name(error)}")
            records = part.records
            if not records:
                return  # nothing but transaction markers or compacted offsets up to the end
            for position, header in batch_headers(records):
                if header.base_offset >= end:
                    return
                yield header, records[position : position + header.size]
                offset = header.next_offset

    def close(self) -> None:
        self._client.close()


def compare_partition(
    source: LogReader, target: LogReader, source_topic: str, target_topic: str, partition: int
) -> PartitionProof:
    """Compare two logs to their ends."""
    batches = records = size = 0
    codecs: dict[str, None] = {}
    difference: LogDifference | None = None
    copies = target.batches(target_topic, partition)
    for header, data in source.batches(source_topic, partition):
        copy = next(copies, None)
        if copy is None:
            difference = LogDifference(header.base_offset, "missing at the target")
            break
        difference = _compare(header, data, *copy)
        if difference is not None:
            break
        batches += 1
        records += header.records
        size += header.size
        codecs[CODECS[header.attributes & 7]] = None
    else:
        extra = next(copies, None)
        if extra is not None:
            difference = LogDifference(extra[0].base_offset, "only at the target")
    return PartitionProof(
        source_topic=source_topic,
        target_topic=target_topic,
        partition=partition,
        batches=batches,
        records=records,
        bytes=size,
        codecs=tuple(sorted(codecs)),
        difference=difference,
    )


def _compare(
    source: BatchHeader, source_data: memoryview, target: BatchHeader, target_data: memoryview
) -> LogDifference | None:
    for field in (
        "base_offset",
        "length",
        "magic",
        "attributes",
        "last_offset_delta",
        "base_timestamp",
        "max_timestamp",
        "records",
    ):
        if getattr(source, field) != getattr(target, field):
            return LogDifference(
                source.base_offset,
                f"{field.replace('_', ' ')}: {getattr(source, field)}, target {getattr(target, field)}",
            )
    if source_data[HEADER_SIZE:] != target_data[HEADER_SIZE:]:
        return LogDifference(source.base_offset, "the records' bytes differ")
    return None


def compare_topics(source_servers: str, target_servers: str, topics: dict[str, str]) -> list[PartitionProof]:
    """Compare every partition of these topics.

    `topics` maps source names to target names.
    """
    source, target = LogReader(source_servers, "source"), LogReader(target_servers, "target")
    try:
        return [
            compare_partition(source, target, source_topic, target_topic, partition)
            for source_topic, target_topic in topics.items()
            for partition in source.partitions(source_topic)
        ]
    finally:
        source.close()
        target.close()
