"""Record batches: found, judged and rewritten, with kafka-python's own reader and writer as the judge."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from sparkmirror.kafka.wire.batches import (
    CODECS,
    CONTROL_BIT,
    HEADER_SIZE,
    SEQUENCE_MODULUS,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    batch_headers,
    rewrite,
    slow_path_reason,
)

modest = settings(max_examples=60, deadline=None)
DELETE_HORIZON_BIT, UNUSED_BITS = 0x40, 0x4080


class Written(NamedTuple):
    """One record as it was given to the builder."""

    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


records = st.builds(
    Written,
    st.integers(0, 2**41),
    st.none() | st.binary(max_size=40),
    st.none() | st.binary(max_size=400),
    st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=20)), max_size=3),
)


def build(
    written: list[Written],
    *,
    codec: int = 0,
    base_offset: int = 0,
    transactional: bool = False,
    producer: tuple[int, int, int] = (77, 3, 5),
) -> bytearray:
    producer_id, epoch, sequence = producer
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=transactional,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        batch_size=1 << 30,
    )
    for delta, record in enumerate(written):
        builder.append(delta, record.timestamp_ms, record.key, record.value, list(record.headers))
    data = bytearray(builder.build())
    struct.pack_into(">qii", data, 0, base_offset, len(data) - 12, 4)
    return data


batches = st.builds(
    lambda written, codec, base_offset, transactional, producer: build(
        written, codec=codec, base_offset=base_offset, transactional=transactional, producer=producer
    ),
    st.lists(records, min_size=1, max_size=6),
    st.integers(0, 4),
    st.integers(0, 2**62),
    st.booleans(),
    st.sampled_from([(-1, -1, -1), (0, 0, 0), (2**62, 2**15 - 1, SEQUENCE_MODULUS - 2)]),
)


def old_message(magic: int, value: bytes, offset: int = 7) -> bytes:
    """One message of a format before batches; may be as short as 26 bytes."""
    builder = LegacyRecordBatchBuilder(magic=magic, compression_type=0, batch_size=1 << 20)
    builder.append(offset, 0 if magic else None, None, value)
    return bytes(builder.build())


@pytest.mark.parametrize("timestamp", [1_500_000_000_000, 0x0120_7F00_0000])
def test_a_message_of_an_older_format_is_one_record_and_no_marker(timestamp: int) -> None:
    """A part of its timestamp is where a batch has attributes and the last offset's delta."""
    builder = LegacyRecordBatchBuilder(magic=1, compression_type=0, batch_size=1 << 20)
    builder.append(7, timestamp, b"key", b"x" * 50)
    header = header_of(bytes(builder.build()))
    assert (header.next_offset, header.is_control) == (8, False)


def header_of(data: bytes | bytearray) -> BatchHeader:
    ((position, header),) = batch_headers(memoryview(data))
    assert position == 0
    return header


def contents(batch: DefaultRecordBatch) -> list[Any]:
    return [(one.offset, one.timestamp, one.key, one.value, one.headers) for one in batch]


# --- reading ------------------------------------------------------------------------------------------


@modest
@given(batches)
def test_a_header_is_read_as_kafka_python_reads_it(data: bytearray) -> None:
    ours, theirs = header_of(data), DefaultRecordBatch(bytes(data))
    assert ours[:1] + ours[2:] == (
        theirs.base_offset,
        theirs.leader_epoch,
        theirs.magic,
        theirs.crc,
        theirs.attributes,
        theirs.last_offset_delta,
        theirs.first_timestamp,
        theirs.max_timestamp,
        theirs.producer_id,
        theirs.producer_epoch,
        theirs.base_sequence,
        theirs.records_count,
    )
    assert ours.size == theirs.size_in_bytes == len(data)
    assert ours.next_offset == theirs.next_offset
    assert ours.codec == CODECS[theirs.compression_type]
    assert ours.is_control == theirs.is_control_batch
    assert not ours.is_corrupt(memoryview(data), 0)


@modest
@given(st.lists(batches, min_size=1, max_size=4), st.data())
def test_whole_batches_are_found_and_a_cut_off_tail_is_left_out(whole: list[bytearray], data: st.DataObject) -> None:
    answer = b"".join(whole)
    cut = data.draw(st.integers(0, len(answer)), "cut")
    found = list(batch_headers(memoryview(answer)[:cut]))
    ends = [sum(map(len, whole[: count + 1])) for count in range(len(whole))]
    assert [position + header.size for position, header in found] == [end for end in ends if end <= cut]
    assert [header for _, header in found] == [header_of(batch) for batch in whole[: len(found)]]


def test_one_byte_short_is_cut_off() -> None:
    whole = [build([Written(1, b"k", b"v" * size, [])]) for size in (0, 70, 1)]
    answer = memoryview(b"".join(whole))
    for cut in range(len(answer) + 1):
        ends = [position + header.size for position, header in batch_headers(answer[:cut])]
        assert ends == [end for end in (len(whole[0]), len(whole[0] + whole[1]), len(answer)) if end <= cut]


@pytest.mark.parametrize("magic", [2, 3, 127])
def test_a_whole_batch_that_is_shorter_than_a_header_is_refused(magic: int) -> None:
    """It is not cut off: more bytes would never come."""
    short = struct.pack(">qiiB", 0, 14, 0, magic) + bytes(9)
    with pytest.raises(ValueError, match="a batch of 26 bytes"):
        list(batch_headers(memoryview(short)))


def test_nothing_holds_no_batches() -> None:
    assert list(batch_headers(memoryview(b""))) == []


@pytest.mark.parametrize("length", [-(2**31), -13, -12, -1, 0, 4])
def test_a_length_that_no_batch_can_have_is_refused(length: int) -> None:
    data = build([Written(1, None, b"a" * 60, [])])
    nonsense = bytearray(data)
    struct.pack_into(">i", nonsense, 8, length)
    found = batch_headers(memoryview(data + nonsense))
    assert next(found)[0] == 0
    with pytest.raises(ValueError, match=f"a batch of {length + 12} bytes"):
        next(found)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("value", [b"", b"x" * 200], ids=["short", "long"])
def test_an_old_message_is_seen_however_short_it_is(magic: int, value: bytes) -> None:
    """It may be shorter than a batch's header, and must not pass for nothing: there are records here."""
    message = old_message(magic, value)
    assert (len(message) < HEADER_SIZE) == (not value)
    data = build([Written(1, None, b"a", [])])
    for before in (b"", bytes(data)):
        *_, (position, header) = batch_headers(memoryview(before + message))
        assert position == len(before)
        assert (header.magic, header.base_offset, header.size) == (magic, 7, len(message))
        assert slow_path_reason(header) == f"message format v{magic}"
        assert not header.is_corrupt(memoryview(before + message), position)


@pytest.mark.parametrize("magic", [0, 1])
def test_of_many_old_messages_all_whole_ones_are_seen(magic: int) -> None:
    messages = [old_message(magic, b"v", offset) for offset in range(20)]
    answer = b"".join(messages)
    assert [header.base_offset for _, header in batch_headers(memoryview(answer))] == list(range(20))
    assert [header.base_offset for _, header in batch_headers(memoryview(answer[:-1]))] == list(range(19))


# --- judging ------------------------------------------------------------------------------------------


@modest
@given(batches, st.data())
def test_one_bit_makes_a_batch_corrupt(data: bytearray, draw: st.DataObject) -> None:
    """From the CRC on. Base offset, length and leader epoch are outside of it: a broker writes them."""
    bit = draw.draw(st.integers(17 * 8, len(data) * 8 - 1), "bit")
    data[bit // 8] ^= 1 << bit % 8
    assert BatchHeader(*struct.unpack_from(">qiibIhiqqqhii", data)).is_corrupt(memoryview(data), 0)
    assert not DefaultRecordBatch(bytes(data)).validate_crc()


@modest
@given(batches, st.integers(0, 2**62), st.integers(0, 2**31 - 1))
def test_what_the_broker_writes_is_no_corruption(data: bytearray, base_offset: int, leader_epoch: int) -> None:
    struct.pack_into(">q", data, 0, base_offset)
    struct.pack_into(">i", data, 12, leader_epoch)
    assert not header_of(data).is_corrupt(memoryview(data), 0)


def test_corruption_is_judged_where_the_batch_lies() -> None:
    first, second = build([Written(1, None, b"a", [])]), build([Written(2, b"k", b"b" * 99, [])])
    second[-1] ^= 1
    answer = memoryview(first + second + first)
    assert [header.is_corrupt(answer, position) for position, header in batch_headers(answer)] == [False, True, False]


PLAIN = BatchHeader(100, 200, 4, 2, 0, 0, 9, 1000, 2000, 77, 3, 5, 10)


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (PLAIN, None),
        (PLAIN._replace(attributes=TRANSACTIONAL_BIT), None),
        (PLAIN._replace(attributes=DELETE_HORIZON_BIT), None),
        (PLAIN._replace(attributes=4), None),
        (PLAIN._replace(producer_id=-1, producer_epoch=-1, base_sequence=-1), None),
        (PLAIN._replace(max_timestamp=-1), None),
        (PLAIN._replace(magic=0), "message format v0"),
        (PLAIN._replace(magic=1, records=3), "message format v1"),
        (PLAIN._replace(magic=3), "message format v3"),
        (PLAIN._replace(attributes=CONTROL_BIT | TRANSACTIONAL_BIT, records=1), "a transaction marker"),
        (PLAIN._replace(records=9), "a compacted batch (9 records over 10 offsets)"),
        (PLAIN._replace(records=0), "a compacted batch (0 records over 10 offsets)"),
        (PLAIN._replace(attributes=TIMESTAMP_TYPE_BIT), "a batch stamped by its broker (LogAppendTime)"),
        (PLAIN._replace(attributes=TIMESTAMP_TYPE_BIT | 2), "a batch stamped by its broker (LogAppendTime)"),
    ],
)
def test_what_can_not_be_forwarded_whole(header: BatchHeader, reason: str | None) -> None:
    assert slow_path_reason(header) == reason


# --- rewriting ----------------------------------------------------------------------------------------


@modest
@given(
    batches,
    st.sampled_from([0, DELETE_HORIZON_BIT, UNUSED_BITS, DELETE_HORIZON_BIT | UNUSED_BITS]),
    st.integers(0, 2**62),
    st.integers(0, 2**15 - 1),
    st.integers(0, 2**40),
)
def test_a_rewritten_batch_is_ours_and_holds_the_same_records(
    data: bytearray, bits: int, producer_id: int, epoch: int, sequence: int
) -> None:
    before = DefaultRecordBatch(bytes(data))
    attributes = before.attributes | bits
    frame = bytearray(b"<" * 9 + bytes(data) + b">" * 9)
    crc = rewrite(memoryview(frame), 9, len(data), attributes, producer_id, epoch, sequence)
    assert frame[:9] + frame[-9:] == b"<" * 9 + b">" * 9
    after = DefaultRecordBatch(bytes(frame[9:-9]))
    assert after.validate_crc()
    assert after.crc == crc
    assert after.base_offset == 0
    assert (after.producer_id, after.producer_epoch) == (producer_id, epoch)
    assert after.base_sequence == sequence % SEQUENCE_MODULUS
    assert after.attributes == before.compression_type
    assert (after.first_timestamp, after.max_timestamp) == (before.first_timestamp, before.max_timestamp)
    assert (after.last_offset_delta, after.records_count) == (before.last_offset_delta, before.records_count)
    shift = before.base_offset
    assert contents(after) == [(offset - shift, *rest) for offset, *rest in contents(before)]
    header = header_of(frame[9:-9])
    assert not header.is_corrupt(memoryview(frame), 9)
    assert slow_path_reason(header) is None


@pytest.mark.parametrize(
    ("sequence", "wrapped"),
    [
        (0, 0),
        (SEQUENCE_MODULUS - 1, 2147483647),
        (SEQUENCE_MODULUS, 0),
        (SEQUENCE_MODULUS + 5, 5),
        (3 * SEQUENCE_MODULUS - 1, 2147483647),
    ],
)
def test_sequences_wrap_to_zero_after_2147483647(sequence: int, wrapped: int) -> None:
    data = build([Written(1, None, b"a", [])] * 10)
    rewrite(memoryview(data), 0, len(data), 0, 4000, 0, sequence)
    assert header_of(data).base_sequence == wrapped
