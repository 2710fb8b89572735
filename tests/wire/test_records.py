"""Records walked over and decoded, with kafka-python's reader as the judge."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.built import Content, batches_in, build, contents, source_batches

from sparkmirror.kafka.wire.batches import HEADER_SIZE, BatchHeader, batch_headers
from sparkmirror.kafka.wire.pieces import RawRecord, raw_parts, records

modest = settings(max_examples=80, deadline=None)


@modest
@given(contents())
def test_records_are_what_was_written(source: list[Content]) -> None:
    found = [record for header, batch in source_batches(source) for record in records(header, batch)]
    assert found == [record for content in source for record in content.consumed()]


@modest
@given(contents(magics=(2,)))
def test_records_are_what_kafka_python_reads(source: list[Content]) -> None:
    for content, (header, batch) in zip(source, source_batches(source), strict=True):
        (theirs,) = batches_in(build(content)) if content.records else ((),)
        assert [
            (one.offset, one.timestamp, one.key, one.value, [(name.decode(), value) for name, value in one.headers])
            for one in records(header, batch)
        ] == [(one.offset, one.timestamp, one.key, one.value, one.headers) for one in theirs]


@modest
@given(contents(magics=(0, 1)), st.integers(0, 4))
def test_an_old_record_has_the_body_it_would_have_in_a_new_format(source: list[Content], codec: int) -> None:
    """So that bodies are equal if keys, values and headers are, whatever format and codec."""
    for content, (header, batch) in zip(source, source_batches(source), strict=True):
        new = content._replace(magic=2, codec=codec)
        ((new_header, new_batch),) = source_batches([new])
        assert list(raw_parts(header, batch)) == list(raw_parts(new_header, new_batch))


@modest
@given(contents(magics=(2,)))
def test_different_records_have_different_bodies(source: list[Content]) -> None:
    bodies: dict[bytes, tuple[object, ...]] = {}
    for header, batch in source_batches(source):
        for record, (offset, timestamp, body) in zip(records(header, batch), raw_parts(header, batch), strict=True):
            assert (record.offset, record.timestamp) == (offset, timestamp)
            assert bodies.setdefault(body, record[2:]) == record[2:]
    assert len(set(bodies.values())) == len(bodies)


# --- what can't be read -------------------------------------------------------------------------------

WHOLE = Content(
    2,
    0,
    [
        RawRecord(0, 5, b"k" * 70, b"v" * 9000, ((b"name", b"content"), (b"none", None))),
        RawRecord(40_000, 2**40, None, b"v", ()),
    ],
    40_001,
)


def with_section(content: Content, section: bytes) -> tuple[BatchHeader, memoryview]:
    """Its batch with other bytes for records, the header's length right."""
    data = bytearray(build(content)[:HEADER_SIZE]) + section
    struct.pack_into(">i", data, 8, len(data) - 12)
    ((_, header),) = batch_headers(memoryview(data))
    return header, memoryview(data)


def test_records_that_are_cut_off_are_noticed() -> None:
    section = build(WHOLE)[HEADER_SIZE:]
    assert len(list(records(*with_section(WHOLE, section)))) == 2
    for end in (*range(100), *range(8990, len(section))):
        with pytest.raises(
            ValueError, match=r"the batch at offset 0 can't be read: (2 records announced, [012] found|it is cut off)"
        ):
            list(raw_parts(*with_section(WHOLE, section[:end])))


def test_bytes_after_the_records_are_noticed() -> None:
    with pytest.raises(ValueError, match="2 records announced, 2 found"):
        list(raw_parts(*with_section(WHOLE, build(WHOLE)[HEADER_SIZE:] + b"\0")))


@pytest.mark.parametrize(
    "body",
    [
        b"\x06ab",  # a key of three bytes
        b"\x01\x06ab",  # a value of three bytes
        b"\x01\x01",  # no count of headers
        b"\x01\x01\x02",  # one header, which isn't there
        b"\x01\x01\x01",  # -1 headers
        b"\x01\x01\x02\x01\x01",  # a header without a name
        b"\x01\x01\x00\x00",  # a byte too many
    ],
)
def test_a_body_that_is_none_is_noticed(body: bytes) -> None:
    """Only decoding sees it; for splicing it is bytes."""
    one = WHOLE._replace(records=WHOLE.records[:1], next_offset=1)
    record = b"\0\0\0" + body
    header, batch = with_section(one, bytes((len(record) << 1,)) + record)
    assert [part[2] for part in raw_parts(header, batch)] == [body]
    with pytest.raises(ValueError, match="the record at offset 0 is damaged"):
        list(records(header, batch))


@pytest.mark.parametrize(
    "record",
    [
        b"\x07\0\0\0\1\1\0",  # a length of -4
        b"\x04\0\0\0",  # shorter than its own head
        b"\x0c\0\0\1\1\1\0",  # an offset delta of -1
        b"\x0c\0\0" + b"\x80" * 11,  # an offset delta of more than 64 bits
        b"\xff" * 11,
    ],
)
def test_a_head_that_is_none_is_noticed(record: bytes) -> None:
    one = WHOLE._replace(records=WHOLE.records[:1], next_offset=1)
    with pytest.raises(ValueError, match=r"1 records announced, 0 found|64 bits"):
        list(raw_parts(*with_section(one, record)))


def test_offsets_must_grow() -> None:
    record = b"\x0c\0\0\0\1\1\0"
    with pytest.raises(ValueError, match="2 records announced, 1 found"):
        list(raw_parts(*with_section(WHOLE, record * 2)))
