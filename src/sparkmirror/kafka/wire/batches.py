"""Record batch headers (magic 2): reading, and rewriting in place.

This module never looks at a record. A batch that sparkmirror forwards whole needs four header changes: base offset 0;
sparkmirror's producer id, epoch and sequence; attributes without all bits but the codec; and the CRC-32C over the
changed bytes (docs/design.md; `exactness.md`, the append check, "broker changes to a batch").
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from crc32c import crc32c

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE = HEADER.size  # 61
LENGTH_OVERHEAD = 12
"""Bytes before a batch's counted part: base offset, and the length field."""

MAGIC = 2
CODEC_MASK = 0x07
TIMESTAMP_TYPE_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40
SEQUENCE_MODULUS = 1 << 31
"""A sequence's range: an int32 that wraps 2147483647 -> 0, also inside a batch."""

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

_LAST_OFFSET = (1 << 63) - 1
"""Largest int64. A batch may not reach it, because no next offset would be left."""

_BASE_OFFSET = struct.Struct(">q")
_CRC = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")
_PRODUCER = struct.Struct(">qhi")
ATTRIBUTES_AT = 21
"""First byte that the CRC covers, counted from the batch's start."""
_MAGIC_AT, _CRC_AT, _PRODUCER_AT = 16, 17, 43


class BatchHeader(NamedTuple):
    """The 61 bytes before a batch's records, as stored; Kafka's field meanings."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records: int

    @property
    def size(self) -> int:
        """The whole batch's bytes, with its header; max.message.bytes limits this number."""
        return self.length + LENGTH_OVERHEAD

    @property
    def next_offset(self) -> int:
        """First offset after this batch.

        The record count can't give this offset, because compaction removes records. A message in an older format has
        its last record's offset; other bytes are in the place of the delta.
        """
        return self.base_offset + (self.last_offset_delta if self.magic >= MAGIC else 0) + 1

    @property
    def codec(self) -> str:
        number = self.attributes & CODEC_MASK
        return CODECS[number] if number < len(CODECS) else f"codec {number}"

    def is_corrupt(self, records: memoryview, position: int) -> bool:
        """True if a magic-2 batch's CRC-32C doesn't match its bytes.

        Always False for older formats: their CRC is another kind, and is not checked here.
        """
        return self.magic == MAGIC and self.crc != crc32c(records[position + ATTRIBUTES_AT : position + self.size])

    @property
    def is_control(self) -> bool:
        """True for a transaction marker; older formats have none."""
        return self.magic >= MAGIC and bool(self.attributes & CONTROL_BIT)


def batch_headers(records: memoryview, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) for each whole batch in a Fetch response's records.

    The walk starts at `position`. A response may cut off its last batch; that batch is left out. The header in a batch
    with an older magic is valid only in the fields that all formats share.

    Raises `ValueError` for bytes that can't be a batch.
    """
    end = len(records)
    while position + _MAGIC_AT < end:
        if position + HEADER_SIZE <= end:
            header = BatchHeader._make(HEADER.unpack_from(records, position))
        else:  # the last batch may be cut off; one of an old format may be shorter than a magic-2 header
            header = BatchHeader._make(HEADER.unpack(bytes(records[position:]).ljust(HEADER_SIZE, b"\0")))
        size = header.length + LENGTH_OVERHEAD
        if size <= _MAGIC_AT or (header.magic >= MAGIC and size < HEADER_SIZE):
            raise ValueError(f"a batch of {size} bytes")
        last_delta = header.last_offset_delta if header.magic >= MAGIC else 0
        if header.base_offset < 0 or last_delta < 0 or header.base_offset + last_delta >= _LAST_OFFSET:
            raise ValueError(f"a batch at offset {header.base_offset} whose last one is {last_delta} further")
        if position + size > end:
            return
        yield position, header
        position += size


def rewrite(
    records: memoryview, position: int, size: int, attributes: int, producer_id: int, epoch: int, sequence: int
) -> int:
    """Put sparkmirror's producer into the batch at `position`; return the new CRC.

    The batch is changed in place. `sequence` is the flow's record count before this batch, not wrapped.
    """
    _BASE_OFFSET.pack_into(records, position, 0)
    _ATTRIBUTES.pack_into(records, position + ATTRIBUTES_AT, attributes & CODEC_MASK)
    _PRODUCER.pack_into(records, position + _PRODUCER_AT, producer_id, epoch, sequence % SEQUENCE_MODULUS)
    crc: int = crc32c(records[position + ATTRIBUTES_AT : position + size])
    _CRC.pack_into(records, position + _CRC_AT, crc)
    return crc


def slow_path_reason(header: BatchHeader) -> str | None:
    """Tell why this batch can't be forwarded whole; None if it can (docs/design.md)."""
    if header.magic != MAGIC:
        return f"message format v{header.magic}"
    if header.attributes & CONTROL_BIT:
        return "a transaction marker"
    if header.records != header.last_offset_delta + 1:
        return f"a compacted batch ({header.records} records over {header.last_offset_delta + 1} offsets)"
    if header.attributes & TIMESTAMP_TYPE_BIT:
        return "a batch stamped by its broker (LogAppendTime)"
    return None
