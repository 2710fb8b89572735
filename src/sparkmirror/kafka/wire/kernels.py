"""Loops over records' bytes, for numba to compile (`compiling`).

Only `array_walk` and `record_kernels` import this module, since numba is optional and takes half a second to load.
Importing the module compiles the loops, or loads them from numba's cache. The loops give up on whatever they don't
expect: varints with more than 63 bits, timestamps that are very far apart, and all damage. The walk in Python decides
about such records, and words the error.

All indexes are checked (`boundscheck`), at no cost that could be measured; `unchecked` functions check theirs once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sparkmirror.kafka.wire.batches import ATTRIBUTES_AT, HEADER_SIZE, LENGTH_OVERHEAD, MAGIC
from sparkmirror.kafka.wire.compiling import BYTES, COMPILED, LONG, READ_ONLY, TABLE, inner, longs, loop, unchecked
from sparkmirror.kafka.wire.joined import FAR

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

COLUMNS = 4
"""Number of rows that `columns` fills.

They are offset delta, timestamp delta, body start, and record end.
"""
BASE_OFFSET, BASE_TIMESTAMP, STAMPED, RECORDS, END, NEXT_OFFSET = range(6)
"""A batch's fields in `joined`.

The end is its section's. `STAMPED` is 1 if all records have the base timestamp (LogAppendTime).
"""

SMALLEST_HEAD = 4
"""Bytes of a record that ends before its body, which the loops don't look into."""

_MOST_BITS = 63
_INT32_END = 1 << 31
_FAR = FAR
_POLYNOMIAL = 0x82F63B78
"""CRC-32C's, bits reversed."""
_ALL_BITS = 0xFFFFFFFF
_AT_ONCE = 8
"""Bytes that the CRC takes at a time."""
_LAST_DELTA_AT, _COUNT_AT = ATTRIBUTES_AT + 2, HEADER_SIZE - 4
_BASE_TIMESTAMP_AT = _LAST_DELTA_AT + 4
_LENGTH_AT, _EPOCH_AT, _MAGIC_AT, _CRC_AT = 8, 12, 16, 17
_PLAIN_HEAD = 3
"""Bytes that attributes and deltas take in a record whose deltas are 0."""


def _crc_tables() -> npt.NDArray[np.uint32]:
    """Return what each byte adds to a CRC, by how many bytes are behind it."""
    tables = np.zeros((_AT_ONCE, 256), np.uint32)
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
        tables[0, byte] = crc
    for behind in range(1, _AT_ONCE):
        before = tables[behind - 1]
        tables[behind] = (before >> np.uint32(8)) ^ tables[0, before & np.uint32(0xFF)]
    return tables


_CRC = _crc_tables()


@inner
def long(number: np.integer[Any]) -> int:
    """Return a number of any width as a signed 64-bit number."""
    return np.int64(number) if COMPILED else number  # type: ignore[return-value]  # an int where this runs


@inner
def varint(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """Return the zigzag value that begins at `at`, and the index after it.

    The index is -1 to give up.
    """
    value = shift = 0
    while at < end and shift < _MOST_BITS:
        byte = long(data[at])
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    return 0, -1


@inner
def width(value: int) -> int:
    """Return how many bytes a zigzag value takes."""
    size = 1
    while value >= 0x80:
        value >>= 7
        size += 1
    return size


@inner
def put(out: Bytes, at: int, value: int) -> int:
    """Write a zigzag value; return the index after it."""
    while value >= 0x80:
        out[at] = value & 0x7F | 0x80
        at += 1
        value >>= 7
    out[at] = value
    return at + 1


@unchecked
def copy(out: Bytes, at: int, data: Bytes, start: int, stop: int) -> int:
    """Copy the bytes from `start` to before `stop`; return the index after them.

    Returns -1 if they are not there, or have no room. Slices instead would count the arrays' users, with locks.
    """
    size = stop - start
    if at < 0 or start < 0 or size < 0 or at + size > len(out) or stop > len(data):
        return -1
    if COMPILED:
        for index in range(size):
            out[at + index] = data[start + index]
    else:
        out[at : at + size] = data[start:stop]
    return at + size


@inner
def is_near(timestamp: int, base: int) -> bool:
    """True if two timestamps are near enough for their distance to be written.

    `base` is nearer to 0 than `_FAR`.
    """
    return base - _FAR < timestamp < base + _FAR


@inner
def put_record(out: Bytes, at: int, attributes: int, stamp: int, place: int, data: Bytes, body: int, stop: int) -> int:
    """Write a record with these deltas, its body from `data`.

    Returns the index after it, or -1 without room for it.
    """
    moved = (stamp << 1) ^ (stamp >> 63)
    placed = place << 1
    at = put(out, at, (1 + width(moved) + width(placed) + stop - body) << 1)
    out[at] = attributes
    at = put(out, put(out, at + 1, moved), placed)
    return copy(out, at, data, body, stop)


@inner
def record(data: Bytes, at: int, end: int) -> tuple[int, int, int, int, int]:
    """Read the numbers in the record that begins at `at`.

    Returns its attributes' index, its timestamp delta, its offset delta, where its body starts, and its end; -1 as the
    end to give up.
    """
    length, start = varint(data, at, end)
    if start < 0 or length & 1:
        return 0, 0, 0, 0, -1
    stop = start + (length >> 1)
    if not start < stop <= end:
        return 0, 0, 0, 0, -1
    stamp, at = varint(data, start + 1, stop)
    if at < 0 or stamp >= _FAR:
        return 0, 0, 0, 0, -1
    delta, body = varint(data, at, stop)
    if body < 0 or delta & 1 or delta >> 1 >= _INT32_END:
        return 0, 0, 0, 0, -1
    return start, (stamp >> 1) ^ -(stamp & 1), delta >> 1, body, stop


@loop(LONG, READ_ONLY, TABLE, BYTES)
def columns(data: Bytes, numbers: Longs, attributes: Bytes) -> int:
    """Fill a column for each record; return how many there are, or -1 to give up."""
    at = count = 0
    end = len(data)
    previous = -1
    while at < end:
        start, stamp, delta, body, stop = record(data, at, end)
        if stop < 0 or delta <= previous or count == len(attributes):
            return -1
        previous = delta
        attributes[count] = data[start]
        numbers[0, count] = delta
        numbers[1, count] = stamp
        numbers[2, count] = body
        numbers[3, count] = stop
        count += 1
        at = stop
    return count


@loop(longs(6), READ_ONLY, TABLE, LONG, BYTES, TABLE)
def joined(data: Bytes, heads: Longs, from_offset: int, out: Bytes, runs: Longs) -> tuple[int, int, int, int, int, int]:
    """Write the records from `from_offset` on into `out`, and their runs.

    `data` has all batches' sections. Returns the bytes written (-1 to give up), the records, the base timestamp, the
    latest one, the run count, and the index of the first record's batch.
    """
    gave_up = (-1, 0, 0, 0, 0, 0)
    at = size = count = base = latest = run_at = run_from = run_count = first = 0
    follows = from_offset
    for index in range(len(heads)):
        base_offset, base_timestamp = heads[index, BASE_OFFSET], heads[index, BASE_TIMESTAMP]
        end = heads[index, END]
        if end > len(data) or not -_FAR < base_timestamp < _FAR:
            return gave_up
        previous = -1
        for _ in range(heads[index, RECORDS]):
            start, stamp, delta, body, stop = record(data, at, end)
            if stop < 0 or delta <= previous:
                return gave_up
            previous = delta
            at = stop
            offset = base_offset + delta
            if count and offset < follows:
                return gave_up
            if offset < from_offset:
                continue
            timestamp = base_timestamp if heads[index, STAMPED] else base_timestamp + stamp
            if not is_near(timestamp, base if count else 0):
                return gave_up
            if not count:
                base = latest = timestamp
                first = index
                run_at = offset
            elif offset != follows:
                runs[run_count, 0] = run_at
                runs[run_count, 1] = count - run_from
                run_count += 1
                run_at, run_from = offset, count
            follows = offset + 1
            latest = max(latest, timestamp)
            size = put_record(out, size, data[start], timestamp - base, count, data, body, stop)
            if size < 0:
                return gave_up
            count += 1
        if at != end or base_offset + previous >= heads[index, NEXT_OFFSET]:
            return gave_up
    if count:
        runs[run_count, 0] = run_at
        runs[run_count, 1] = count - run_from
        run_count += 1
    return size, count, base, latest, run_count, first


@inner
def big_endian(data: Bytes, at: int, size: int) -> int:
    """Return a signed number that takes `size` bytes."""
    value = long(data[at])
    value -= (value & 0x80) << 1
    for index in range(at + 1, at + size):
        value = value << 8 | long(data[index])
    return value


@unchecked
def crc32c(data: Bytes, start: int, stop: int) -> int:
    """Return the CRC-32C over the bytes from `start` to before `stop`.

    -1 if they are not there.
    """
    if start < 0 or stop > len(data):
        return -1
    crc = _ALL_BITS
    at = start
    while at + _AT_ONCE <= stop:
        crc ^= long(data[at]) | long(data[at + 1]) << 8 | long(data[at + 2]) << 16 | long(data[at + 3]) << 24
        crc = (
            long(_CRC[7, crc & 0xFF])
            ^ long(_CRC[6, crc >> 8 & 0xFF])
            ^ long(_CRC[5, crc >> 16 & 0xFF])
            ^ long(_CRC[4, crc >> 24 & 0xFF])
            ^ long(_CRC[3, data[at + 4]])
            ^ long(_CRC[2, data[at + 5]])
            ^ long(_CRC[1, data[at + 6]])
            ^ long(_CRC[0, data[at + 7]])
        )
        at += _AT_ONCE
    while at < stop:
        crc = long(_CRC[0, (crc ^ long(data[at])) & 0xFF]) ^ crc >> 8
        at += 1
    return crc ^ _ALL_BITS


@inner
def lone_body(data: Bytes, at: int, stop: int) -> int:
    """Return where the body starts in a section's only record.

    -1 if the record isn't plain.
    """
    length, start = varint(data, at, stop)
    body = start + _PLAIN_HEAD
    if start < 0 or length & 1 or start + (length >> 1) != stop or width(length) != start - at or body > stop:
        return -1
    for index in range(start, body):
        if data[index]:
            return -1
    return body


@loop(longs(8), READ_ONLY, LONG, LONG, BYTES, TABLE)
def lone(
    data: Bytes, upstream: int, tiny: int, out: Bytes, runs: Longs
) -> tuple[int, int, int, int, int, int, int, int]:
    """Write the records of the plain one-record batches at the start of `data`.

    `runs` gets their runs. Returns the bytes written, the records, the base timestamp, the latest one, the run count,
    the offset after the last record, the leader epoch, and the batches' bytes.
    """
    at = size = count = base = latest = run_from = run_count = leader_epoch = 0
    run_at = upstream
    while at + HEADER_SIZE <= len(data):
        offset = big_endian(data, at, 8)
        stop = at + big_endian(data, at + _LENGTH_AT, 4) + LENGTH_OVERHEAD
        if data[at + _MAGIC_AT] != MAGIC or offset < upstream:
            break
        if big_endian(data, at + ATTRIBUTES_AT, 2) or big_endian(data, at + _LAST_DELTA_AT, 4):
            break
        if big_endian(data, at + _COUNT_AT, 4) != 1 or not at + HEADER_SIZE < stop <= len(data) or stop - at >= tiny:
            break
        body = lone_body(data, at + HEADER_SIZE, stop)
        if body < 0 or crc32c(data, at + ATTRIBUTES_AT, stop) != big_endian(data, at + _CRC_AT, 4) & _ALL_BITS:
            break
        epoch = big_endian(data, at + _EPOCH_AT, 4)
        timestamp = big_endian(data, at + _BASE_TIMESTAMP_AT, 8)
        if not is_near(timestamp, base if count else 0) or (count and epoch != leader_epoch):
            break
        if not count:
            base = latest = timestamp
            leader_epoch = epoch
        latest = max(latest, timestamp)
        if offset != upstream:
            if count > run_from:
                runs[run_count, 0] = run_at
                runs[run_count, 1] = count - run_from
                run_count += 1
            run_at, run_from = offset, count
        upstream = offset + 1
        size = put_record(out, size, 0, timestamp - base, count, data, body, stop)
        if size < 0:
            return 0, 0, 0, 0, 0, 0, 0, 0
        count += 1
        at = stop
    if count:
        runs[run_count, 0] = run_at
        runs[run_count, 1] = count - run_from
        run_count += 1
    return size, count, base, latest, run_count, upstream, leader_epoch, at
