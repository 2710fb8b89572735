"""Messages of v0 and v1, built and read by kafka-python as well."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka import codec as kafka_codec
from kafka.record.legacy_records import LegacyRecordBatch
from tests.support.built import GZIP, LZ4, SNAPPY, Content, build, contents, source_batches, with_the_old_checksum

from sparkmirror.kafka.wire.batches import HEADER_SIZE, BatchHeader, batch_headers
from sparkmirror.kafka.wire.old_formats import codec_of, messages
from sparkmirror.kafka.wire.pieces import RawRecord, records

modest = settings(max_examples=80, deadline=None)
V0_ATTRIBUTES_AT, V1_KEY_AT = 17, 26


def of(data: bytes) -> list[RawRecord]:
    """Its records, as anyone gets them."""
    ((_, header),) = batch_headers(memoryview(data))
    return list(records(header, memoryview(data)))


def wrapper(magic: int, offset: int, value: bytes | None, *, codec: int = GZIP) -> bytes:
    """A compressed message with that value."""
    content = b"" if magic == 0 else struct.pack(">q", 99)
    content += struct.pack(">i", -1) + (
        struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value
    )
    covered = struct.pack(">bb", magic, codec) + content
    return struct.pack(">qiI", offset, len(covered) + 4, zlib.crc32(covered)) + covered


def message(magic: int, offset: int, timestamp: int = 7) -> bytes:
    return build(Content(magic, 0, [RawRecord(offset, timestamp, b"k", b"v", ())], offset + 1))


@modest
@given(contents(magics=(0, 1)))
def test_messages_are_what_kafka_python_reads(source: list[Content]) -> None:
    for content, (header, batch) in zip(source, source_batches(source), strict=True):
        if (content.magic, content.codec) == (0, LZ4):
            continue  # needs one more library there
        theirs: list[Any] = list(LegacyRecordBatch(batch, content.magic))
        assert list(records(header, batch)) == [
            RawRecord(one.offset, -1 if one.timestamp is None else one.timestamp, one.key, one.value, ())
            for one in theirs
        ]
        assert codec_of(batch) == content.codec


@modest
@given(st.binary(max_size=3000), st.booleans())
def test_lz4_of_old_clients(value: bytes, with_size: bool) -> None:
    """They computed the descriptor's checksum over the wrong bytes; Kafka took any."""
    inner = build(Content(0, 0, [RawRecord(7, -1, None, value, ())], 8))
    frame = bytearray(kafka_codec.lz4_encode(inner, store_size=with_size))
    frame[14 if with_size else 6] ^= 0x55
    assert of(wrapper(0, 7, bytes(frame), codec=LZ4)) == [RawRecord(7, -1, None, value, ())]
    with pytest.raises(ValueError, match="can't be decompressed"):  # since v1 it must be right
        of(wrapper(1, 7, with_the_old_checksum(kafka_codec.lz4_encode(message(1, 0))), codec=LZ4))


@pytest.mark.parametrize("frame", [b"", b"\x04", b"\x04\x22\x4d\x18", b"\x04\x22\x4d\x18\x60", b"not LZ4 at all"])
def test_what_is_no_lz4(frame: bytes) -> None:
    with pytest.raises(ValueError, match=r"LZ4|lz4"):
        of(wrapper(0, 7, frame, codec=LZ4))


def test_offsets_in_a_wrapper_of_v1_count_from_its_first_message() -> None:
    """Also when compaction has left holes, so that they no longer count from 0 or one by one (KIP-31)."""
    inner = message(1, 2) + message(1, 3) + message(1, 9)
    assert [one.offset for one in of(wrapper(1, 1009, kafka_codec.gzip_encode(inner)))] == [1002, 1003, 1009]


def test_offsets_in_a_wrapper_of_v0_are_the_logs_own() -> None:
    inner = message(0, 1002) + message(0, 1009)
    assert [one.offset for one in of(wrapper(0, 1009, kafka_codec.gzip_encode(inner)))] == [1002, 1009]


def test_a_wrapper_that_its_broker_stamped_stamps_all() -> None:
    source = Content(1, SNAPPY, [RawRecord(at, 5 + at, b"k", b"v", ()) for at in range(3)], 3, append_time=77)
    assert [one.timestamp for one in of(build(source))] == [77, 77, 77]
    assert [one.timestamp for one in of(build(source._replace(append_time=None)))] == [5, 6, 7]


# --- what can't be read -------------------------------------------------------------------------------

DAMAGED = {
    "no value": (wrapper(1, 5, None), "offset 5 .* without a value"),
    "nothing inside": (wrapper(1, 5, kafka_codec.gzip_encode(b"")), "nothing inside"),
    "another format inside": (
        wrapper(1, 5, kafka_codec.gzip_encode(message(0, 5))),
        "format v0, .* in a compressed one of v1",
    ),
    "a wrapper inside": (
        wrapper(1, 5, kafka_codec.gzip_encode(wrapper(1, 5, kafka_codec.gzip_encode(message(1, 0))))),
        "attributes 1, in a compressed one",
    ),
    "half a message inside": (wrapper(1, 5, kafka_codec.gzip_encode(message(1, 0)[:-1])), "cut off"),
    "offsets that go back": (
        wrapper(1, 5, kafka_codec.gzip_encode(message(1, 3) + message(1, 2))),
        "offset 5 follows 6",
    ),
    "offsets below 0": (wrapper(1, 5, kafka_codec.gzip_encode(message(1, 1) + message(1, 9))), "offset -3 follows -1"),
    "not the last offset": (wrapper(0, 5, kafka_codec.gzip_encode(message(0, 4))), "ends with offset 4"),
    "a codec that there was not": (wrapper(1, 5, b"...", codec=7), "codec 7"),
}


@pytest.mark.parametrize(("data", "said"), DAMAGED.values(), ids=list(DAMAGED))
def test_damaged_wrappers(data: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        of(data)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, GZIP])
def test_one_wrong_bit_is_noticed(magic: int, codec: int) -> None:
    """What v2 leaves to the caller: after the conversion there is a new CRC over whatever it was."""
    data = bytearray(build(Content(magic, codec, [RawRecord(3, 9, b"key", b"v" * 50, ())], 4)))
    for at in range(18, len(data)):
        data[at] ^= 1
        with pytest.raises(ValueError, match=r"CRC|cut off|ends elsewhere|after its message"):
            list(messages(memoryview(data)))
        data[at] ^= 1
    assert len(list(messages(memoryview(data)))) == 1


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_that_is_cut_off(magic: int) -> None:
    data = message(magic, 3)
    padded = data.ljust(HEADER_SIZE, b"\0")
    header = BatchHeader._make(struct.unpack_from(">qiibIhiqqqhii", padded))
    for end in range(len(data)):
        with pytest.raises(ValueError, match="cut off"):
            list(records(header, memoryview(data)[:end]))
