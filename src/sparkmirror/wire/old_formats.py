"""Message formats v0 and v1 (before Kafka 0.11), read as records of magic 2.

A message is: int64 offset, int32 size, CRC-32, int8 magic, int8 attributes, (v1) int64 timestamp, key and value with
int32 lengths. Compressed ones are the value of another message, the wrapper. A wrapper has the offset of its last
message; in v1 the offsets inside count from the first one (KIP-31), in v0 they are absolute.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from zlib import crc32

from sparkmirror.wire.batches import CODEC_MASK, TIMESTAMP_TYPE_BIT
from sparkmirror.wire.codecs import decompress
from sparkmirror.wire.varints import written, zigzag

NO_TIMESTAMP = -1

_HEAD = struct.Struct(">qiIbb")
_SIZE_FROM, _CRC_FROM = 12, 16
"""What the size counts begins after it; what the CRC covers begins after it."""
_ATTRIBUTES_AT = 17
_INT64 = struct.Struct(">q")
_INT32 = struct.Struct(">i")
_NO_HEADERS = b"\x00"
_LZ4 = 3
_LZ4_DESCRIPTOR_AT, _LZ4_CONTENT_SIZE_BIT = 4, 0x08

Message = tuple[int, int, bytes | None, bytes | None]
"""Offset, timestamp, key, value."""


def codec_of(batch: memoryview) -> int:
    """The codec of a message, as in `CODECS`."""
    return batch[_ATTRIBUTES_AT] & CODEC_MASK


def messages(batch: memoryview) -> Iterator[tuple[int, int, bytes]]:
    """Each message of a v0 or v1 batch (one message, or a wrapper with many) as a record of magic 2 has it.

    (offset, timestamp, body), see `records.Records`. A message of v0 has timestamp -1, one in a wrapper
    that its broker stamped (LogAppendTime) has the wrapper's. Raises ValueError for damaged messages.
    """
    try:
        yield from _unwrapped(batch)
    except struct.error as error:
        raise ValueError(f"an old message is cut off: {error}") from error


def _unwrapped(batch: memoryview) -> Iterator[tuple[int, int, bytes]]:
    offset, _, crc, magic, attributes = _HEAD.unpack_from(batch)
    (outer,) = _message_set(batch)
    if crc32(batch[_CRC_FROM:]) != crc:
        raise ValueError(f"the message at offset {offset} is corrupt (its CRC does not match)")
    _, timestamp, key, value = outer
    codec = attributes & CODEC_MASK
    if not codec:
        yield offset, timestamp, _body(key, value)
        return
    if value is None:
        raise ValueError(f"the compressed message at offset {offset} has no value")
    if codec == _LZ4 and magic == 0:
        value = _repaired_lz4(value)
    inner = list(_message_set(memoryview(decompress(codec, value)), inside=magic))
    if not inner:
        raise ValueError(f"the compressed message at offset {offset} is empty")
    shift = offset - inner[-1][0] if magic else 0
    stamped = magic and attributes & TIMESTAMP_TYPE_BIT
    previous = -1
    for inner_offset, own_timestamp, key, value in inner:
        if inner_offset + shift <= previous:
            raise ValueError(f"offset {inner_offset + shift} follows {previous} in the message at offset {offset}")
        previous = inner_offset + shift
        yield previous, timestamp if stamped else own_timestamp, _body(key, value)
    if previous != offset:
        raise ValueError(f"the compressed message at offset {offset} ends with offset {previous}")


def _message_set(data: memoryview, inside: int | None = None) -> Iterator[Message]:
    """The messages that follow each other in `data`; `inside` is the magic of the wrapper, if it is one's value."""
    at = 0
    while at < len(data):
        offset, size, _, magic, attributes = _HEAD.unpack_from(data, at)
        if inside is not None and (magic != inside or attributes & CODEC_MASK):
            raise ValueError(f"a message of format v{magic}, attributes {attributes}, in a wrapper of v{inside}")
        end = at + _SIZE_FROM + size
        at += _HEAD.size
        timestamp = NO_TIMESTAMP
        if magic:
            (timestamp,) = _INT64.unpack_from(data, at)
            at += _INT64.size
        key, at = _bytes(data, at)
        value, at = _bytes(data, at)
        if at != end:
            raise ValueError(f"the message at offset {offset} is damaged: {size} bytes announced")
        yield offset, timestamp, key, value


def _bytes(data: memoryview, at: int) -> tuple[bytes | None, int]:
    (size,) = _INT32.unpack_from(data, at)
    at += _INT32.size
    if size < 0:
        return None, at
    if at + size > len(data):
        raise ValueError(f"an old message is cut off: {size} bytes announced, {len(data) - at} there")
    return bytes(data[at : at + size]), at + size


def _body(key: bytes | None, value: bytes | None) -> bytes:
    return b"".join(
        (
            written(zigzag(-1 if key is None else len(key))),
            key or b"",
            written(zigzag(-1 if value is None else len(value))),
            value or b"",
            _NO_HEADERS,
        )
    )


def _repaired_lz4(data: bytes) -> bytes:
    """An LZ4 frame with the checksum of its descriptor put right.

    Clients of v0 computed it over the wrong bytes (KAFKA-3160), so libraries refuse their frames.
    """
    if len(data) <= _LZ4_DESCRIPTOR_AT:
        return data
    end = _LZ4_DESCRIPTOR_AT + (10 if data[_LZ4_DESCRIPTOR_AT] & _LZ4_CONTENT_SIZE_BIT else 2)
    return data[:end] + _lz4_checksum(data[:end]) + data[end + 1 :]


@cache
def _lz4_checksum(head: bytes) -> bytes:
    """The byte that follows the head of a frame: of the 256 there are, the one that the library accepts."""
    import lz4.frame

    for guess in range(256):
        checksum = bytes((guess,))
        try:
            lz4.frame.get_frame_info(head + checksum)
        except RuntimeError:
            continue
        return checksum
    raise ValueError("not an LZ4 frame")
