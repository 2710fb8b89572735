"""Loops between records' bytes and columns, compiled by numba (`compiling`).

Importing the module compiles the loops, or loads them from numba's cache. As in `kernels`, the loops give up on
whatever they don't expect, and Python decides about such records.

A column of bytes is: bounds (row i's bytes are from `bounds[i]` to before `bounds[i + 1]`), the bytes, and a byte a row
that is 0 for null. A row's headers are those from `header_bounds[i]` to before `header_bounds[i + 1]`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sparkmirror.kafka.wire.compiling import (
    BYTES,
    INTS,
    LONG,
    LONGS,
    READ_LONGS,
    READ_ONLY,
    inner,
    longs,
    loop,
    unchecked,
)
from sparkmirror.kafka.wire.kernels import Bytes, Longs, copy, long, put, record, varint, width

Ints = npt.NDArray[np.int32]

RECORDS, ROWS, PREVIOUS, SIZE, KEY_BYTES, VALUE_BYTES, HEADERS, NAME_BYTES, CONTENT_BYTES = range(9)
"""Places in `measured`'s counts.

They are records walked over, rows among them, the last offset delta, the rows' bytes in memory, and what these are.
"""
COUNTS = 9
KEY, VALUE, HEADER_LISTS = 1, 2, 4
"""Bits for columns that are wanted."""

FARTHEST_MS = 1 << 52
"""Bound on a timestamp and a delta; their sum in microseconds is within 64 bits."""
_ROW_BYTES = 32
"""Bytes of a row without its key, value and headers."""

_MASK = (1 << 62) - 1
_FACTOR = 0x1E3779B97F4A7C15
"""Odd factor: products by it lose nothing.

It is made from the golden ratio, as in Fibonacci hashing.
"""
_WORD = 7
"""Bytes that a digest takes at a time; more would not fit its 62 bits."""
_MURMUR_SEED, _MURMUR_FACTOR, _32_BITS = 0x9747B28C, 0x5BD1E995, 0xFFFFFFFF


@inner
def zigzag(value: int) -> int:
    """Return a signed number's unsigned form."""
    return (value << 1) ^ (value >> 63)


@inner
def nullable(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """Read a length; return it and the index after it.

    A length of -1 is null; an index of -1 means to give up.
    """
    number, at = varint(data, at, end)
    size = (number >> 1) ^ -(number & 1)
    if size < 0:
        size = -1
    if at >= 0 and size > end - at:
        at = -1
    return size, at


@loop(LONG, READ_ONLY, LONG, LONG, LONG, LONG, LONG, LONG, LONGS)
def measured(
    data: Bytes, at: int, base_offset: int, first: int, end: int, wanted: int, most: int, counts: Longs
) -> int:
    """Count what the rows of the records from `at` on take.

    Rows have offsets from `first` to before `end`. The walk stops once the rows take `most` bytes. Returns where it
    stopped, or -1 to give up.
    """
    while at < len(data) and counts[SIZE] < most:
        _, stamp, delta, body, stop = record(data, at, len(data))
        if stop < 0 or delta <= counts[PREVIOUS] or not -FARTHEST_MS < stamp < FARTHEST_MS:
            return -1
        counts[PREVIOUS] = delta
        key_size, at = nullable(data, body, stop)
        if at < 0:
            return -1
        value_size, at = nullable(data, at + max(key_size, 0), stop)
        if at < 0:
            return -1
        headers, at = varint(data, at + max(value_size, 0), stop)
        if at < 0 or headers & 1:
            return -1
        headers >>= 1
        name_bytes = content_bytes = 0
        for _ in range(headers):
            size, at = nullable(data, at, stop)
            if at < 0 or size < 0:
                return -1
            name_bytes += size
            size, at = nullable(data, at + size, stop)
            if at < 0:
                return -1
            content_bytes += max(size, 0)
            at += max(size, 0)
        if at != stop:
            return -1
        counts[RECORDS] += 1
        if not first <= base_offset + delta < end:
            continue
        counts[ROWS] += 1
        counts[SIZE] += _ROW_BYTES
        if wanted & KEY:
            counts[KEY_BYTES] += max(key_size, 0)
            counts[SIZE] += max(key_size, 0)
        if wanted & VALUE:
            counts[VALUE_BYTES] += max(value_size, 0)
            counts[SIZE] += max(value_size, 0)
        if wanted & HEADER_LISTS:
            counts[HEADERS] += headers
            counts[NAME_BYTES] += name_bytes
            counts[CONTENT_BYTES] += content_bytes
            counts[SIZE] += name_bytes + content_bytes
    return at


@loop(
    longs(6),
    *(READ_ONLY, LONG, LONG, LONG, LONG, LONG, LONG, LONG, LONGS),
    *(LONGS, LONGS, INTS, BYTES, BYTES, INTS, BYTES, BYTES, INTS, INTS, BYTES, INTS, BYTES, BYTES),
)
def filled(
    data: Bytes,
    at: int,
    to: int,
    base_offset: int,
    base_timestamp: int,
    stamped: int,
    first: int,
    end: int,
    begin: Longs,
    offsets: Longs,
    stamps: Longs,
    key_bounds: Ints,
    keys: Bytes,
    key_present: Bytes,
    value_bounds: Ints,
    values: Bytes,
    value_present: Bytes,
    header_bounds: Ints,
    name_bounds: Ints,
    names: Bytes,
    content_bounds: Ints,
    contents: Bytes,
    content_present: Bytes,
) -> tuple[int, int, int, int, int, int]:
    """Write rows of measured records, from byte `at` to before byte `to`.

    Timestamps get microseconds; with `stamped` all rows have the base timestamp. `begin` has the rows, key bytes, value
    bytes, headers, name bytes and content bytes that are written; the same are returned. A column whose present bytes
    are empty is not wanted; bounds begin with 0. Rows are -1 to give up.
    """
    row, key_end, value_end, header, name_end, content_end = begin[0], begin[1], begin[2], begin[3], begin[4], begin[5]
    while at < to:
        _, stamp, delta, body, stop = record(data, at, to)
        if stop < 0:
            return -1, 0, 0, 0, 0, 0
        at = stop
        offset = base_offset + delta
        if not first <= offset < end:
            continue
        offsets[row] = offset
        stamps[row] = (base_timestamp if stamped else base_timestamp + stamp) * 1000
        size, place = nullable(data, body, stop)
        if len(key_present):
            key_present[row] = size >= 0
            key_end = copy(keys, key_end, data, place, place + max(size, 0))
            key_bounds[row + 1] = key_end
        size, place = nullable(data, place + max(size, 0), stop)
        if len(value_present):
            value_present[row] = size >= 0
            value_end = copy(values, value_end, data, place, place + max(size, 0))
            value_bounds[row + 1] = value_end
        if len(header_bounds):
            count, place = varint(data, place + max(size, 0), stop)
            for _ in range(count >> 1):
                size, place = nullable(data, place, stop)
                name_end = copy(names, name_end, data, place, place + size)
                name_bounds[header + 1] = name_end
                size, place = nullable(data, place + size, stop)
                content_present[header] = size >= 0
                content_end = copy(contents, content_end, data, place, place + max(size, 0))
                content_bounds[header + 1] = content_end
                place += max(size, 0)
                header += 1
            header_bounds[row + 1] = header
        if key_end < 0 or value_end < 0 or name_end < 0 or content_end < 0:
            return -1, 0, 0, 0, 0, 0
        row += 1
    return row, key_end, value_end, header, name_end, content_end


@inner
def nullable_size(present: int, size: int) -> int:
    """Return how many bytes a field takes."""
    return width(size << 1) + size if present else 1


@loop(
    longs(4),
    *(READ_LONGS, READ_LONGS, READ_LONGS, READ_ONLY, READ_LONGS, READ_ONLY),
    *(READ_LONGS, READ_LONGS, READ_LONGS, READ_ONLY, LONG),
)
def fitting(
    rows: Longs,
    stamps: Longs,
    key_bounds: Longs,
    key_present: Bytes,
    value_bounds: Longs,
    value_present: Bytes,
    header_bounds: Longs,
    name_bounds: Longs,
    content_bounds: Longs,
    content_present: Bytes,
    most: int,
) -> tuple[int, int, int, int]:
    """Count the rows from the front whose records fit in `most` bytes; one at least.

    Returns the rows, their records' bytes, the first timestamp, and the latest; -1 rows for one that is not there.
    """
    count = total = base = latest = 0
    for index in range(len(rows)):
        row = rows[index]
        if not 0 <= row < len(stamps):
            return -1, 0, 0, 0
        stamp = stamps[row]
        if not count:
            base = latest = stamp
        headers = header_bounds[row + 1] - header_bounds[row]
        size = 1 + width(zigzag(stamp - base)) + width(count << 1) + width(headers << 1)
        size += nullable_size(key_present[row], key_bounds[row + 1] - key_bounds[row])
        size += nullable_size(value_present[row], value_bounds[row + 1] - value_bounds[row])
        for header in range(header_bounds[row], header_bounds[row + 1]):
            size += nullable_size(1, name_bounds[header + 1] - name_bounds[header])
            size += nullable_size(content_present[header], content_bounds[header + 1] - content_bounds[header])
        size += width(size << 1)
        if count and total + size > most:
            break
        total += size
        latest = max(latest, stamp)
        count += 1
    return count, total, base, latest


@inner
def put_nullable(out: Bytes, at: int, present: int, data: Bytes, start: int, stop: int) -> int:
    """Write a field's length and bytes; return the index after them.

    Returns -1 without room.
    """
    if not present:
        return put(out, at, 1)
    return copy(out, put(out, at, (stop - start) << 1), data, start, stop)


@loop(
    LONG,
    *(READ_LONGS, READ_LONGS, READ_LONGS, READ_ONLY, READ_ONLY, READ_LONGS, READ_ONLY, READ_ONLY),
    *(READ_LONGS, READ_LONGS, READ_ONLY, READ_LONGS, READ_ONLY, READ_ONLY, BYTES),
)
def written(
    rows: Longs,
    stamps: Longs,
    key_bounds: Longs,
    keys: Bytes,
    key_present: Bytes,
    value_bounds: Longs,
    values: Bytes,
    value_present: Bytes,
    header_bounds: Longs,
    name_bounds: Longs,
    names: Bytes,
    content_bounds: Longs,
    contents: Bytes,
    content_present: Bytes,
    out: Bytes,
) -> int:
    """Write a record for each of these rows into `out`; return the bytes.

    Returns -1 without room.
    """
    at = 0
    for index in range(len(rows)):
        row = rows[index]
        begin, stop = header_bounds[row], header_bounds[row + 1]
        moved, placed, headers = zigzag(stamps[row] - stamps[rows[0]]), index << 1, (stop - begin) << 1
        size = 1 + width(moved) + width(placed) + width(headers)
        size += nullable_size(key_present[row], key_bounds[row + 1] - key_bounds[row])
        size += nullable_size(value_present[row], value_bounds[row + 1] - value_bounds[row])
        for header in range(begin, stop):
            size += nullable_size(1, name_bounds[header + 1] - name_bounds[header])
            size += nullable_size(content_present[header], content_bounds[header + 1] - content_bounds[header])
        at = put(out, at, size << 1)
        out[at] = 0
        at = put(out, put(out, at + 1, moved), placed)
        at = put_nullable(out, at, key_present[row], keys, key_bounds[row], key_bounds[row + 1])
        if at < 0:
            return -1
        at = put_nullable(out, at, value_present[row], values, value_bounds[row], value_bounds[row + 1])
        if at < 0:
            return -1
        at = put(out, at, headers)
        for header in range(begin, stop):
            at = put_nullable(out, at, 1, names, name_bounds[header], name_bounds[header + 1])
            if at < 0:
                return -1
            start, end = content_bounds[header], content_bounds[header + 1]
            at = put_nullable(out, at, content_present[header], contents, start, end)
            if at < 0:
                return -1
    return at


@inner
def mixed(digest: int, word: int) -> int:
    """Take a number of at most 62 bits into a digest; no two numbers give the same."""
    digest = ((digest ^ word) * _FACTOR) & _MASK
    return digest ^ digest >> 29


@unchecked
def mixed_bytes(digest: int, present: int, data: Bytes, start: int, stop: int) -> int:
    """Take a field into a digest; -1 if its bytes are not there."""
    if start < 0 or stop < start or stop > len(data):
        return -1
    if not present:
        return mixed(digest, 0)
    digest = mixed(digest, stop - start + 1)
    at = start
    while at + _WORD <= stop:
        word = long(data[at]) | long(data[at + 1]) << 8 | long(data[at + 2]) << 16 | long(data[at + 3]) << 24
        word |= long(data[at + 4]) << 32 | long(data[at + 5]) << 40 | long(data[at + 6]) << 48
        digest = mixed(digest, word)
        at += _WORD
    word = 0
    while at < stop:
        word = word << 8 | long(data[at])
        at += 1
    return mixed(digest, word)


@loop(
    LONG,
    *(READ_LONGS, READ_LONGS, READ_ONLY, READ_ONLY, READ_LONGS, READ_ONLY, READ_ONLY),
    *(READ_LONGS, READ_LONGS, READ_ONLY, READ_LONGS, READ_ONLY, READ_ONLY, LONG, LONGS),
)
def digests(
    stamps: Longs,
    key_bounds: Longs,
    keys: Bytes,
    key_present: Bytes,
    value_bounds: Longs,
    values: Bytes,
    value_present: Bytes,
    header_bounds: Longs,
    name_bounds: Longs,
    names: Bytes,
    content_bounds: Longs,
    contents: Bytes,
    content_present: Bytes,
    with_time: int,
    out: Longs,
) -> int:
    """Write each row's digest; return the rows, or -1 if a row's bytes are not there."""
    for row in range(len(out)):
        digest = mixed_bytes(_FACTOR, key_present[row], keys, key_bounds[row], key_bounds[row + 1])
        if digest < 0:
            return -1
        digest = mixed_bytes(digest, value_present[row], values, value_bounds[row], value_bounds[row + 1])
        if digest < 0:
            return -1
        begin, stop = header_bounds[row], header_bounds[row + 1]
        digest = mixed(digest, stop - begin)
        for header in range(begin, stop):
            digest = mixed_bytes(digest, 1, names, name_bounds[header], name_bounds[header + 1])
            if digest < 0:
                return -1
            start, end = content_bounds[header], content_bounds[header + 1]
            digest = mixed_bytes(digest, content_present[header], contents, start, end)
            if digest < 0:
                return -1
        if with_time:
            digest = mixed(digest, stamps[row] & _MASK)
        out[row] = mixed(digest, digest >> 31)
    return len(out)


@unchecked
def murmur2(data: Bytes, start: int, stop: int) -> int:
    """Return Kafka's hash of a key (`Utils.murmur2`), made positive.

    -1 if the key's bytes are not there.
    """
    if start < 0 or stop < start or stop > len(data):
        return -1
    size = stop - start
    value = (_MURMUR_SEED ^ size) & _32_BITS
    at = start
    while at + 4 <= stop:
        word = long(data[at]) | long(data[at + 1]) << 8 | long(data[at + 2]) << 16 | long(data[at + 3]) << 24
        word = (word * _MURMUR_FACTOR) & _32_BITS
        word = ((word ^ word >> 24) * _MURMUR_FACTOR) & _32_BITS
        value = ((value * _MURMUR_FACTOR) & _32_BITS) ^ word
        at += 4
    if at < stop:
        word = 0
        for index in range(stop - at):
            word |= long(data[at + index]) << 8 * index
        value = ((value ^ word) * _MURMUR_FACTOR) & _32_BITS
    value = ((value ^ value >> 13) * _MURMUR_FACTOR) & _32_BITS
    return (value ^ value >> 15) & 0x7FFFFFFF


@loop(LONG, READ_LONGS, READ_ONLY, READ_ONLY, LONG, LONG, LONGS)
def partitions(key_bounds: Longs, keys: Bytes, key_present: Bytes, count: int, keyless: int, out: Longs) -> int:
    """Write each row's partition, as Kafka's default partitioner has it.

    Rows without a key get `keyless`. Returns the rows, or -1 if a key is not there.
    """
    for row in range(len(out)):
        if key_present[row]:
            value = murmur2(keys, key_bounds[row], key_bounds[row + 1])
            if value < 0:
                return -1
            out[row] = value % count
        else:
            out[row] = keyless
    return len(out)
