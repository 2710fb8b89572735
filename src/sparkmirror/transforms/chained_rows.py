"""A chain at work on the rows of Spark's Kafka source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sparkmirror.errors import RowsRefused
from sparkmirror.transforms.chain import Chain
from sparkmirror.transforms.record import Headers, Record

COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
"""Columns for transforms; further columns stay."""

_PER_MS = {"s": (1000, 1), "ms": (1, 1), "us": (1, 1000), "ns": (1, 1_000_000)}
"""Factor and divisor that make milliseconds out of a unit of Arrow's."""


def apply_to_batches(batches: Iterator[pa.RecordBatch], chain: Chain) -> Iterator[pa.RecordBatch]:
    """Yield the rows changed by a chain, in order, without the dropped rows.

    Raises `TransformFailed`, and `RowsRefused` for a missing column. A row's time and offset stay.
    """
    for batch in batches:
        yield _changed(batch, chain) if chain else batch


def _changed(batch: pa.RecordBatch, chain: Chain) -> pa.RecordBatch:
    given = _records(batch)
    made = [chain.apply(record) for record in given]
    kept = [number for number, record in enumerate(made) if record is not None]
    before = [given[number] for number in kept]
    after = [record for record in made if record is not None]
    rows = batch if len(kept) == len(given) else batch.take(pa.array(kept, pa.int64()))
    for name, value_of, column_of in _CHANGING:
        values = [value_of(record) for record in after]
        if all(value == value_of(record) for value, record in zip(values, before, strict=True)):
            continue
        number = rows.schema.get_field_index(name)
        field = rows.schema.field(number)
        rows = rows.set_column(number, field, column_of(values, field.type))
    return rows


def _records(batch: pa.RecordBatch) -> list[Record]:
    for name in COLUMNS:
        if name not in batch.schema.names:
            raise RowsRefused(name, "it is missing, and transforms may look at it; select it")
    columns = {name: batch.column(name) for name in COLUMNS}
    return [
        Record(
            topic=topic, partition=partition, offset=offset, timestamp=timestamp, key=key, value=value, headers=headers
        )
        for topic, partition, offset, timestamp, key, value, headers in zip(
            columns["topic"].to_pylist(),
            columns["partition"].to_pylist(),
            columns["offset"].to_pylist(),
            _milliseconds(columns["timestamp"]),
            columns["key"].to_pylist(),
            columns["value"].to_pylist(),
            _headers(columns["headers"]),
            strict=True,
        )
    ]


def _milliseconds(column: pa.Array) -> list[int | None]:
    if not pa.types.is_timestamp(column.type):
        raise RowsRefused("timestamp", f"its type is {column.type}; cast it to timestamp")
    factor, divisor = _PER_MS[column.type.unit]
    return [None if time is None else time * factor // divisor for time in column.view(pa.int64()).to_pylist()]


def _headers(column: pa.Array) -> list[Headers]:
    """Return each row's headers.

    A name that is no UTF-8 keeps its bytes as surrogates.
    """
    headers = column.flatten()
    names = headers.field("key").cast(pa.large_binary()).to_pylist()
    contents = headers.field("value").to_pylist()
    pairs = [(name.decode("utf-8", "surrogateescape"), content) for name, content in zip(names, contents, strict=True)]
    ends = np.cumsum(column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)).tolist()
    return [tuple(pairs[start:end]) for start, end in zip([0, *ends], ends, strict=False)]


def _plain_column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(values, kind)


def _header_column(lists: Sequence[Headers], kind: pa.DataType) -> pa.Array:
    """Return header lists; null for none, as in Spark's Kafka source."""
    headers = [header for row in lists for header in row]
    names = pa.array([name.encode("utf-8", "surrogateescape") for name, _ in headers], pa.binary()).view(pa.string())
    contents = pa.array([content for _, content in headers], pa.binary())
    element = pa.struct([("key", pa.string()), ("value", pa.binary())])
    structs = pa.StructArray.from_arrays([names, contents], fields=list(element))
    bounds = np.zeros(len(lists) + 1, np.int32)
    np.cumsum([len(row) for row in lists], out=bounds[1:])
    absent = pa.array([not row for row in lists], pa.bool_())
    made = pa.ListArray.from_arrays(pa.array(bounds), structs, mask=absent)
    return made.cast(kind)


_CHANGING: tuple[
    tuple[str, Callable[[Record], Any], Callable[[Sequence[Any], pa.DataType], pa.Array]],
    ...,
] = (
    ("topic", lambda record: record.topic, _plain_column),
    ("key", lambda record: record.key, _plain_column),
    ("value", lambda record: record.value, _plain_column),
    ("headers", lambda record: record.headers, _header_column),
)
"""Columns that a chain may change.

Each has a function for a record's value, and another for the column.
"""
