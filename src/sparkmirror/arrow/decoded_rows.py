"""Rows of a RecordBatch in the making.

Compiled loops fill them, or Python adds record after record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkmirror.arrow.loops import record_kernels
from sparkmirror.kafka.wire.pieces import RawRecord

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]

HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
HEADER_LIST = pa.list_(pa.field("element", HEADER))
"""Headers, as Spark's Kafka source has them."""
MICROSECONDS = pa.timestamp("us", "UTC")

Making = Mapping[str, Callable[[], pa.Array]]


class FilledBytes:
    """A binary column with room for measured bytes; no room if unwanted."""

    def __init__(self, count: int, size: int, *, wanted: bool) -> None:
        rows = count if wanted else 0
        self.bounds: Ints = np.zeros(rows + 1, np.int32)
        self.data: Bytes = np.empty(size, np.uint8)
        self.present: Bytes = np.empty(rows, np.uint8)

    @property
    def parts(self) -> tuple[Ints, Bytes, Bytes]:
        return self.bounds, self.data, self.present

    def array(self, kind: pa.DataType) -> pa.Array:
        nulls, valid = _validity(self.present)
        buffers = [valid, pa.py_buffer(self.bounds), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(kind, len(self.present), buffers, nulls)


class RowsToFill:
    """Columns with room for measured rows (`record_kernels.measured`)."""

    def __init__(self, counts: Longs, wanted: int) -> None:
        self._count = count = int(counts[record_kernels.ROWS])
        self._offsets: Longs = np.empty(count, np.int64)
        self._stamps: Longs = np.empty(count, np.int64)
        self._kinds: Ints = np.zeros(count, np.int32)
        self._key = FilledBytes(count, int(counts[record_kernels.KEY_BYTES]), wanted=bool(wanted & record_kernels.KEY))
        self._value = FilledBytes(
            count, int(counts[record_kernels.VALUE_BYTES]), wanted=bool(wanted & record_kernels.VALUE)
        )
        listed = bool(wanted & record_kernels.HEADER_LISTS)
        headers = int(counts[record_kernels.HEADERS])
        self._header_bounds: Ints = np.zeros(count + 1 if listed else 0, np.int32)
        self._names = FilledBytes(headers, int(counts[record_kernels.NAME_BYTES]), wanted=True)
        self._names.present[:] = 1
        self._contents = FilledBytes(headers, int(counts[record_kernels.CONTENT_BYTES]), wanted=True)
        self._filled: Longs = np.zeros(6, np.int64)

    def fill(
        self,
        section: Bytes,
        at: int,
        to: int,
        base_offset: int,
        base_timestamp: int,
        stamped: int,
        first: int,
        end: int,
    ) -> None:
        """Write the rows of a stretch of a section behind those written before."""
        before = int(self._filled[0])
        self._filled[:] = record_kernels.filled(
            *(section, at, to, base_offset, base_timestamp, stamped, first, end, self._filled),
            *(self._offsets, self._stamps, *self._key.parts, *self._value.parts),
            *(self._header_bounds, self._names.bounds, self._names.data, *self._contents.parts),
        )
        self._kinds[before : int(self._filled[0])] = stamped

    def batch(self, schema: pa.Schema, topic: str, partition: int) -> pa.RecordBatch:
        """Return the schema's columns."""
        if self._filled[0] != self._count:
            raise AssertionError(f"{self._count} rows were measured, {self._filled[0]} written")
        making: Making = {
            "key": lambda: self._key.array(pa.binary()),
            "value": lambda: self._value.array(pa.binary()),
            "offset": lambda: pa.array(self._offsets),
            "timestamp": lambda: pa.Array.from_buffers(
                MICROSECONDS, self._count, [None, pa.py_buffer(self._stamps)], 0
            ),
            "timestampType": lambda: pa.array(self._kinds),
            "headers": self._header_lists,
        }
        return _batch(schema, making, topic, partition, self._count)

    def _header_lists(self) -> pa.Array:
        headers = pa.StructArray.from_arrays(
            [self._names.array(pa.string()), self._contents.array(pa.binary())], fields=list(HEADER)
        )
        nulls, valid = _validity((np.diff(self._header_bounds) > 0).view(np.uint8))
        bounds = pa.py_buffer(self._header_bounds)
        return pa.Array.from_buffers(HEADER_LIST, self._count, [valid, bounds], nulls, children=[headers])


class RowsOfRecords:
    """Rows made of records, as Python reads them."""

    def __init__(self, timestamp_type: int) -> None:
        self._timestamp_type = timestamp_type
        self._records: list[RawRecord] = []
        self.size = 0
        """Bytes of keys and values."""

    def __len__(self) -> int:
        return len(self._records)

    def add(self, record: RawRecord) -> None:
        self._records.append(record)
        self.size += len(record.key or b"") + len(record.value or b"")

    def batch(self, schema: pa.Schema, topic: str, partition: int) -> pa.RecordBatch:
        """Return the schema's columns.

        Raises ValueError for a timestamp beyond Spark's range.
        """
        records = self._records
        making: Making = {
            "key": lambda: pa.array([record.key for record in records], pa.binary()),
            "value": lambda: pa.array([record.value for record in records], pa.binary()),
            "offset": lambda: pa.array([record.offset for record in records], pa.int64()),
            "timestamp": lambda: pa.array(list(map(_microseconds, records)), pa.int64()).view(MICROSECONDS),
            "timestampType": lambda: pa.array([self._timestamp_type] * len(records), pa.int32()),
            "headers": lambda: _listed(records),
        }
        return _batch(schema, making, topic, partition, len(records))


def _batch(schema: pa.Schema, making: Making, topic: str, partition: int, count: int) -> pa.RecordBatch:
    same: Making = {
        "topic": lambda: pa.repeat(pa.scalar(topic, pa.string()), count),
        "partition": lambda: pa.array(np.full(count, partition, np.int32)),
    }
    if not schema.names:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))
    return pa.RecordBatch.from_arrays([{**making, **same}[name]() for name in schema.names], schema=schema)


def _validity(present: Bytes) -> tuple[int, pa.Buffer | None]:
    """Return the number of nulls, and Arrow's bitmap; no bitmap for no nulls."""
    nulls = len(present) - int(np.count_nonzero(present))
    return nulls, pa.py_buffer(np.packbits(present, bitorder="little")) if nulls else None


def _microseconds(record: RawRecord) -> int:
    if not -record_kernels.FARTHEST_MS * 2 < record.timestamp < record_kernels.FARTHEST_MS * 2:
        raise ValueError(
            f"the record at offset {record.offset} has the timestamp {record.timestamp} ms, which Spark can't hold; "
            "leave the column timestamp out of the schema"
        )
    return record.timestamp * 1000


def _listed(records: list[RawRecord]) -> pa.Array:
    bounds = np.zeros(len(records) + 1, np.int32)
    np.cumsum([len(record.headers) for record in records], out=bounds[1:])
    headers = [header for record in records for header in record.headers]
    # A name may be no UTF-8, as consumers in Java take it: nothing checks it here.
    names = pa.array([name for name, _ in headers], pa.binary()).view(pa.string())
    contents = pa.array([content for _, content in headers], pa.binary())
    made = pa.StructArray.from_arrays([names, contents], fields=list(HEADER))
    nulls, valid = _validity((np.diff(bounds) > 0).view(np.uint8))
    return pa.Array.from_buffers(HEADER_LIST, len(records), [valid, pa.py_buffer(bounds)], nulls, children=[made])
