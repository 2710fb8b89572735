"""Join records from consecutive batches one after the other, in one walk.

Most splices go this way. The result equals what `splice` makes by `Records`, for magic-2 batches whose records have
their own timestamps and are all wanted. Any other input is left to `splice`, which also words the errors about damaged
batches. `array_walk` does the same by compiled loops.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from crc32c import crc32c

from sparkmirror.kafka.wire.batches import ATTRIBUTES_AT, HEADER_SIZE, LENGTH_OVERHEAD, MAGIC, BatchHeader
from sparkmirror.kafka.wire.codecs import Codec, Compressor
from sparkmirror.kafka.wire.joined import FAR, PIECE_RECORDS, SMALLEST_RECORD, Joined, LoneRecords
from sparkmirror.kafka.wire.records import NotAtOnce, lone_head, section
from sparkmirror.kafka.wire.unpacking import PIECE_BYTES
from sparkmirror.kafka.wire.varints import CONTINUED, SHORT, read, written, zigzag
from sparkmirror.kafka.wire.walk_loading import WALK

_LONE = struct.Struct(">qiibIhiqq14xi")
"""A batch's header without its producer fields."""


def joined_records(batches: Iterable[tuple[BatchHeader, memoryview]], codec: Codec) -> Joined | None:
    """Join all records in these batches, compressed with `codec`.

    The batches must have magic 2, without the LogAppendTime bit. Returns None if there are no records, or if joining
    can't read the batches. Raises `NotAtOnce` for batches beyond `PIECE_BYTES` or `PIECE_RECORDS`.
    """
    joined = _Joining(codec)
    try:
        for header, data in sections(batches):
            if not joined.add(header, data):
                return None
    except (IndexError, ValueError):
        return None
    return joined.ended()


def sections(batches: Iterable[tuple[BatchHeader, memoryview]]) -> Iterator[tuple[BatchHeader, bytes]]:
    """Yield header and uncompressed records for each batch that has any.

    Raises `NotAtOnce` for batches beyond `PIECE_BYTES` or `PIECE_RECORDS`, ValueError if a section can't be had.
    """
    unpacked = count = 0
    for header, batch in batches:
        if header.records:
            data = section(header, batch)
            unpacked += len(data)
            count += min(header.records, len(data) // SMALLEST_RECORD)
            if unpacked > PIECE_BYTES or count > PIECE_RECORDS:
                raise NotAtOnce
            yield header, data


class _Joining:
    """The records joined so far."""

    def __init__(self, codec: Codec) -> None:
        self.section = Compressor(codec)
        self.runs: list[tuple[int, int]] = []
        self.count = 0
        self.base = self.latest = 0
        self.next_offset = -1
        """Source offset after the last record."""
        self.run_at = self.run_from = 0
        """Start of the last run: its source offset, and twice the records before it."""

    def add(self, header: BatchHeader, data: bytes) -> bool:
        """Walk over one batch's records; return False to give up.

        Varints with usual lengths are read and written inline, and those for a delete horizon (KIP-534) a day after its
        records. Raises IndexError and ValueError to give up, too.
        """
        pieces: list[bytes] = []
        runs = self.runs
        at, end = 0, len(data)
        shift = 0 if not self.count else header.base_timestamp - self.base
        first = not self.count
        place = self.count << 1  # the new offset delta; zigzag encoding makes each step 2
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
            elif (higher := data[at + 3]) >= 0x80 > (highest := data[at + 4]):
                stamp += (high << 7) + (higher << 14) + (highest << 21) - 0x204080
                at += 5
            else:
                stamp, at = _long_stamp(data, at + 1)
            delta = data[at]
            if delta < 0x80:
                body = at + 1
            elif (high := data[at + 1]) < 0x80:
                delta += (high << 7) - 0x80
                body = at + 2
            else:
                delta, body = read(data, at)
            if body > stop or (length | delta) & 1 or delta < follows:
                return False
            stamp = (stamp >> 1) ^ -(stamp & 1)
            if first:
                first = False
                base = latest = header.base_timestamp + stamp
                shift = -stamp
            if shift:
                stamp += shift
                moved = stamp << 1 if stamp >= 0 else zigzag(stamp)
                head = data[start : start + 1] + (SHORT[moved] if moved < 0x4000 else _written_stamp(moved))
            else:
                head = data[start:at]
            if stamp > latest - base:
                latest = base + stamp
            if delta != follows:
                if place > run_from:
                    runs.append((run_at, (place - run_from) >> 1))
                run_at, run_from = header.base_offset + (delta >> 1), place
            follows = delta + 2
            ahead = SHORT[place] if place < 0x4000 else written(place)
            place += 2
            length = (len(head) + len(ahead) + stop - body) << 1
            pieces += (SHORT[length] if length < 0x4000 else written(length), head, ahead, data[body:stop])
            at = stop
        joined = (place >> 1) - self.count
        self.section.add(pieces, end)
        self.count += joined
        self.run_at, self.run_from, self.base, self.latest = run_at, run_from, base, latest
        self.next_offset = header.base_offset + (follows >> 1)
        return at == end and joined == header.records and self.next_offset <= header.next_offset

    def ended(self) -> Joined | None:
        """Finish, and return all added records; None without any."""
        if not self.count or not -FAR < self.base < FAR:
            return None
        self.runs.append((self.run_at, self.count - (self.run_from >> 1)))
        return Joined(self.section.ended(), self.runs, self.count, self.base, self.latest)


def _long_stamp(data: bytes, at: int) -> tuple[int, int]:
    """Return a timestamp delta of three bytes or more at `at`, and the index after it.

    Raises IndexError and ValueError as `read` does, and ValueError for a delta that is too far to join.
    """
    stamp, end = read(data, at)
    if stamp >= FAR:
        raise ValueError("a timestamp too far from its batch's first")
    return stamp, end


def _written_stamp(moved: int) -> bytes:
    """Encode a timestamp delta that takes three bytes or more.

    Raises ValueError if the delta is too far to join.
    """
    if moved >= FAR:
        raise ValueError("a timestamp too far from the first of its new batch")
    return CONTINUED[moved & 0x3FFF] + written(moved >> 14)


def joined_lone_records(records: memoryview, upstream: int, tiny: int) -> LoneRecords | None:
    """Join the plain one-record batches that `records` begins with.

    A plain batch has one record at the batch's own offset and timestamp, no codec and no transaction. The run ends
    before a batch that is not plain, has a wrong CRC, another leader epoch than the first batch, or `tiny` bytes or
    more, or is below `upstream`. Returns None if the run is empty.
    """
    if WALK.ready:
        from sparkmirror.kafka.wire import array_walk

        return array_walk.joined_lone_records(records, upstream, tiny)
    lone = _joined_lone_records(records, upstream, tiny)
    WALK.walked(lone.joined.records if lone else 0)
    return lone


def _joined_lone_records(records: memoryview, upstream: int, tiny: int) -> LoneRecords | None:
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
            if not -FAR < timestamp - base < FAR:
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
    if not place or not -FAR < base < FAR:
        return None
    runs.append((run_at, (place - run_from) >> 1))
    return LoneRecords(Joined(pieces, runs, place >> 1, base, latest), upstream, leader_epoch, at)
