"""Rows as record batches: kafka-python reads what was written, and so does `decoded`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import NOW, Row, brief, table, table_rows
from tests.support.built import batches_in, read_back

from logs import as_rows
from sparkmirror.arrow.decoding import RECORDS, decoded
from sparkmirror.arrow.encoding import EncodedBatch, encode
from sparkmirror.arrow.row_columns import RowColumns
from sparkmirror.kafka.wire.batches import HEADER_SIZE, BatchHeader, batch_headers
from sparkmirror.kafka.wire.codecs import Codec
from sparkmirror.kafka.wire.pieces import RawRecord


def encoded(
    columns: RowColumns, rows: list[int], codec: int = 0, most: int = 1 << 20, sequence: int = 0
) -> EncodedBatch:
    return encode(
        columns,
        np.array(rows, np.int64),
        producer_id=1234,
        producer_epoch=7,
        sequence=sequence,
        codec=Codec(codec),
        most=most,
    )


def header_of(batch: EncodedBatch) -> BatchHeader:
    ((_, header),) = batch_headers(batch.data)
    return header


def wanted(rows: list[Row]) -> list[RawRecord]:
    return [
        RawRecord(
            index,
            row.timestamp,
            row.key,
            row.value,
            tuple((name.encode(), value) for name, value in row.headers or ()),
        )
        for index, row in enumerate(rows)
    ]


@brief
@given(table_rows.filter(bool), st.data(), st.integers(0, 9), st.booleans(), st.integers(0, 4))
def test_what_was_written_is_read(rows: list[Row], data: st.DataObject, before: int, large: bool, codec: int) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=20))
    batch = encoded(RowColumns.of(table(rows, before=before, large=large), NOW), chosen, codec)
    records = wanted([rows[index] for index in chosen])
    assert batch.records == len(chosen)
    assert read_back(bytes(batch.data)) == records
    names = [name for name in RECORDS.names if name != "timestampType"]
    (made,) = decoded([(header_of(batch), batch.data)], "t", 1, 0, 100, names)
    at = made.schema.get_field_index("timestamp")
    made = made.set_column(at, "timestamp", made.column(at).view(pa.int64()))
    assert made.to_pylist() == as_rows(records, "t", 1)
    header = header_of(batch)
    assert (header.base_timestamp, header.max_timestamp) == (records[0].timestamp, max(r.timestamp for r in records))
    assert (header.base_offset, header.leader_epoch, header.last_offset_delta) == (0, -1, len(chosen) - 1)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (1234, 7, 0)
    assert header.attributes == codec


@brief
@given(table_rows.filter(bool), st.integers(0, 2000))
def test_as_many_rows_as_fit(rows: list[Row], most: int) -> None:
    columns = RowColumns.of(table(rows), NOW)
    at = 0
    while at < len(rows):
        left = list(range(at, len(rows)))
        batch = encoded(columns, left, most=most)
        assert len(batch.data) <= most or batch.records == 1
        if batch.records < len(left):
            assert len(encoded(columns, left[: batch.records + 1]).data) > most
        at += batch.records


def test_the_sequence_wraps() -> None:
    columns = RowColumns.of(table([Row(b"k", b"v", None, 1)]), NOW)
    for sequence, written in ((0, 0), ((1 << 31) - 1, (1 << 31) - 1), (1 << 31, 0), ((1 << 40) + 5, 5)):
        assert header_of(encoded(columns, [0], sequence=sequence)).base_sequence == written


def test_rows_without_a_time_have_the_time_of_writing() -> None:
    columns = RowColumns.of(pa.RecordBatch.from_pydict({"value": ["a", "b"]}), NOW)
    assert not columns.timed
    assert [record.timestamp for record in read_back(bytes(encoded(columns, [1, 0]).data))] == [NOW, NOW]


def test_only_one_batch_is_written() -> None:
    columns = RowColumns.of(pa.RecordBatch.from_pydict({"value": ["a" * 100] * 50}), NOW)
    batch = encoded(columns, list(range(50)), most=HEADER_SIZE + 1000)
    assert 0 < batch.records < 50
    assert len(batches_in(bytes(batch.data))) == 1


@pytest.mark.parametrize("rows", [[], [-1], [2], [0, 5]])
def test_rows_that_are_not_there(rows: list[int]) -> None:
    columns = RowColumns.of(pa.RecordBatch.from_pydict({"value": ["a", "b"]}), NOW)
    with pytest.raises(ValueError, match="rows to encode out of 2"):
        encoded(columns, rows)
