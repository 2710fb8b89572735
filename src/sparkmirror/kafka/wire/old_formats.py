"""Message formats v0 and v1 (before Kafka 0.11), read as magic-2 records.

A message is: int64 offset, int32 size, CRC-32, int8 magic, int8 attributes, (v1) int64 timestamp, key and value with
int32 lengths. Compressed messages are the value of another message, the wrapper. A wrapper has its last inner message's
offset; inner offsets count from the first inner message in v1 (KIP-31), and are absolute in v0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple
from zlib import crc32

from sparkmirror.kafka.wire.batches import CODEC_MASK, TIMESTAMP_TYPE_BIT
from sparkmirror.kafka.wire.codecs import LZ4
from sparkmirror.kafka.wire.unpacking import WHOLE_BYTES, Oversized, decompress, size_of
from sparkmirror.kafka.wire.varints import written

NO_TIMESTAMP = -1

_HEAD = struct.Struct(">qiIbb")
_SIZE_FROM, _CRC_FROM = 12, 16
"""First byte that a message's size counts, and first byte that its CRC covers."""
_CRC_FIELD, _ATTRIBUTES_AT = 2, 17
_INT64 = struct.Struct(">q")
_INT32 = struct.Struct(">i")
_NULL, _NO_HEADERS = b"\x01", b"\x00"
"""Varints for a null field (length -1) and for no headers (count 0)."""
_LZ4_DESCRIPTOR_AT, _LZ4_CONTENT_SIZE_BIT = 4, 0x08


class _Message(NamedTuple):
    """One message in a message set; `end` is where the next message starts."""

    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    end: int


def codec_of(batch: memoryview) -> int:
    """Return a message's codec, an index into `CODECS`."""
    return batch[_ATTRIBUTES_AT] & CODEC_MASK


def messages(batch: memoryview) -> Iterator[tuple[int, int, bytes]]:
    """Yield each message in a v0 or v1 batch as a magic-2 record.

    The batch is a single message, or a wrapper with many. A record is (offset, timestamp, body), see `records.Records`.
    A v0 message's timestamp is -1; a message in a wrapper that its broker stamped (LogAppendTime) has the wrapper's
    timestamp.

    Raises ValueError for damaged messages, also for a wrong CRC. Raises `Oversized` for a wrapper that unpacks to more
    than `WHOLE_BYTES`: wrappers are unpacked as a whole, because the last inner message determines the first offset.
    """
    try:
        data = bytes(batch)
        outer = _message(data, 0)
        if outer.end != len(data):
            raise ValueError(f"{len(data) - outer.end} bytes after its message")
        if crc32(batch[_CRC_FROM:]) != _HEAD.unpack_from(data)[_CRC_FIELD]:
            raise ValueError("its CRC does not match")
        if outer.attributes & CODEC_MASK:
            yield from _unwrapped(outer)
        else:
            yield outer.offset, outer.timestamp, _body(outer.key, outer.value)
    except struct.error as error:
        raise ValueError(f"a message is cut off ({error})") from error


def _unwrapped(outer: _Message) -> Iterator[tuple[int, int, bytes]]:
    if outer.value is None:
        raise ValueError("a compressed message without a value")
    data = _unpacked(outer, outer.value)
    last = -1
    at = 0
    while at < len(data):
        message = _message(data, at)
        at = message.end
        last = message.offset
        if message.magic != outer.magic or message.attributes & CODEC_MASK:
            raise ValueError(
                f"a message of format v{message.magic}, attributes {message.attributes}, "
                f"in a compressed one of v{outer.magic}"
            )
    if not data:
        raise ValueError("a compressed message with nothing inside")
    shift = outer.offset - last if outer.magic else 0
    if last + shift != outer.offset:
        raise ValueError(f"a compressed message that ends with offset {last + shift}")
    stamp = outer.timestamp if outer.magic and outer.attributes & TIMESTAMP_TYPE_BIT else None
    previous = -1
    at = 0
    while at < len(data):
        message = _message(data, at)
        at = message.end
        offset = message.offset + shift
        if offset <= previous:
            raise ValueError(f"offset {offset} follows {previous}")
        previous = offset
        yield offset, message.timestamp if stamp is None else stamp, _body(message.key, message.value)


def _unpacked(outer: _Message, value: bytes) -> bytes:
    codec = outer.attributes & CODEC_MASK
    packed = _repaired_lz4(value) if codec == LZ4 and outer.magic == 0 else value
    try:
        return decompress(codec, packed, WHOLE_BYTES)
    except Oversized:
        size, exact = size_of(codec, packed)
        raise Oversized(size, WHOLE_BYTES, exact=exact) from None


def _message(data: bytes, start: int) -> _Message:
    offset, size, _, magic, attributes = _HEAD.unpack_from(data, start)
    at = start + _HEAD.size
    timestamp = NO_TIMESTAMP
    if magic:
        (timestamp,) = _INT64.unpack_from(data, at)
        at += _INT64.size
    key, at = _bytes(data, at)
    value, at = _bytes(data, at)
    if at != start + _SIZE_FROM + size:
        raise ValueError(f"a message of {size} bytes that ends elsewhere")
    return _Message(offset, magic, attributes, timestamp, key, value, at)


def _bytes(data: bytes, at: int) -> tuple[bytes | None, int]:
    (size,) = _INT32.unpack_from(data, at)
    at += _INT32.size
    if size < 0:
        return None, at
    if at + size > len(data):
        raise ValueError(f"a message is cut off: {size} bytes announced, {len(data) - at} there")
    return data[at : at + size], at + size


def _body(key: bytes | None, value: bytes | None) -> bytes:
    return (
        (_NULL if key is None else written(len(key) << 1) + key)
        + (_NULL if value is None else written(len(value) << 1) + value)
        + _NO_HEADERS
    )


def _repaired_lz4(data: bytes) -> bytes:
    """Repair the descriptor's checksum in an LZ4 frame.

    v0 clients computed the checksum over the wrong bytes (KAFKA-3160), so libraries refuse such frames.
    """
    if len(data) <= _LZ4_DESCRIPTOR_AT:
        return data
    end = _LZ4_DESCRIPTOR_AT + (10 if data[_LZ4_DESCRIPTOR_AT] & _LZ4_CONTENT_SIZE_BIT else 2)
    return data[:end] + _lz4_checksum(data[:end]) + data[end + 1 :]


@cache
def _lz4_checksum(head: bytes) -> bytes:
    """Return the checksum byte behind a frame's head, out of the 256 possible ones.

    The library tells by accepting the head with this byte.
    """
    import lz4.frame

    for guess in range(256):
        checksum = bytes((guess,))
        try:
            lz4.frame.get_frame_info(head + checksum)
        except RuntimeError:
            continue
        return checksum
    raise ValueError("not an LZ4 frame")
