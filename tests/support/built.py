"""Source batches of any format, made with kafka-python's builders, and its reader to read the new ones."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st
from kafka import codec as kafka_codec
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords

from sparkmirror.kafka.wire.batches import HEADER_SIZE, TIMESTAMP_TYPE_BIT, BatchHeader, batch_headers
from sparkmirror.kafka.wire.pieces import RawRecord

DELETE_HORIZON_BIT, TRANSACTIONAL_BIT = 0x40, 0x10
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
ENCODE = (
    bytes,
    kafka_codec.gzip_encode,
    kafka_codec.snappy_encode,
    kafka_codec.lz4_encode,
    kafka_codec.zstd_encode,
)
LEADER_EPOCH = 4

Headers = tuple[tuple[bytes, bytes | None], ...]


class Content(NamedTuple):
    """What a batch is built from: records with their offsets in the source."""

    magic: int
    codec: int
    records: list[RawRecord]
    next_offset: int
    append_time: int | None = None
    delete_horizon: int | None = None

    def consumed(self) -> list[RawRecord]:
        """What a consumer gets."""
        if self.append_time is None:
            return self.records
        return [one._replace(timestamp=self.append_time) for one in self.records]


def source_batches(contents: Sequence[Content]) -> list[tuple[BatchHeader, memoryview]]:
    """As the pump finds them: a log's bytes, a header for each batch."""
    log = memoryview(b"".join(map(build, contents)))
    return [(header, log[position : position + header.size]) for position, header in batch_headers(log)]


def build(content: Content) -> bytes:
    """The stored bytes."""
    return magic_2(content) if content.magic == 2 else old(content)


def magic_2(content: Content) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=False,
        producer_id=77,
        producer_epoch=3,
        base_sequence=5,
        batch_size=1 << 30,
    )
    base = content.records[0].offset if content.records else content.next_offset - 3
    attributes, skipped, base_timestamp = content.codec, 0, -1
    if content.delete_horizon is not None:  # the builder counts from its first record, which goes out again
        skipped = builder.append(0, content.delete_horizon, None, None, []).size
        attributes |= DELETE_HORIZON_BIT
    for one in content.records:
        headers = [(name.decode(), value) for name, value in one.headers]
        builder.append(one.offset - base, one.timestamp, one.key, one.value, headers)
    latest = max((one.timestamp for one in content.records), default=-1)
    if content.append_time is not None:
        attributes |= TIMESTAMP_TYPE_BIT
        latest = content.append_time
    if content.records:
        base_timestamp = content.records[0].timestamp
    if content.delete_horizon is not None:
        base_timestamp = content.delete_horizon
    section = ENCODE[content.codec](bytes(builder.build()[HEADER_SIZE + skipped :])) if content.records else b""
    return (
        struct.pack(">qiibI", base, HEADER_SIZE - 12 + len(section), LEADER_EPOCH, 2, 0)
        + struct.pack(">hiqq", attributes, content.next_offset - 1 - base, base_timestamp, latest)
        + struct.pack(">qhii", 77, 3, 5, len(content.records))
        + section
    )


def old(content: Content) -> bytes:
    """One message, or a wrapper with many (v0: absolute offsets inside; v1: relative ones)."""
    magic, last = content.magic, content.records[-1].offset
    first = content.records[0].offset if magic and content.codec else 0
    builder = LegacyRecordBatchBuilder(magic, 0, 1 << 30)
    for one in content.records:
        builder.append(one.offset - first, one.timestamp, one.key, one.value)
    data = bytearray(builder.build())
    if content.codec:
        packed = ENCODE[content.codec](bytes(data))
        if magic == 0 and content.codec == LZ4:
            packed = with_the_old_checksum(packed)
        builder = LegacyRecordBatchBuilder(magic, 0, 1 << 30)
        builder.append(last, max(one.timestamp for one in content.records), None, packed)
        data = bytearray(builder.build())
    data[17] |= content.codec
    if content.append_time is not None:
        data[17] |= TIMESTAMP_TYPE_BIT
        struct.pack_into(">q", data, 18, content.append_time)
    struct.pack_into(">I", data, 12, zlib.crc32(data[16:]))
    return bytes(data)


def with_the_old_checksum(frame: bytes) -> bytes:
    """As clients before 0.10 wrote LZ4: no content size, and a wrong byte after the descriptor."""
    data = bytearray(kafka_codec.lz4_encode(kafka_codec.lz4_decode(frame), store_size=False))
    data[6] ^= 0xFF
    return bytes(data)


def read_back(data: bytes | bytearray) -> list[RawRecord]:
    """A batch as kafka-python reads it, its CRC checked."""
    (batch,) = batches_in(data)
    assert batch.validate_crc()
    return [
        RawRecord(
            one.offset,
            one.timestamp,
            one.key,
            one.value,
            tuple((name.encode(), value) for name, value in one.headers),
        )
        for one in batch
    ]


def batches_in(data: bytes | bytearray) -> list[DefaultRecordBatch]:
    found: list[Any] = []
    log = MemoryRecords(bytes(data))
    while log.has_next():
        found.append(log.next_batch())
    return found


# --- strategies ---------------------------------------------------------------------------------------

timestamps = st.integers(1_700_000_000_000, 1_700_000_000_000 + 2**36) | st.integers(0, 2**50) | st.just(-1)
gaps = st.just(0) | st.integers(0, 3) | st.integers(0, 20_000)
small = st.none() | st.binary(max_size=70)
values = st.none() | st.binary(max_size=300) | st.builds(lambda size: b"v" * size, st.integers(0, 20_000))
header_lists = st.lists(st.tuples(st.text(max_size=5).map(str.encode), small), max_size=3).map(tuple)


@st.composite
def contents(draw: st.DrawFn, magics: Sequence[int] = (0, 1, 2), min_batches: int = 1) -> list[Content]:
    """Consecutive batches of a log: gaps inside, between and after them, and some emptied by compaction."""
    offset = draw(st.integers(0, 2**40))
    made = []
    for _ in range(draw(st.integers(min_batches, 5))):
        magic = draw(st.sampled_from(magics))
        codec = draw(st.sampled_from(range(5) if magic == 2 else range(4)))
        most = 12 if codec or magic == 2 else 1
        records = []
        for _ in range(draw(st.integers(0 if magic == 2 else 1, most))):
            offset += draw(gaps)
            records.append(
                RawRecord(
                    offset,
                    draw(timestamps) if magic else -1,
                    draw(small),
                    draw(values),
                    draw(header_lists) if magic == 2 else (),
                )
            )
            offset += 1
        if magic == 2:
            offset += draw(gaps) if records else 3
        append_time = draw(st.none() | timestamps.filter(lambda one: one >= 0)) if magic else None
        horizon = draw(st.none() | st.integers(0, 2**42)) if magic == 2 and records and append_time is None else None
        made.append(Content(magic, codec, records, offset, append_time, horizon))
    return made
