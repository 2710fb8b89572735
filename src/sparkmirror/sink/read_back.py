"""Read back a batch's records that attempts appended to a partition."""

from __future__ import annotations

import time
from typing import NamedTuple

from sparkmirror.arrow.decoding import decoded
from sparkmirror.arrow.row_columns import RowColumns
from sparkmirror.clock import wall_ms
from sparkmirror.errors import ClusterTrouble, ClusterUnreachable, RowsInDoubt
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.fetch_once import FetchBounds, fetch_once, only_part
from sparkmirror.kafka.cluster.list_offsets import CONSUMER, DEBUG_CONSUMER, EARLIEST, LATEST, list_offsets
from sparkmirror.kafka.wire.batches import BatchHeader, batch_headers
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.sink.order import AppendOrder

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
    is_last: bool = False
    """True if the writer has no batches before the window."""
    is_cut: bool = False
    """True if the log lacks offsets behind the writer's batches."""


def read_back(
    client: ClusterClient, place: LeaderPlace, writer: BatchProducer, first: int, last: int, floor: int
) -> AppendedRecords:
    """Read the records with sequences from `first` to `last`.

    The search goes back to offset `floor`. Waits until the replicas have the leader's records. Raises
    `ConnectionError` if the leader doesn't answer, and `RowsInDoubt` if the log lacks the records.
    """
    _await_replicas(client, place)
    newest = _newest(client, place, writer, first, floor).batches
    batches = [each for each in newest if first <= each.header.base_sequence and each.last <= last]
    if (there := sum(each.header.records for each in batches)) != last + 1 - first:
        raise RowsInDoubt(
            f"{place}: earlier attempts of this batch appended {last + 1 - first:,} records, and {there:,} are left: "
            "the others are deleted, or compacted away, so nothing tells whose rows they were"
        )
    return _records(place, batches)


def may_be_hidden(client: ClusterClient, place: LeaderPlace, order: AppendOrder) -> bool:
    """Tell whether the log may have records of the batch that its leader doesn't know.

    Leaders forget records that are old, and those of a log that is empty when the broker starts. Raises
    `ConnectionError`.
    """
    if order.may_be_forgotten(wall_ms()):
        return True
    begin = (order.begins or {}).get((place.topic, place.partition))
    return order.is_repeated if begin is None else _offset(client, place, LATEST, DEBUG_CONSUMER) > begin


def search_from(
    client: ClusterClient, place: LeaderPlace, order: AppendOrder, last_offset: int = -1
) -> tuple[int, bool]:
    """Return the offset to search from where brokers have forgotten the batch.

    True with it if all records behind `last_offset` are behind it; else some with older timestamps may not be. Raises
    `ConnectionError`.
    """
    begin = (order.begins or {}).get((place.topic, place.partition))
    if begin is not None or last_offset >= 0:
        return max(begin or 0, last_offset + 1), True
    offset = _offset(client, place, order.oldest_ms)
    return (offset if offset >= 0 else _NO_OFFSET), False


def last_sequence(
    client: ClusterClient, place: LeaderPlace, writer: BatchProducer, floor: int, *, is_whole: bool = False
) -> int:
    """Return the batch's last sequence by the log alone; -1 without records.

    With `is_whole` all the batch's records are behind `floor`. Then `RowsInDoubt` is raised if the log lacks offsets
    that may have been theirs. Raises `ConnectionError`.
    """
    newest = _newest(client, place, writer, _ANY, floor)
    if is_whole and newest.is_cut:
        raise RowsInDoubt(
            f"{place}: records from offset {floor:,} on are deleted, or compacted away, and the brokers have forgotten "
            "who appended them, so nothing tells how many earlier attempts of this batch appended"
        )
    return max((each.last for each in newest.batches), default=-1)


def _await_replicas(client: ClusterClient, place: LeaderPlace) -> None:
    """Wait until the replicas have what the leader has now."""
    end, until = _offset(client, place, LATEST, DEBUG_CONSUMER), time.monotonic() + _PATIENCE_S
    while _offset(client, place, LATEST) < end:
        if time.monotonic() > until:
            raise ClusterUnreachable(
                f"cluster {client.config.alias}: {place}: its replicas lack records that an earlier attempt of this "
                "batch appended"
            )
        time.sleep(_PAUSE_S)


def _newest(client: ClusterClient, place: LeaderPlace, writer: BatchProducer, first: int, floor: int) -> _Window:
    """Return the writer's batches from sequence `first` on, or some more, in order.

    Each window ends at the high watermark and is wider than the one before, until one has `first`, begins at `floor`,
    or shows that there are no others.
    """
    end, log_start = _offset(client, place, LATEST), _offset(client, place, EARLIEST)
    lowest, width = max(floor, log_start), _FIRST_WINDOW
    while True:
        window = _read(client, place, writer, max(end - width, lowest), end)
        if window.is_last or (window.batches and window.batches[0].header.base_sequence <= first):
            return window
        if end - width <= lowest:
            return window._replace(is_cut=window.is_cut or (not window.batches and log_start > floor))
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
    at, is_last, is_cut = start, False, False
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
            is_cut |= min(header.base_offset, end) > at
            if header.base_offset >= end:
                return _Window(batches, is_last, is_cut)
            if writer.follows(header):
                is_last, is_cut = True, False
            elif header.next_offset > at and writer.wrote(header):
                batches.append(_FoundBatch(header, part.records[position : position + header.size]))
                is_cut = False
            at = max(at, header.next_offset)
        if at == before:
            raise ClusterTrouble(
                f"{place} can't be read back: its leader has no records at offset {at:,}, before {end:,}"
            )
    return _Window(batches, is_last, is_cut)


def _offset(client: ClusterClient, place: LeaderPlace, which: int, replica_id: int = CONSUMER) -> int:
    asked = {place.topic: [place.partition]}
    listed = list_offsets(client, place.leader, asked, which, replica_id=replica_id)[place.topic, place.partition]
    if listed.error:
        raise ClusterTrouble(f"{place}: its offsets can't be found: {error_name(listed.error)}")
    return listed.offset
