"""Newest records that a process has written to a partition of its own topic.

The topic is the segments topic. The process writes the records again if an unclean leader election has cut the topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sparkmirror.exact.durable.claims import Record, TargetPartition
from sparkmirror.kafka.cluster.topic_log import LogEntry

KEPT_BYTES = 256 << 10
"""Bytes kept in keys and values: some 2,000 claims with one run each."""

_NONE = 1 << 62


class OwnRecord(NamedTuple):
    """Record that this process has appended."""

    first: int
    """Offset of the write's first record; the record's own offset is there or behind."""
    partition: TargetPartition
    claimed_to: int
    """Sequence after the records that the claim announces."""
    record: Record

    @property
    def size(self) -> int:
        """Bytes in key and value."""
        key, value = self.record
        return len(key) + len(value or b"")


class OwnRecords:
    """Own records, the newest for each key, in the order of writing."""

    def __init__(self) -> None:
        self._kept: dict[bytes, OwnRecord] = {}
        self._size = 0

    def add(self, written: OwnRecord) -> None:
        """Keep a record, and drop the oldest ones beyond `KEPT_BYTES`."""
        self._drop(written.record[0])
        self._kept[written.record[0]] = written
        self._size += written.size
        while self._size > KEPT_BYTES:
            self._drop(next(iter(self._kept)))

    def __contains__(self, key: bytes | None) -> bool:
        return key in self._kept

    @property
    def lowest_offset(self) -> int:
        """Offset at or before all records that are kept."""
        return min((own.first for own in self._kept.values()), default=_NONE)

    def missing(self, newest: Mapping[bytes, LogEntry]) -> list[OwnRecord]:
        """Return the records that a log has lost.

        `newest` has the log's newest record for each key here. An own record whose key has a newer one is not lost:
        compaction may have removed it.
        """
        return [own for own in self._kept.values() if not _is_there(own, newest.get(own.record[0]))]

    def forget(self, partition: TargetPartition, end: int) -> None:
        """Drop a target partition's claims on records beyond the sequence `end`."""
        doomed = [
            key for key, own in self._kept.items() if own.partition == partition and (own.claimed_to > end or not end)
        ]
        for key in doomed:
            self._drop(key)

    def _drop(self, key: bytes) -> None:
        written = self._kept.pop(key, None)
        if written is not None:
            self._size -= written.size


def _is_there(own: OwnRecord, newest: LogEntry | None) -> bool:
    return newest is not None and (newest.value == own.record[1] or newest.offset >= own.first)
