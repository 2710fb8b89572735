"""Columns of rows to write: their types, slices and refusals; digests, and Kafka's partitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2
from tables import HEADER_LIST, NOW, Row, brief, table, table_rows
from test_encoding import encoded
from tests.support.built import read_back

from sparkmirror.arrow.row_columns import RowColumns
from sparkmirror.errors import RowsRefused, SparkMirrorError

UTC = pa.timestamp("us", "UTC")
OTHER_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("content", pa.binary())]))


def columns(**arrays: Any) -> RowColumns:
    return RowColumns.of(pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays)), NOW)


def values(made: RowColumns) -> list[bytes | None]:
    return [record.value for record in read_back(bytes(encoded(made, list(range(made.count))).data))]


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.binary(), pa.string(), pa.large_binary(), pa.large_string(), pa.binary_view(), pa.string_view()),
        *(pa.binary(3), pa.dictionary(pa.int32(), pa.string())),
    ],
    ids=str,
)
def test_types_of_bytes(kind: pa.DataType) -> None:
    given = ["junk"[:3], "abc", None, "xyz", "end"]
    array = (
        pa.array(given, pa.string()).cast(pa.binary()).cast(kind)
        if kind != pa.binary(3)
        else pa.array([None if text is None else text.encode() for text in given], kind)
    )
    for first in range(3):
        wanted = [None if text is None else text.encode() for text in given[first:]]
        assert values(columns(value=array[first:])) == wanted


def test_no_rows() -> None:
    made = RowColumns.of(table([]), NOW)
    assert made.count == 0
    assert made.digests(True).tolist() == made.partitions(3, 0).tolist() == []
    made = columns(value=pa.array([], pa.string()), headers=pa.array([], HEADER_LIST), topic=pa.array([], pa.string()))
    assert made.digests(False).tolist() == []


def test_nulls_without_a_type() -> None:
    assert values(columns(value=pa.nulls(2), key=pa.nulls(2), headers=pa.nulls(2))) == [None, None]


def test_asked_partitions_and_topics() -> None:
    made = columns(
        value=pa.array(["a", "b", "c"]),
        partition=pa.array([2, None, 0], pa.int32()),
        topic=pa.array(["x", None, "y"]),
    )
    assert made.partition is not None
    assert made.topic is not None
    assert made.partition.tolist() == [2, -1, 0]
    assert made.topic.tolist() == ["x", None, "y"]
    made = columns(value=pa.array(["a"]))
    assert made.partition is None
    assert made.topic is None


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_units_of_time(unit: str) -> None:
    stamps = pa.array([0, 1_700_000_000_000, -2000], pa.timestamp("ms", "Europe/Zurich")).cast(
        pa.timestamp(unit, "UTC")
    )
    made = columns(value=pa.array(["a"] * 3), timestamp=stamps)
    assert made.timed
    assert made.timestamps.tolist() == [0, 1_700_000_000_000, -2000]


def test_a_part_of_a_millisecond_is_cut_off() -> None:
    made = columns(value=pa.array(["a"] * 2), timestamp=pa.array([1_999, -1], UTC))
    assert made.timestamps.tolist() == [1, -1]


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no value": ({"key": pa.array(["a"])}, "column value: it is missing; select what is to be written as value"),
    "a value of numbers": (
        {"value": pa.array([1])},
        "column value: its type is int64, and Kafka takes bytes; cast it to binary or string",
    ),
    "an unknown column": (
        {"value": pa.array(["a"]), "offset": pa.array([1])},
        "column offset: it can't be written; rename or drop it "
        "(there are key, value, headers, topic, partition, timestamp)",
    ),
    "no time": (
        {"value": pa.array(["a", "b"]), "timestamp": pa.array([1, None], UTC)},
        "column timestamp: a row has none; fill it, or drop the column for the time of writing",
    ),
    "a number for a time": (
        {"value": pa.array(["a"]), "timestamp": pa.array([1])},
        "column timestamp: its type is int64; cast it to timestamp, with a time zone",
    ),
    "a time without a zone": (
        {"value": pa.array(["a"]), "timestamp": pa.array([1], pa.timestamp("us"))},
        "column timestamp: its type is timestamp[us]; cast it to timestamp, with a time zone",
    ),
    "a time far away": (
        {"value": pa.array(["a"]), "timestamp": pa.array([1 << 60], pa.timestamp("ms", "UTC"))},
        "column timestamp: a row's is beyond 4,503,599,627,370,496 ms, which Spark can't read again; correct it",
    ),
    "a negative partition": (
        {"value": pa.array(["a", "b"]), "partition": pa.array([None, -3])},
        "column partition: a row has -3; give a partition's number, or null",
    ),
    "a text for a partition": (
        {"value": pa.array(["a"]), "partition": pa.array(["1"])},
        "column partition: its type is string; cast it to int",
    ),
    "a number for a topic": (
        {"value": pa.array(["a"]), "topic": pa.array([1])},
        "column topic: its type is int64; cast it to string",
    ),
    "headers that are a map": (
        {"value": pa.array(["a"]), "headers": pa.array([[("a", b"b")]], pa.map_(pa.string(), pa.binary()))},
        "column headers: its type is map<string, binary>; cast it to array<struct<key: string, value: binary>>",
    ),
    "a header's other field": (
        {"value": pa.array(["a"]), "headers": pa.array([[{"key": "a", "content": b""}]], OTHER_HEADERS)},
        "column headers: a header has the fields key, content; cast it to array<struct<key: string, value: binary>>",
    ),
    "a header that is null": (
        {"value": pa.array(["a"]), "headers": pa.array([[None]], HEADER_LIST)},
        "column headers: a header is null; filter nulls out of the array",
    ),
    "a header without a key": (
        {"value": pa.array(["a"]), "headers": pa.array([[{"key": None, "value": b""}]], HEADER_LIST)},
        "column headers: a header's key is null, and Kafka has none such; filter it out",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_refusals(case: str) -> None:
    arrays, words = BAD[case]
    with pytest.raises(RowsRefused) as raised:
        columns(**arrays)
    assert str(raised.value) == words
    assert isinstance(raised.value, SparkMirrorError)
    assert raised.value.exit_code == 2


def test_two_columns_of_one_name() -> None:
    twice = pa.RecordBatch.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["value", "value"])
    with pytest.raises(RowsRefused, match=r"^column value: there are several; drop all but one$"):
        RowColumns.of(twice, NOW)


@brief
@given(table_rows, st.integers(0, 9), st.booleans())
def test_equal_rows_have_equal_digests_and_others_not(rows: list[Row], before: int, large: bool) -> None:
    rows = [row._replace(headers=row.headers or None) for row in rows]
    made = RowColumns.of(table(rows, before=before, large=large), NOW)
    digests = made.digests(True).tolist()
    assert min(digests, default=0) >= 0
    assert max(digests, default=0) < 1 << 62
    assert len(set(digests)) == len(set(rows))
    assert len(set(made.digests(False).tolist())) == len({row[:3] for row in rows})


def test_near_rows_have_other_digests() -> None:
    rows = [
        *(Row(None, b"", None, 1), Row(b"", None, None, 1), Row(b"", b"", None, 1), Row(None, None, None, 1)),
        *(Row(b"ab", b"c", None, 1), Row(b"a", b"bc", None, 1), Row(b"", b"abc", None, 1), Row(None, b"abc", None, 1)),
        *(Row(None, b"c", (("ab", None),), 1), Row(None, b"c", (("ab", b""),), 1), Row(None, b"c", (("a", b"b"),), 1)),
        *(Row(None, b"c", (("a", None), ("b", None)), 1), Row(None, b"\0" * 7, None, 1), Row(None, b"\0" * 8, None, 1)),
        *(Row(None, b"\0" * 14, None, 1), Row(None, b"\xff" * 7, None, 1), Row(None, b"\xff" * 6 + b"\x3f", None, 1)),
    ]
    assert len(set(RowColumns.of(table(rows), NOW).digests(False).tolist())) == len(rows)
    same = RowColumns.of(table([Row(b"k", b"v", None, 1), Row(b"k", b"v", (), 2)]), NOW)
    assert len(set(same.digests(False).tolist())) == 1
    assert len(set(same.digests(True).tolist())) == 2


def test_digests_never_change() -> None:
    """Those of one release are compared with another's."""
    made = RowColumns.of(table([Row(b"key", b"a value of some length", (("h", b"x"),), NOW)]), NOW)
    assert made.digests(True).tolist() == [3087476721297484359]


@brief
@given(st.lists(st.none() | st.binary(max_size=40), max_size=30), st.integers(1, 1000))
def test_partitions_are_kafkas(keys: list[bytes | None], count: int) -> None:
    made = columns(key=pa.array(keys, pa.binary()), value=pa.nulls(len(keys)))
    wanted = [-7 if key is None else (murmur2(key) & 0x7FFFFFFF) % count for key in keys]
    assert made.partitions(count, -7).tolist() == wanted


def test_bounds_outside_the_bytes_are_seen() -> None:
    made = columns(key=pa.array(["abc"]), value=pa.array(["abc"]))
    broken = RowColumns.of(pa.RecordBatch.from_pydict({"key": ["abc"], "value": ["abc"]}), NOW)
    broken.key.bounds[1] = 99
    for call in (
        lambda: broken.digests(False),
        lambda: broken.partitions(3, 0),
        lambda: encoded(broken, [0]),
    ):
        with pytest.raises(ValueError, match="whose bounds lie outside its bytes"):
            call()
    assert np.array_equal(made.partitions(1, 0), [0])
