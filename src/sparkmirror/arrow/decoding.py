"""Whole record batches as Arrow's columns.

No record becomes a Python object, but in old formats and in batches left to Python by the compiled loops.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from sparkmirror.arrow.decoded_rows import HEADER_LIST, MICROSECONDS, RowsOfRecords, RowsToFill
from sparkmirror.arrow.loops import record_kernels
from sparkmirror.kafka.wire import pieces
from sparkmirror.kafka.wire.batches import CODEC_MASK, HEADER_SIZE, MAGIC, TIMESTAMP_TYPE_BIT, BatchHeader
from sparkmirror.kafka.wire.codecs import Buffer
from sparkmirror.kafka.wire.records import see_that_it_is_whole, unreadable
from sparkmirror.kafka.wire.unpacking import Oversized, decompress

RECORDS: pa.Schema = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", MICROSECONDS),
        ("timestampType", pa.int32()),
        ("headers", HEADER_LIST),
    ]
)
"""Columns of records, as Spark's Kafka source has them (`includeHeaders`).

A record without headers has null there. The timestamp type is 0 for the producer's time, 1 for the broker's.
"""

ROWS_BYTES = 8 << 20
"""Approximate bytes at which a RecordBatch ends."""
_SECTION_BYTES = 64 << 20
"""Most bytes of a batch unpacked at once; a larger batch is read in pieces."""
_HELD_BYTES = 32 << 20
"""Bytes of waiting sections at which a RecordBatch ends.

Memory is bounded, however little of these bytes is wanted.
"""
_PIECE_ROWS = 4096
_OLD_ATTRIBUTES_AT = 17
_NO_TIMESTAMP_TYPE = -1
"""Kafka's number for records without a timestamp (message format v0)."""

Counts = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


class _SectionPart(NamedTuple):
    """Records of a batch's section, from byte `at` to before byte `to`."""

    header: BatchHeader
    section: Buffer
    at: int
    to: int


def decoded(
    batches: Iterable[tuple[BatchHeader, memoryview]],
    topic: str,
    partition: int,
    first: int,
    end: int,
    names: Sequence[str] = tuple(RECORDS.names),
) -> Iterator[pa.RecordBatch]:
    """Yield the rows with offsets from `first` to before `end`.

    A RecordBatch ends at about `ROWS_BYTES`. The columns are `names` out of `RECORDS`, in this order. `batches` are a
    partition's whole batches, in any format; transaction markers are left out, and nothing else. Raises ValueError for
    a damaged batch, with topic, partition and offset.
    """
    reading = _RowReading(topic, partition, first, end, names)
    for header, batch in batches:
        if header.is_control or header.next_offset <= first or (header.base_offset >= end and header.magic >= MAGIC):
            continue
        try:
            yield from reading.take(header, batch)
        except ValueError as error:
            text = str(error) if "can't be read" in str(error) else str(unreadable(header, error))
            raise ValueError(f"{topic}-{partition}: {text}") from error
    yield from reading.ended()


class _RowReading:
    """Rows on their way: measured records wait until there are enough."""

    def __init__(self, topic: str, partition: int, first: int, end: int, names: Collection[str]) -> None:
        self._first, self._end = first, end
        self._topic, self._partition = topic, partition
        self._schema = pa.schema([RECORDS.field(name) for name in names])
        self._wanted = (
            record_kernels.KEY * ("key" in names)
            + record_kernels.VALUE * ("value" in names)
            + record_kernels.HEADER_LISTS * ("headers" in names)
        )
        self._stretches: list[_SectionPart] = []
        self._held = 0
        self._counts = np.zeros(record_kernels.COUNTS, np.int64)

    def take(self, header: BatchHeader, batch: memoryview) -> Iterator[pa.RecordBatch]:
        """Take in the next batch; yield complete rows."""
        section = self._section(header, batch)
        if section is None:
            yield from self.ended()
            yield from self._one_by_one(header, batch)
            return
        data = np.frombuffer(section, np.uint8)
        # Records wait whose batch proves damaged behind them: nothing of a damaged batch is given out but by pieces.
        before, waiting = self._counts.copy(), len(self._stretches)
        counts = self._counts
        counts[record_kernels.PREVIOUS], counts[record_kernels.RECORDS] = -1, 0
        at = 0
        complete: list[tuple[list[_SectionPart], Counts]] = []
        while at < len(data):
            to = record_kernels.measured(
                data, at, header.base_offset, self._first, self._end, self._wanted, ROWS_BYTES, counts
            )
            if to < 0:
                break
            self._stretches.append(_SectionPart(header, section, at, to))
            at = to
            if counts[record_kernels.SIZE] >= ROWS_BYTES:
                complete.append((self._stretches, counts.copy()))
                self._stretches = []
                counts[record_kernels.ROWS] = 0
                counts[record_kernels.SIZE :] = 0
        sound = at == len(data) and counts[record_kernels.RECORDS] == header.records
        if not sound or counts[record_kernels.PREVIOUS] > header.last_offset_delta:
            self._stretches = complete[0][0][:waiting] if complete else self._stretches[:waiting]
            self._counts = before
            yield from self.ended()
            yield from self._one_by_one(header, batch)
            return
        for stretches, counted in complete:
            yield self._filled(stretches, counted)
        self._held = self._held * (not complete) + len(section)
        if self._held >= _HELD_BYTES:
            yield from self.ended()

    def ended(self) -> Iterator[pa.RecordBatch]:
        """Yield the waiting rows, if there are any."""
        stretches, counts = self._stretches, self._counts
        self._stretches, self._counts, self._held = [], np.zeros(record_kernels.COUNTS, np.int64), 0
        if counts[record_kernels.ROWS]:
            yield self._filled(stretches, counts)

    def _section(self, header: BatchHeader, batch: memoryview) -> Buffer | None:
        """Return a batch's uncompressed records; None if Python must read them."""
        if header.magic != MAGIC:
            return None
        see_that_it_is_whole(header, batch)
        if header.is_corrupt(batch, 0):
            raise ValueError("its CRC does not match")
        if not -record_kernels.FARTHEST_MS < _base(header) < record_kernels.FARTHEST_MS:
            return None
        codec = header.attributes & CODEC_MASK
        if not codec or not header.records:  # a batch emptied by compaction has nothing to decompress
            return batch[HEADER_SIZE:].toreadonly()
        try:
            return decompress(codec, batch[HEADER_SIZE:], _SECTION_BYTES)
        except Oversized:
            return None

    def _filled(self, stretches: Sequence[_SectionPart], counts: Counts) -> pa.RecordBatch:
        rows = RowsToFill(counts, self._wanted)
        for header, section, at, to in stretches:
            stamped = bool(header.attributes & TIMESTAMP_TYPE_BIT)
            bounds = (at, to, header.base_offset, _base(header), int(stamped), self._first, self._end)
            rows.fill(np.frombuffer(section, np.uint8), *bounds)
        return rows.batch(self._schema, self._topic, self._partition)

    def _one_by_one(self, header: BatchHeader, batch: memoryview) -> Iterator[pa.RecordBatch]:
        """Yield a batch's rows by the walk in Python, the judge of damage."""
        kind = _timestamp_type(header, batch)
        rows = RowsOfRecords(kind)
        for record in pieces.records(header, batch):
            if self._first <= record.offset < self._end:
                rows.add(record)
                if len(rows) >= _PIECE_ROWS or rows.size >= ROWS_BYTES:
                    yield rows.batch(self._schema, self._topic, self._partition)
                    rows = RowsOfRecords(kind)
        if len(rows):
            yield rows.batch(self._schema, self._topic, self._partition)


def _base(header: BatchHeader) -> int:
    return header.max_timestamp if header.attributes & TIMESTAMP_TYPE_BIT else header.base_timestamp


def _timestamp_type(header: BatchHeader, batch: memoryview) -> int:
    if header.magic == 0:
        return _NO_TIMESTAMP_TYPE
    attributes = header.attributes if header.magic == MAGIC else batch[_OLD_ATTRIBUTES_AT]
    return int(bool(attributes & TIMESTAMP_TYPE_BIT))
