"""Chains at work on record batches, as the reader and as Spark make them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from tests.transforms.both_ways import properties, stage
from tests.transforms.java_transforms import Condition, Stage

from sparkmirror.arrow.decoding import RECORDS
from sparkmirror.errors import RowsRefused, TransformFailed
from sparkmirror.transforms import Chain, apply_to_batches, parse_chain

ROWS: list[dict[str, Any]] = [
    {
        "key": b"k0",
        "value": b'{"a":1}',
        "offset": 10,
        "headers": [{"key": "h", "value": b"1"}, {"key": "h", "value": None}],
    },
    {"key": None, "value": None, "offset": 12, "headers": None},
    {"key": b"", "value": b'{"a":"x","b":[]}', "offset": 13, "headers": []},
    {"key": b"k3", "value": b"{}", "offset": 20, "headers": [{"key": "é", "value": b""}]},
]


def batch(rows: list[dict[str, Any]], schema: pa.Schema = RECORDS) -> pa.RecordBatch:
    common = {"topic": "us.orders", "partition": 3, "timestampType": 0}
    full = [{**common, "timestamp": 1_700_000_000_123_000 + number, **row} for number, row in enumerate(rows)]
    return pa.RecordBatch.from_pylist([{name: row[name] for name in schema.names} for row in full], schema=schema)


def chain(*stages: Stage) -> Chain:
    return parse_chain(properties(stages))


def applied(given: pa.RecordBatch, *stages: Stage) -> pa.RecordBatch:
    (made,) = apply_to_batches(iter([given]), chain(*stages))
    made.validate(full=True)
    return made


NO_TOMBSTONES = Stage(type="Filter", options={}, condition=Condition("RecordIsTombstone", {}))


def test_rows_are_changed_and_dropped_in_their_order() -> None:
    made = applied(
        batch(ROWS),
        NO_TOMBSTONES,
        stage("MaskField$Value", fields="a"),
        stage("RegexRouter", regex="us.(.*)", replacement="$1"),
        stage("InsertHeader", header="new", value_literal="x"),
        stage("ValueToKey", fields="a"),
    )
    assert made.schema == RECORDS
    assert made.column("offset").to_pylist() == [10, 13, 20]
    assert made.column("timestamp") == batch(ROWS).column("timestamp").take(pa.array([0, 2, 3]))
    assert made.column("topic").to_pylist() == ["orders"] * 3
    assert made.column("value").to_pylist() == [b'{"a":0}', b'{"a":"","b":[]}', b'{"a":null}']
    assert made.column("key").to_pylist() == [b'{"a":0}', b'{"a":""}', b'{"a":null}']
    assert [[(each["key"], each["value"]) for each in row] for row in made.column("headers").to_pylist()] == [
        [("h", b"1"), ("h", None), ("new", b"x")],
        [("new", b"x")],
        [("é", b""), ("new", b"x")],
    ]


def test_what_no_transform_changes_stays_as_it_is() -> None:
    given = batch(ROWS)
    made = applied(given, stage("HoistField$Value", field="x"))
    for name in RECORDS.names:
        assert made.column(name).equals(given.column(name)) == (name != "value"), name
    assert applied(given, stage("DropHeaders", headers="other")).equals(given)
    (same,) = apply_to_batches(iter([given]), Chain())
    assert same is given


def test_no_headers_left_is_null() -> None:
    made = applied(batch(ROWS), stage("DropHeaders", headers="h"))
    assert made.column("headers").to_pylist() == [None, None, None, [{"key": "é", "value": b""}]]


def test_sliced_batches_and_further_columns() -> None:
    schema = RECORDS.append(pa.field("more", pa.string()))
    given = batch([{**row, "more": str(number)} for number, row in enumerate(ROWS * 3)], schema).slice(3, 7)
    made = applied(given, NO_TOMBSTONES, stage("HeaderFrom$Value", fields="a", headers="a", operation="copy"))
    assert made.column("more").to_pylist() == ["3", "4", "6", "7", "8"]
    assert [len(row) for row in made.column("headers").to_pylist()] == [2, 3, 1, 2, 3]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", None])
@pytest.mark.parametrize("unit", ["us", "ms", "ns"])
def test_spark_and_arrow_types(zone: str | None, unit: str) -> None:
    element = pa.struct([pa.field("key", pa.large_string()), pa.field("value", pa.large_binary())])
    types = {
        "key": pa.large_binary(),
        "value": pa.large_binary(),
        "topic": pa.dictionary(pa.int32(), pa.string()),
        "timestamp": pa.timestamp(unit, zone),
        "headers": pa.large_list(pa.field("item", element)),
    }
    schema = pa.schema([pa.field(field.name, types.get(field.name, field.type)) for field in RECORDS])
    given = (
        batch(ROWS).cast(schema)
        if unit != "ms"
        else batch([{**row, "timestamp": 1_700_000_000_123_000} for row in ROWS]).cast(schema)
    )
    made = applied(
        given,
        stage("TimestampRouter", timestamp_format="SSS"),
        stage("HoistField$Value", field="x"),
        stage("InsertHeader", header="n", value_literal="null"),
    )
    assert made.schema == schema
    assert made.column("topic").to_pylist() == ["us.orders-123"] * 4
    assert made.column("value").to_pylist()[0] == b'{"x":{"a":1}}'
    assert made.column("headers").to_pylist()[1] == [{"key": "n", "value": None}]


def test_a_header_name_that_is_no_text_keeps_its_bytes() -> None:
    names = pa.array([b"\xff\xfe", b"h"], pa.binary()).view(pa.string())
    structs = pa.StructArray.from_arrays([names, pa.array([b"1", b"2"])], names=["key", "value"])
    lists = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), structs)
    given = batch(ROWS[:1])
    number = RECORDS.get_field_index("headers")
    given = given.set_column(number, RECORDS.field(number), lists.cast(RECORDS.field(number).type))
    (made,) = apply_to_batches(iter([given]), chain(stage("DropHeaders", headers="h")))
    assert made.column("headers").flatten().field("key").view(pa.binary()).to_pylist() == [b"\xff\xfe"]


def test_all_dropped_and_no_rows() -> None:
    for rows in (ROWS, []):
        made = applied(batch(rows), stage("Filter"))
        assert made.num_rows == 0
        assert made.schema == RECORDS


def test_batches_come_one_by_one() -> None:
    asked: list[int] = []

    def given() -> Iterator[pa.RecordBatch]:
        for number in range(3):
            asked.append(number)
            yield batch(ROWS[:1])

    made = apply_to_batches(given(), chain(stage("HoistField$Value", field="x")))
    next(made)
    assert asked == [0]
    assert len(list(made)) == 2


def test_an_error_has_the_offset() -> None:
    with pytest.raises(TransformFailed, match=r"us\.orders-3 at offset 12 can't be transformed: it is null"):
        applied(batch(ROWS), stage("MaskField$Value", fields="a"))


def test_a_missing_column() -> None:
    given = batch(ROWS).drop_columns(["headers"])
    with pytest.raises(RowsRefused, match="column headers: it is missing, and transforms may look at it; select it"):
        applied(given, stage("HoistField$Value", field="x"))
