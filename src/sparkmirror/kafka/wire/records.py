"""A batch's records in any message format, walked over without decoding.

Large batches need `pieces`. A magic-2 record is: varint length, int8 attributes, varlong timestamp delta, varint offset
delta, and the body: key, value and headers. Only `pieces.records` looks into a body. Old formats are read as if they
were magic 2.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from sparkmirror.errors import HandledError
from sparkmirror.kafka.wire.batches import (
    CODEC_MASK,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    TIMESTAMP_TYPE_BIT,
    BatchHeader,
)
from sparkmirror.kafka.wire.joined import PIECE_RECORDS, SMALLEST_RECORD
from sparkmirror.kafka.wire.old_formats import messages
from sparkmirror.kafka.wire.unpacking import PIECE_BYTES, Oversized, decompress
from sparkmirror.kafka.wire.varints import read, written, zigzag
from sparkmirror.kafka.wire.walk_loading import WALK


class NotAtOnce(HandledError):
    """One or several batches exceed the amount that is taken at once.

    `pieces` gives the records of each such batch bit by bit.
    """


@dataclass(slots=True, kw_only=True)
class Records:
    """Records from consecutive batches, a list for each field."""

    offsets: list[int] = field(default_factory=list)
    timestamps: list[int] = field(default_factory=list)
    """Timestamps as consumers see them: a LogAppendTime batch's max timestamp for all."""
    attributes: bytearray = field(default_factory=bytearray)
    bodies: list[bytes] = field(default_factory=list)
    """Each record's key, value and headers, encoded."""
    unpacked: int = 0
    """Bytes of the records' sections before compression."""

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, header: BatchHeader, batch: memoryview) -> None:
        """Add the next batch's records.

        Raises ValueError for an unreadable batch, `NotAtOnce` for a batch that is too large to take at once.
        """
        known = len(self.offsets)
        before = self.offsets[-1] if known else -1
        try:
            if header.magic == MAGIC:
                self._add_magic_2(header, batch)
            elif 0 <= header.magic < MAGIC:
                self._add_old(batch)
            else:
                raise ValueError(f"message format v{header.magic} is not known")
            if len(self.offsets) > known and self.offsets[known] <= before:
                raise ValueError(f"offset {self.offsets[known]} follows {before}")
        except ValueError as error:
            raise unreadable(header, error) from error

    def drop_before(self, offset: int) -> None:
        """Cut out the records below this offset."""
        self._drop(slice(bisect_left(self.offsets, offset)))

    def drop_from(self, offset: int) -> None:
        """Cut out the records at this offset and above."""
        self._drop(slice(bisect_left(self.offsets, offset), None))

    def _drop(self, part: slice) -> None:
        del self.offsets[part], self.timestamps[part], self.attributes[part], self.bodies[part]

    def append(self, offset: int, timestamp: int, attributes: int, body: bytes) -> None:
        self.offsets.append(offset)
        self.timestamps.append(timestamp)
        self.attributes.append(attributes)
        self.bodies.append(body)
        self.unpacked += len(body)

    def _add_old(self, batch: memoryview) -> None:
        known, unpacked = len(self), self.unpacked
        for offset, timestamp, body in messages(batch):
            if len(self) - known == PIECE_RECORDS or self.unpacked - unpacked > PIECE_BYTES:
                raise NotAtOnce
            self.append(offset, timestamp, 0, body)

    def _add_magic_2(self, header: BatchHeader, batch: memoryview) -> None:
        data = section(header, batch)
        if min(header.records, len(data) // SMALLEST_RECORD) > PIECE_RECORDS:
            raise NotAtOnce
        self.unpacked += len(data)
        if header.records == 1 and data.startswith(head := lone_head(len(data))):  # tiny batches come by the million
            stamped = header.attributes & TIMESTAMP_TYPE_BIT
            self.offsets.append(header.base_offset)
            self.timestamps.append(header.max_timestamp if stamped else header.base_timestamp)
            self.attributes.append(0)
            self.bodies.append(data[len(head) :])
            return
        known = len(self)
        end = self.walk(header, data)
        added = len(self) - known
        if end != len(data) or added != header.records or (added and self.offsets[-1] >= header.next_offset):
            raise ValueError(f"{header.records} records announced, {added} found in {len(data)} bytes")

    def walk(self, header: BatchHeader, data: bytes) -> int:
        """Add this batch's whole records in `data`; return their end.

        Returns -1 if a record is damaged.
        """
        known = len(self)
        if WALK.serves(min(header.records, len(data) // SMALLEST_RECORD)) and self._walk_compiled(header, data):
            end = len(data)
        else:
            try:
                end = self._walk(data, header.base_offset, header.base_timestamp)
            except IndexError:
                end = -1
            WALK.walked(len(self) - known)
        if header.attributes & TIMESTAMP_TYPE_BIT:
            self.timestamps[known:] = [header.max_timestamp] * (len(self.timestamps) - known)
        return end

    def _walk_compiled(self, header: BatchHeader, data: bytes) -> bool:
        """Append all records in `data`; return False if `_walk` must decide."""
        from sparkmirror.kafka.wire import array_walk

        columns = array_walk.columns(header, data)
        if columns is None:
            return False
        self.offsets += columns.offsets
        self.timestamps += columns.timestamps
        self.attributes += columns.attributes
        self.bodies += [data[start:end] for start, end in zip(columns.body_starts, columns.ends, strict=True)]
        return True

    def _walk(self, data: bytes, base_offset: int, base_timestamp: int) -> int:
        """Append the records in `data`; return their end, or -1 if a record is damaged.

        This is the hot loop: varints of 1 to 3 bytes are read inline. The delete horizon (KIP-534) needs no extra code:
        in a batch whose base timestamp it has replaced, the deltas count from the horizon.
        """
        add_offset, add_timestamp = self.offsets.append, self.timestamps.append
        add_attributes, add_body = self.attributes.append, self.bodies.append
        at, end, previous = 0, len(data), -1
        while at < end:
            length = data[at]
            if length < 0x80:
                at += 1
            elif (high := data[at + 1]) < 0x80:
                length += (high << 7) - 0x80
                at += 2
            else:
                length, at = read(data, at)
            stop = at + (length >> 1)
            add_attributes(data[at])
            timestamp = data[at + 1]
            if timestamp < 0x80:
                at += 2
            elif (high := data[at + 2]) < 0x80:
                timestamp += (high << 7) - 0x80
                at += 3
            elif (higher := data[at + 3]) < 0x80:
                timestamp += (high << 7) + (higher << 14) - 0x4080
                at += 4
            else:
                timestamp, at = read(data, at + 1)
            delta = data[at]
            if delta < 0x80:
                at += 1
            elif (high := data[at + 1]) < 0x80:
                delta += (high << 7) - 0x80
                at += 2
            else:
                delta, at = read(data, at)
            if at > stop or (length | delta) & 1 or delta <= previous:
                return -1
            previous = delta
            add_offset(base_offset + (delta >> 1))
            add_timestamp(base_timestamp + ((timestamp >> 1) ^ -(timestamp & 1)))
            add_body(data[at:stop])
            at = stop
        return at


RecordChange = Callable[[Records, int], None]
"""Change of records' bodies from an index on, in place; it may drop records.

Raises `NotChanged`, and has changed nothing then.
"""


class NotChanged(HandledError):
    """A record that can't be changed, with its offset in the source."""

    def __init__(self, upstream: int, why: str) -> None:
        super().__init__(f"the record at source offset {upstream} {why}")
        self.upstream = upstream


def unreadable(header: BatchHeader, why: ValueError) -> ValueError:
    """Return the same error with its batch's offset."""
    return ValueError(f"the batch at offset {header.base_offset} can't be read: {why}")


def section(header: BatchHeader, batch: memoryview) -> bytes:
    """Return the uncompressed bytes behind a magic-2 batch's header.

    Raises ValueError if the bytes can't be had, and `NotAtOnce` for more than `PIECE_BYTES`.
    """
    see_that_it_is_whole(header, batch)
    codec = header.attributes & CODEC_MASK
    if codec and header.records:  # a batch emptied by compaction has nothing to decompress
        try:
            return decompress(codec, batch[HEADER_SIZE:], PIECE_BYTES)
        except Oversized:
            raise NotAtOnce from None
    if len(batch) - HEADER_SIZE > PIECE_BYTES:
        raise NotAtOnce
    return bytes(batch[HEADER_SIZE:])


def see_that_it_is_whole(header: BatchHeader, batch: memoryview) -> None:
    """Raise ValueError if the batch is cut off."""
    if len(batch) != header.length + LENGTH_OVERHEAD:
        raise ValueError(f"it is cut off, {len(batch)} of {header.size} bytes")


@lru_cache(1 << 12)
def lone_head(size: int) -> bytes:
    """Return the bytes before the body in a section's only record.

    The record has no attributes, and both of its deltas are 0. Some sizes no record has: no section begins with the
    bytes that are returned for them.
    """
    for width in range(1, 6):
        length = written(zigzag(size - width))
        if len(length) == width:
            return length + b"\0\0\0"
    return bytes(size + 1)
