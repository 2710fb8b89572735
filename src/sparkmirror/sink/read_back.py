"""Read back a batch's records that attempts appended to a partition."""

from __future__ import annotations

import time
from typing import NamedTuple

from sparkmirror.arrow.decoding import decoded
from sparkmirror.arrow.row_columns import RowColumns
from sparkmirror.errors import ClusterTrouble, ClusterUnreachable
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.fetch_once import FetchBounds, fetch_once, only_part
from sparkmirror.kafka.cluster.list_offsets import EARLIEST, LATEST, list_offsets
from sparkmirror.kafka.wire.batches import BatchHeader, batch_headers
from sparkmirror.kafka.wire.error_codes import ErrorCode

_BOUNDS = FetchBounds(max_bytes=8 << 20, partition_bytes=4 << 20)
_PATIENCE_S = 60.0
"""Longest wait for the high watermark to reach a leader's records."""
_PAUSE_S = 0.1
_FIRST_WINDOW, _WIDER = 256, 8
"""Size of the first window in offsets, and growth of each next window."""
_COLUMNS = ("key", "value", "headers", "timestamp")
_NO_OFFSET = 1 << 62
_ANY = 1 << 31
"""Sequence beyond all others: any batch ends the search."""
_STAMPED = 8
"""Attribute bit of batches with the broker's timestamps (LogAppendTime)."""


class LeaderPlace(NamedTuple):
    """One partition at its leader."""

    topic: str
    partition: int
    topic_id: bytes
    leader: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class BatchProducer(NamedTuple):
    """Producer id and epoch that all attempts of a batch share."""

    producer_id: int
    producer_epoch: int

    def wrote(self, header: BatchHeader) -> bool:
        same = (header.producer_id, header.producer_epoch) == self
        return same and not header.is_control and header.base_sequence >= 0

    def follows(self, header: BatchHeader) -> bool:
        """Tell whether all the writer's records are behind this batch.

        It is of the query's earlier micro-batches, whose attempts brokers refuse since.
        """
        return header.producer_id == self.producer_id and header.producer_epoch < self.producer_epoch


class AppendedRecords(NamedTuple):
    """Records in sequence order, without a gap."""

    rows: tuple[RowColumns, ...]
    records: int
    first_offset: int
    last_offset: int
    is_stamped: bool
    """True if the broker replaced the timestamps."""


class _FoundBatch(NamedTuple):
    header: BatchHeader
    batch: memoryview

    @property
    def last(self) -> int:
        return self.header.base_sequence + self.header.last_offset_delta


class _Window(NamedTuple):
    batches: list[_FoundBatch]
    is_last: bool
    """True if the writer has no batches before the window."""


def read_back(
    client: ClusterClient, place: LeaderPlace, writer: BatchProducer, first: int, last: int, floor: int
) -> AppendedRecords:
    """Read the records with sequences from `first` to `last`.

    The search goes back to offset `floor`. Waits until the high watermark has reached the records. Raises
    `ConnectionError` if the leader doesn't answer, and `ClusterUnreachable` if the log lacks the records.
    """
    until = time.monotonic() + _PATIENCE_S
    while True:
        newest = _newest_batches(client, place, writer, first, floor)
        batches = [each for each in newest if first <= each.header.base_sequence and each.last <= last]
        if sum(each.header.records for each in batches) == last + 1 - first:
            return _records(place, batches)
        if time.monotonic() > until:
            raise ClusterUnreachable(
                f"cluster {client.config.alias}: {place}: records that an earlier attempt of this batch appended can't "
                f"be read back (sequences {first} to {last}): they are deleted, or the replicas are far behind"
            )
        time.sleep(_PAUSE_S)


def last_sequence(client: ClusterClient, place: LeaderPlace, writer: BatchProducer, floor: int) -> int:
    """Return the batch's last sequence by the log alone; -1 without records.

    Raises `ConnectionError`.
    """
    return max((each.last for each in _newest_batches(client, place, writer, _ANY, floor)), default=-1)


def is_committed(client: ClusterClient, place: LeaderPlace, writer: BatchProducer, last: int, floor: int) -> bool:
    """Tell whether the replicas have a sequence; raises `ConnectionError`."""
    return any(each.last >= last for each in _newest_batches(client, place, writer, last, floor))


def _newest_batches(
    client: ClusterClient, place: LeaderPlace, writer: BatchProducer, first: int, floor: int
) -> list[_FoundBatch]:
    """Return the writer's batches from sequence `first` on, or some more, in order.

    Each window ends at the high watermark and is wider than the one before, until one has `first`, begins at `floor`,
    or shows that there are no others.
    """
    end, floor = _offset(client, place, LATEST), max(floor, _offset(client, place, EARLIEST))
    width = _FIRST_WINDOW
    while True:
        start = max(end - width, floor)
        batches, is_last = _read(client, place, writer, start, end)
        if is_last or start == floor or (batches and batches[0].header.base_sequence <= first):
            return batches
        width *= _WIDER


def _records(place: LeaderPlace, batches: list[_FoundBatch]) -> AppendedRecords:
    parts = decoded(
        [(each.header, each.batch) for each in batches],
        place.topic,
        place.partition,
        batches[0].header.base_offset,
        batches[-1].header.next_offset,
        _COLUMNS,
    )
    return AppendedRecords(
        rows=tuple(RowColumns.of(part, 0) for part in parts),
        records=sum(each.header.records for each in batches),
        first_offset=batches[0].header.base_offset,
        last_offset=batches[-1].header.next_offset - 1,
        is_stamped=bool(batches[0].header.attributes & _STAMPED),
    )


def _read(client: ClusterClient, place: LeaderPlace, writer: BatchProducer, start: int, end: int) -> _Window:
    batches: list[_FoundBatch] = []
    at, is_last = start, False
    while at < end:
        part = only_part(
            fetch_once(
                client, place.leader, {(place.topic, place.partition): at}, {place.topic: place.topic_id}, _BOUNDS
            )
        )
        if isinstance(part, int):
            if part == ErrorCode.THROTTLING_QUOTA_EXCEEDED:  # `fetch_once` has waited
                continue
            raise ClusterTrouble(f"{place} can't be read back: {error_name(part)}")
        if part.error:
            raise ClusterTrouble(f"{place} can't be read back: {error_name(part.error)}")
        before = at
        for position, header in batch_headers(part.records):
            if header.base_offset >= end:
                return _Window(batches, is_last)
            is_last |= writer.follows(header)
            if header.next_offset > at and writer.wrote(header):
                batches.append(_FoundBatch(header, part.records[position : position + header.size]))
            at = max(at, header.next_offset)
        if at == before:
            break
    return _Window(batches, is_last)


def offset_since(client: ClusterClient, place: LeaderPlace, at_ms: int) -> int:
    """Return the first offset at this time or later; else one beyond all."""
    offset = _offset(client, place, at_ms)
    return offset if offset >= 0 else _NO_OFFSET


def _offset(client: ClusterClient, place: LeaderPlace, which: int) -> int:
    listed = list_offsets(client, place.leader, {place.topic: [place.partition]}, which)[place.topic, place.partition]
    if listed.error:
        raise ClusterTrouble(f"{place}: its offsets can't be found: {error_name(listed.error)}")
    return listed.offset
