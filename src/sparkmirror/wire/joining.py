"""Joining: the records of consecutive batches one after the other, in one walk. What is spliced most goes this way.

It does what `splice` does by `Records`, for batches of magic 2 whose records bear their own timestamps and are
all wanted. Whatever else it meets it leaves to `splice`, which knows the words for what is damaged.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from crc32c import crc32c

from sparkmirror.wire.batches import ATTRIBUTES_AT, HEADER_SIZE, LENGTH_OVERHEAD, MAGIC, BatchHeader
from sparkmirror.wire.codecs import Buffer, Compressor
from sparkmirror.wire.records import PIECE_RECORDS, SMALLEST_RECORD, NotAtOnce, lone_head, section
from sparkmirror.wire.unpacking import PIECE_BYTES
from sparkmirror.wire.varints import CONTINUED, SHORT, read, written, zigzag

_LONE = struct.Struct(">qiibIhiqq14xi")
"""A batch's header without its producer."""
_FAR = 1 << 62
"""Timestamps so far from each other, or from 1970, are left to `splice`: a sum might not be a 64-bit number."""


class Joined(NamedTuple):
    """Records with deltas from 0 on."""

    parts: Sequence[Buffer]
    """The records section, compressed."""
    runs: list[tuple[int, int]]
    """Source offset of the first record, and how many records follow each other without a gap from there on."""
    records: int
    base_timestamp: int
    max_timestamp: int


def joined_records(batches: Iterable[tuple[BatchHeader, memoryview]], codec: int) -> Joined | None:
    """All records of these batches, compressed with `codec`; None if there are none, or they can't be read so.

    They must be of magic 2, without the bit of LogAppendTime. Raises `NotAtOnce` where they are more than that.
    """
    joined = _Joining(codec)
    unpacked = 0
    try:
        for header, batch in batches:
            if not header.records:
                continue
            data = section(header, batch)
            unpacked += len(data)
            count = joined.count + min(header.records, len(data) // SMALLEST_RECORD)
            if unpacked > PIECE_BYTES or count > PIECE_RECORDS:
                raise NotAtOnce
            if not joined.add(header, data):
                return None
    except (IndexError, ValueError):
        return None
    return joined.ended()


class _Joining:
    """What was joined so far."""

    def __init__(self, codec: int) -> None:
        self.section = Compressor(codec)
        self.runs: list[tuple[int, int]] = []
        self.count = 0
        self.base = self.latest = 0
        self.next_offset = -1
        """After the last record."""
        self.run_at = self.run_from = 0
        """Where the last run begins: its source offset, and how many records are before it."""

    def add(self, header: BatchHeader, data: bytes) -> bool:
        """Walk over one batch's records: varints of usual lengths are read and written inline; False: give up."""
        pieces: list[bytes] = []
        runs = self.runs
        at, end = 0, len(data)
        shift = 0 if not self.count else header.base_timestamp - self.base
        first = not self.count
        place = self.count << 1  # the new offset delta, zigzag-encoded as all of these, so it grows by two
        run_at, run_from = self.run_at, self.run_from
        follows = (self.next_offset - header.base_offset) << 1
        base, latest = self.base, self.latest
        while at < end:
            length = data[at]
            if length < 0x80:
                at += 1
            elif (high := data[at + 1]) < 0x80:
                length += (high << 7) - 0x80
                at += 2
            else:
                length, at = read(data, at)
            start, stop = at, at + (length >> 1)
            stamp = data[at + 1]
            if stamp < 0x80:
                at += 2
            elif (high := data[at + 2]) < 0x80:
                stamp += (high << 7) - 0x80
                at += 3
            elif (higher := data[at + 3]) < 0x80:
                stamp += (high << 7) + (higher << 14) - 0x4080
                at += 4
            elif (highest := data[at + 4]) < 0x80:  # from the delete horizon of a day
                stamp += (high << 7) + (higher << 14) + (highest << 21) - 0x204080
                at += 5
            else:
                stamp, at = read(data, at + 1)
                if stamp >= _FAR:
                    return False
            delta = data[at]
            if delta < 0x80:
                body = at + 1
            elif (high := data[at + 1]) < 0x80:
                delta += (high << 7) - 0x80
                body = at + 2
            else:
                delta, body = read(data, at)
            if body > stop or (length | delta) & 1:
                return False
            stamp = (stamp >> 1) ^ -(stamp & 1)
            if first:
                first = False
                base = latest = header.base_timestamp + stamp
                shift = -stamp
            if shift:
                stamp += shift
                moved = stamp << 1 if stamp >= 0 else zigzag(stamp)
                if moved < 0x4000:
                    head = data[start : start + 1] + SHORT[moved]
                elif moved < 0x10000000:
                    head = data[start : start + 1] + CONTINUED[moved & 0x3FFF] + SHORT[moved >> 14]
                elif moved < _FAR:
                    head = data[start : start + 1] + written(moved)
                else:
                    return False
            else:
                head = data[start:at]
            if stamp > latest - base:
                latest = base + stamp
            if delta != follows:
                if delta < follows:
                    return False
                if place > run_from:
                    runs.append((run_at, (place - run_from) >> 1))
                run_at, run_from = header.base_offset + (delta >> 1), place
            follows = delta + 2
            ahead = SHORT[place] if place < 0x4000 else written(place)
            place += 2
            length = (len(head) + len(ahead) + stop - body) << 1
            pieces += (SHORT[length] if length < 0x4000 else written(length), head, ahead, data[body:stop])
            at = stop
        found = (place >> 1) - self.count
        self.section.add(pieces, end)
        self.count += found
        self.run_at, self.run_from, self.base, self.latest = run_at, run_from, base, latest
        self.next_offset = header.base_offset + (follows >> 1)
        return at == end and found == header.records and self.next_offset <= header.next_offset

    def ended(self) -> Joined | None:
        """All that was added."""
        if not self.count or not -_FAR < self.base < _FAR:
            return None
        self.runs.append((self.run_at, self.count - (self.run_from >> 1)))
        return Joined(self.section.ended(), self.runs, self.count, self.base, self.latest)


class LoneRecords(NamedTuple):
    """Batches of one plain record each, joined."""

    joined: Joined
    next_offset: int
    """The source offset after the last one."""
    leader_epoch: int
    size: int
    """Bytes of the batches they came in; the new one is never larger."""


def joined_lone_records(records: memoryview, upstream: int, tiny: int) -> LoneRecords | None:
    """The run of such batches that `records` begins with, their CRCs checked; None: there is none.

    Plain is: one record at the batch's own offset and timestamp, no codec, no transaction. All have the leader epoch
    of the first, are smaller than `tiny` bytes, and none is below `upstream`.
    """
    data = bytes(records)
    end = len(data)
    at = place = run_from = base = latest = stamped = leader_epoch = 0
    run_at = upstream
    head = b"\0\0"
    pieces: list[bytes] = []
    runs: list[tuple[int, int]] = []
    while at + HEADER_SIZE <= end:
        offset, length, epoch, magic, crc, attributes, last, timestamp, _, count = _LONE.unpack_from(data, at)
        stop = at + length + LENGTH_OVERHEAD
        if magic != MAGIC or attributes or last or count != 1 or offset < upstream:
            break
        if not at + HEADER_SIZE < stop <= end or stop - at >= tiny:
            break
        old = lone_head(stop - at - HEADER_SIZE)
        if not data.startswith(old, at + HEADER_SIZE, stop) or crc32c(data[at + ATTRIBUTES_AT : stop]) != crc:
            break
        if not place:
            base = latest = stamped = timestamp
            leader_epoch = epoch
        elif epoch != leader_epoch:
            break
        if timestamp != stamped:
            if not -_FAR < timestamp - base < _FAR:
                break
            stamped = timestamp
            head = b"\0" + written(zigzag(timestamp - base))
            if timestamp > latest:
                latest = timestamp
        if offset != upstream:
            if place > run_from:
                runs.append((run_at, (place - run_from) >> 1))
            run_at, run_from = offset, place
        upstream = offset + 1
        body = data[at + HEADER_SIZE + len(old) : stop]
        ahead = SHORT[place] if place < 0x4000 else written(place)
        place += 2
        length = (len(head) + len(ahead) + len(body)) << 1
        pieces += (SHORT[length] if length < 0x4000 else written(length), head, ahead, body)
        at = stop
    if not place or not -_FAR < base < _FAR:
        return None
    runs.append((run_at, (place - run_from) >> 1))
    return LoneRecords(Joined(pieces, runs, place >> 1, base, latest), upstream, leader_epoch, at)
