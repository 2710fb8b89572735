"""Columns of rows to write to Kafka, as views over Arrow's buffers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkmirror.arrow.byte_columns import ByteColumn, HeaderColumn
from sparkmirror.arrow.loops import record_kernels
from sparkmirror.errors import RowsRefused

Longs = npt.NDArray[np.int64]

COLUMNS = ("key", "value", "headers", "topic", "partition", "timestamp")
"""Columns that may be written: those of Spark's Kafka sink, and `timestamp`."""

_MS_PER = {"s": (1000, 1), "ms": (1, 1), "us": (1, 1000), "ns": (1, 1_000_000)}
"""Factor and divisor that make milliseconds out of a unit of Arrow's."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowColumns:
    """Rows to write: a column for each field of their records."""

    count: int
    key: ByteColumn
    value: ByteColumn
    headers: HeaderColumn
    timestamps: Longs
    """Timestamps in milliseconds."""
    timed: bool
    """True if the rows have timestamps of their own."""
    partition: Longs | None
    """Partitions asked for, -1 where a row asks for none.

    None without such a column.
    """
    topic: npt.NDArray[np.object_] | None
    """Topics asked for, as `str`, or None where a row asks for none.

    None without such a column.
    """

    @classmethod
    def of(cls, batch: pa.RecordBatch, now_ms: int) -> Self:
        """Return views over a RecordBatch's columns.

        Rows of a batch without timestamps get `now_ms`. Raises `RowsRefused`.
        """
        names = batch.schema.names
        for name in names:
            if name not in COLUMNS:
                raise RowsRefused(name, f"it can't be written; rename or drop it (there are {', '.join(COLUMNS)})")
            if names.count(name) > 1:
                raise RowsRefused(name, "there are several; drop all but one")
        if "value" not in names:
            raise RowsRefused("value", "it is missing; select what is to be written as value")
        columns = dict(zip(names, batch.columns, strict=True))
        count = batch.num_rows
        timed = "timestamp" in columns
        return cls(
            count=count,
            key=_bytes("key", columns["key"]) if "key" in columns else ByteColumn.nulls(count),
            value=_bytes("value", columns["value"]),
            headers=_headers(columns["headers"]) if "headers" in columns else HeaderColumn.none(count),
            timestamps=_milliseconds(columns["timestamp"]) if timed else np.full(count, now_ms, np.int64),
            timed=timed,
            partition=_partitions(columns["partition"]) if "partition" in columns else None,
            topic=_topics(columns["topic"]) if "topic" in columns else None,
        )

    def digests(self, with_time: bool) -> Longs:
        """Return a number of 62 bits for each row's key, value and headers.

        Equal rows have equal numbers, on each machine. Null is not empty. `with_time` takes the timestamp in.
        """
        made = np.empty(self.count, np.int64)
        done = record_kernels.digests(
            self.timestamps, *(*self.key.parts, *self.value.parts, *self.headers.parts), int(with_time), made
        )
        return _sound(done, made)

    def partitions(self, count: int, keyless: int) -> Longs:
        """Return each row's partition out of `count`.

        Rows with a key get the one of Kafka's default partitioner, others get `keyless`.
        """
        made = np.empty(self.count, np.int64)
        return _sound(record_kernels.partitions(*self.key.parts, count, keyless, made), made)


def _sound(done: int, made: Longs) -> Longs:
    if done < 0:
        raise ValueError("an Arrow column whose bounds lie outside its bytes")
    return made


def _bytes(name: str, column: pa.Array) -> ByteColumn:
    made = ByteColumn.of(column)
    if made is None:
        raise RowsRefused(name, f"its type is {column.type}, and Kafka takes bytes; cast it to binary or string")
    return made


def _headers(column: pa.Array) -> HeaderColumn:
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    if pa.types.is_null(column.type):
        return HeaderColumn.none(len(column))
    wanted = "array<struct<key: string, value: binary>>"
    is_list = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
    if not is_list or not pa.types.is_struct(column.type.value_type):
        raise RowsRefused("headers", f"its type is {column.type}; cast it to {wanted}")
    names = [column.type.value_type.field(index).name for index in range(column.type.value_type.num_fields)]
    if sorted(names) != ["key", "value"]:
        raise RowsRefused("headers", f"a header has the fields {', '.join(names)}; cast it to {wanted}")
    lengths = column.value_lengths().fill_null(0).to_numpy()
    bounds = np.zeros(len(column) + 1, np.int64)
    np.cumsum(lengths, out=bounds[1:])
    headers = column.flatten()
    if headers.null_count:
        raise RowsRefused("headers", "a header is null; filter nulls out of the array")
    fields = dict(zip(names, headers.flatten(), strict=True))
    header_names, contents = ByteColumn.of(fields["key"]), ByteColumn.of(fields["value"])
    if header_names is None or contents is None:
        raise RowsRefused("headers", f"its type is {column.type}; cast it to {wanted}")
    if fields["key"].null_count:
        raise RowsRefused("headers", "a header's key is null, and Kafka has none such; filter it out")
    return HeaderColumn(bounds, header_names, contents)


def _milliseconds(column: pa.Array) -> Longs:
    kind = column.type
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        raise RowsRefused("timestamp", f"its type is {kind}; cast it to timestamp, with a time zone")
    if column.null_count:
        raise RowsRefused("timestamp", "a row has none; fill it, or drop the column for the time of writing")
    factor, divisor = _MS_PER[kind.unit]
    given: Longs = column.view(pa.int64()).to_numpy()
    bound = record_kernels.FARTHEST_MS
    most = bound * divisor // factor
    if len(given) and not -most < int(given.min()) <= int(given.max()) < most:
        raise RowsRefused("timestamp", f"a row's is beyond {bound:,} ms, which Spark can't read again; correct it")
    return np.ascontiguousarray(given // divisor * factor)


def _partitions(column: pa.Array) -> Longs:
    if not pa.types.is_integer(column.type):
        raise RowsRefused("partition", f"its type is {column.type}; cast it to int")
    given = np.ascontiguousarray(column.cast(pa.int64()).fill_null(-1).to_numpy())
    wrong = given < 0
    if int(np.count_nonzero(wrong)) != column.null_count:
        raise RowsRefused("partition", f"a row has {_first_wrong(column)}; give a partition's number, or null")
    return given


def _first_wrong(column: pa.Array) -> Any:
    return next(value for value in column.to_pylist() if value is not None and value < 0)


def _topics(column: pa.Array) -> npt.NDArray[np.object_]:
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    kind = column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        raise RowsRefused("topic", f"its type is {kind}; cast it to string")
    named: npt.NDArray[np.object_] = column.to_numpy(zero_copy_only=False)
    return named
