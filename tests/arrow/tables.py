"""Rows for the tests of Arrow's columns, and the loops that the columns go through."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import NamedTuple

import pyarrow as pa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from sparkmirror.arrow import decoded_rows, decoding, encoding, row_columns

HEADER_LIST = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
FUZZ = int(os.environ.get("SPARKMIRROR_FUZZ", "80"))
brief = settings(max_examples=FUZZ, suppress_health_check=[HealthCheck.too_slow], deadline=None)
NOW = 1_700_000_000_123


class Row(NamedTuple):
    """A row to write."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] | None
    timestamp: int


def table(rows: Sequence[Row], *, before: int = 0, large: bool = False) -> pa.RecordBatch:
    """The rows as Arrow has them; with rows cut off `before` them, so that all buffers begin elsewhere."""
    junk = [Row(b"junk", b"more junk", (("junk", None), ("k", b"")), 3)] * before
    binary = pa.large_binary() if large else pa.binary()
    every = [*junk, *rows]
    listed = [
        None if row.headers is None else [{"key": name, "value": value} for name, value in row.headers] for row in every
    ]
    made = pa.RecordBatch.from_arrays(
        [
            pa.array([row.key for row in every], binary),
            pa.array([row.value for row in every], binary),
            pa.array(listed, HEADER_LIST),
            pa.array([row.timestamp for row in every], pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC")),
        ],
        names=["key", "value", "headers", "timestamp"],
    )
    return made.slice(before)


@contextmanager
def loops(module: ModuleType) -> Iterator[None]:
    """Let the columns go through these loops."""
    users = (row_columns, encoding, decoding, decoded_rows)
    held = [user.record_kernels for user in users]
    for user in users:
        user.record_kernels = module  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for user, before in zip(users, held, strict=True):
            user.record_kernels = before  # type: ignore[attr-defined]


small = st.none() | st.binary(max_size=30)
values = st.none() | st.binary(max_size=300) | st.builds(lambda size: b"v" * size, st.integers(0, 5000))
headers = st.none() | st.lists(st.tuples(st.text(max_size=5), small), max_size=3).map(tuple)
stamps = st.integers(1_700_000_000_000, 1_700_000_000_000 + 2**36) | st.integers(0, 2**49) | st.just(-1)
table_rows = st.lists(st.builds(Row, small, values, headers, stamps), max_size=12)
