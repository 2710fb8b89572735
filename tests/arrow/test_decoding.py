"""Record batches as Arrow's columns: the rows that the walk in Python finds, and its errors."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import brief
from tests.support.built import Content, contents, timestamps

from logs import Batches, as_rows, log
from sparkmirror.arrow import decoding
from sparkmirror.arrow.decoding import RECORDS, decoded
from sparkmirror.kafka.wire.batches import CONTROL_BIT, HEADER_SIZE
from sparkmirror.kafka.wire.pieces import RawRecord, records

EVERY = 1 << 62
PLAIN_NAMES = [name for name in RECORDS.names if name != "timestampType"]


def rows_of(batches: Batches, first: int, end: int, names: Sequence[str]) -> list[dict[str, object]]:
    rows = []
    for made in decoded(batches, "orders", 3, first, end, names):
        made.validate(full=True)
        assert made.schema.equals(pa.schema([RECORDS.field(name) for name in names]))
        assert made.num_rows
        at = made.schema.get_field_index("timestamp")
        if at >= 0:
            made = made.set_column(at, "timestamp", made.column(at).view(pa.int64()))
        rows += made.to_pylist()
    return rows


def one(size: int, records: int = 1, codec: int = 0, first: int = 0) -> Content:
    made = [RawRecord(first + index, 1000 + index, b"k", b"v" * size, ()) for index in range(records)]
    return Content(2, codec, made, first + records)


@brief
@given(contents(), st.integers(0, 60_000), st.integers(0, 60_000), st.lists(st.sampled_from(PLAIN_NAMES), unique=True))
def test_rows_are_the_walks(made: list[Content], skipped: int, left: int, names: list[str]) -> None:
    wanted = [record for content in made for record in content.consumed()]
    begin = wanted[0].offset if wanted else 0
    first, end = begin + skipped % 50, begin + skipped + left
    if names:
        rows = as_rows([record for record in wanted if first <= record.offset < end], "orders", 3)
        assert rows_of(log(made), first, end, names) == [{name: row[name] for name in names} for row in rows]
    assert rows_of(log(made), 0, EVERY, PLAIN_NAMES) == as_rows(wanted, "orders", 3)


@brief
@given(contents(), st.integers(0, 1 << 40))
def test_changed_bytes_give_the_walks_rows_or_its_error(made: list[Content], seed: int) -> None:
    batches = log(made, seed)
    try:
        wanted = as_rows([record for header, view in batches for record in records(header, view)], "orders", 3)
    except UnicodeDecodeError:
        return  # names of headers need not be UTF-8: the rows have their bytes
    except ValueError as error:
        reason = str(error)
    else:
        assert rows_of(batches, 0, EVERY, PLAIN_NAMES) == wanted
        return
    with pytest.raises(ValueError, match=r"^orders-3: the batch at offset \d+ can't be read") as raised:
        rows_of(batches, 0, EVERY, PLAIN_NAMES)
    assert reason in str(raised.value)


@brief
@given(st.sampled_from((0, 1, 2)), timestamps.filter(lambda stamp: stamp >= 0))
def test_timestamp_types(magic: int, appended: int) -> None:
    record = RawRecord(7, 12345 if magic else -1, b"k", b"v", ())
    (created,) = rows_of(log([Content(magic, 0, [record], 8)]), 0, EVERY, ["timestampType", "timestamp"])
    assert created == (
        {"timestampType": 0, "timestamp": 12_345_000} if magic else {"timestampType": -1, "timestamp": -1000}
    )
    if magic:
        (stamped,) = rows_of(log([Content(magic, 0, [record], 8, appended)]), 0, EVERY, ["timestampType", "timestamp"])
        assert stamped == {"timestampType": 1, "timestamp": appended * 1000}


def test_a_changed_byte_without_a_new_crc_is_named() -> None:
    ((header, view),) = log([one(100, first=41)])
    data = bytearray(view)
    data[HEADER_SIZE + 20] ^= 1
    with pytest.raises(ValueError, match="orders-3: the batch at offset 41 can't be read: its CRC does not match"):
        rows_of([(header, memoryview(data))], 0, EVERY, ["offset"])


def test_a_batch_that_is_cut_off_is_named() -> None:
    ((header, view),) = log([one(100)])
    with pytest.raises(ValueError, match="orders-3: the batch at offset 0 can't be read: it is cut off, 100 of "):
        rows_of([(header, view[:100])], 0, EVERY, ["offset"])


def test_transaction_markers_are_left_out() -> None:
    ((header, view),) = log([one(3)])
    assert rows_of([(header._replace(attributes=CONTROL_BIT), view)], 0, EVERY, ["offset"]) == []


def test_many_records_come_in_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "ROWS_BYTES", 5000)
    contents = [one(400, 60, 3), one(9000, 1, 4, first=60), one(10, 500, 0, first=61)]
    made = list(decoded(log(contents), "t", 0, 0, EVERY, ["value", "offset"]))
    assert len(made) > 7
    assert max(batch.nbytes for batch in made) < 5000 + 9100
    assert [offset for batch in made for offset in batch.column("offset").to_pylist()] == list(range(561))
    assert [len(value) for batch in made for value in batch.column("value").to_pylist()] == [400] * 60 + [9000] + [
        10
    ] * 500


def test_unwanted_bytes_are_not_held_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "_HELD_BYTES", 20_000)
    contents = [one(4000, 2, 3, first=2 * index) for index in range(20)]
    made = list(decoded(log(contents), "t", 0, 0, EVERY, ["offset"]))
    assert [batch.num_rows for batch in made] == [6] * 6 + [4]


@pytest.mark.parametrize("codec", range(5))
def test_a_batch_too_large_to_unpack_at_once_comes_in_pieces(monkeypatch: pytest.MonkeyPatch, codec: int) -> None:
    monkeypatch.setattr(decoding, "_SECTION_BYTES", 10_000)
    contents = [one(50, 10, codec), one(200, 300, codec, first=10), one(50, 10, codec, first=310)]
    rows = rows_of(log(contents), 5, 315, ["offset", "value"])
    assert [row["offset"] for row in rows] == list(range(5, 315))


def test_a_timestamp_that_no_row_can_hold_is_named_and_can_be_left_out() -> None:
    content = Content(2, 0, [RawRecord(4, 1 << 61, None, b"v", ())], 5)
    with pytest.raises(ValueError, match="the record at offset 4 has the timestamp 2305843009213693952 ms"):
        rows_of(log([content]), 0, EVERY, ["timestamp"])
    assert rows_of(log([content]), 0, EVERY, ["offset"]) == [{"offset": 4}]


def test_names_of_headers_that_are_no_text_are_kept() -> None:
    content = Content(2, 0, [RawRecord(0, 1000, None, b"v", ((b"name", b"x"),))], 1)
    ((header, view),) = log([content])
    data = bytearray(view)
    at = bytes(data).index(b"name")
    data[at] = 0xFF
    ((sound, again),) = [(header._replace(crc=_crc(data)), memoryview(data))]
    (made,) = decoded([(sound, again)], "t", 0, 0, EVERY, ["headers"])
    assert made.column(0).values.field("key").cast(pa.binary()).to_pylist() == [b"\xffame"]


def _crc(data: bytearray) -> int:
    from crc32c import crc32c

    return int(crc32c(data[21:]))
