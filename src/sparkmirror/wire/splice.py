"""Splicing: batches cut open, records cut out, and new batches made of what is wanted.

Only a record's length, timestamp delta and offset delta are written anew; its body is copied as it is. This is
the slow path of what can't be forwarded whole: compacted batches, LogAppendTime, old message formats, an offset inside
a batch, another codec, batches that are too large, and many tiny ones.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import accumulate, pairwise
from typing import NamedTuple

from sparkmirror.wire.batches import (
    CODEC_MASK,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    TIMESTAMP_TYPE_BIT,
    BatchHeader,
)
from sparkmirror.wire.codecs import Buffer, Compressor, compress
from sparkmirror.wire.joining import Joined, joined_records
from sparkmirror.wire.old_formats import codec_of
from sparkmirror.wire.pieces import LargeRecord
from sparkmirror.wire.records import PIECE_RECORDS, NotAtOnce, Records, section, unreadable
from sparkmirror.wire.unpacking import PIECE_BYTES
from sparkmirror.wire.varints import CONTINUED, SHORT, written, zigzag

_UNKNOWN = -1
_INT64_END = 1 << 63
_ONE_BYTE = SHORT[:0x80] + [bytes((n,)) for n in range(0x80, 0x100)]
_FULL_ENOUGH = 15 / 16
"""Of the limit: a compressed batch is not tried larger, each try compresses it again."""
_IN_PROPORTION = 4
"""So many tries reckon with an even compression."""
_USUAL_OVERHEAD = 6
"""Bytes of a record that are not its body; only to guess sizes by."""


class Run(NamedTuple):
    """Records whose source offsets follow each other without a gap: the first one's, and how many they are."""

    upstream: int
    length: int


_run = partial(tuple.__new__, Run)
"""From a pair, in half the time."""


@dataclass(slots=True)
class Spliced:
    """A new batch of magic 2, with no producer and no CRC yet: `batches.rewrite` sets them."""

    data: bytearray
    runs: tuple[Run, ...]
    """Which source offsets its records had."""
    count: int
    base_timestamp: int
    max_timestamp: int
    next_upstream: int
    """Where the source is read on: after the last source batch if that went in to its end, else after the last
    record."""
    leader_epoch: int
    """Of the source batch that its first record came from; -1 for old formats, which have none."""
    codec: int


class RecordTooLarge(Exception):
    """The record at source offset `upstream` makes a batch of `size` bytes, all alone: more than `max_bytes`.

    `before` is what could be made of the records before it, to be sent first. `unpacked`: the bytes of a record that
    was given up before all of it was made; then `size` is how far it had come. -1: all of it was.
    """

    def __init__(self, upstream: int, size: int, unpacked: int = -1) -> None:
        more = "more than " if unpacked >= 0 else ""
        super().__init__(f"the record at offset {upstream} makes a batch of {more}{size} bytes")
        self.upstream = upstream
        self.size = size
        self.unpacked = unpacked
        self.before: list[Spliced] = []


def splice(
    batches: Sequence[tuple[BatchHeader, memoryview]],
    *,
    from_offset: int,
    codec: int | None = None,
    max_bytes: int | None = None,
    max_records: int | None = None,
) -> list[Spliced]:
    """The records of consecutive source batches from `from_offset` on, in as few batches as the limits allow.

    Each source batch is its header and all of its bytes, its CRC already checked if it is magic 2. The new ones have
    offset deltas from 0 without gaps, their records' own timestamps (CreateTime), and one `codec` (an index into
    `CODECS`; None: that of the first source batch). `max_bytes` counts whole batches, as max.message.bytes does.
    Returns [] if no record is left. Raises `RecordTooLarge`, ValueError for what can't be read, and `NotAtOnce` for
    what is spliced piece by piece (`splice_piece`, `splice_large`).
    """
    if not batches:
        return []
    if codec is None:
        codec = kept_codec(*batches[0])
    if len(batches) == 1:
        header, batch = batches[0]
        if _is_fine(header, batch, from_offset) and header.records <= (max_records or header.records):
            whole = _whole(header, batch, codec)
            if max_bytes is None or len(whole.data) <= max_bytes:
                return [whole]
    if all(_keeps_its_records(header, from_offset) for header, _ in batches):
        joined = joined_records(batches, codec)
        if joined is not None and joined.records <= (max_records or joined.records):
            made = made_of(joined, codec, batches[-1][0].next_offset, _first_leader_epoch(batches))
            if max_bytes is None or len(made.data) <= max_bytes:
                return [made]
    source = _Source()
    for header, batch in batches:
        source.add(header, batch, from_offset)
    return _cut(source, codec, max_bytes, max_records)


def splice_piece(
    header: BatchHeader, piece: Records, *, from_offset: int, codec: int, max_bytes: int | None
) -> list[Spliced]:
    """As `splice`, of some of a batch's records; where the batch ends is for the caller to say."""
    piece.drop_before(from_offset)
    source = _Source(piece, [0], [_UNKNOWN if header.magic < MAGIC else header.leader_epoch])
    return _cut(source, codec, max_bytes, None)


def splice_large(header: BatchHeader, record: LargeRecord, codec: int, most: int) -> Iterator[Spliced | None]:
    """A batch of one record that is never held as a whole; None after each part of it, and at last the batch.

    Raises `RecordTooLarge` when it comes to more than `most` bytes, as far as it was made.
    """
    if not -_INT64_END <= record.timestamp < _INT64_END:
        raise ValueError(f"timestamp {record.timestamp} at offset {record.offset}")
    head = bytes((record.attributes, 0, 0))
    section = Compressor(codec)
    section.add([written(zigzag(len(head) + record.size)) + head], 0)
    for part in record.body:
        section.add([part], len(part))
        if section.made > most:
            raise RecordTooLarge(record.offset, section.made, record.size)
        yield None
    data = _batch(section.ended(), codec, 1, record.timestamp, record.timestamp)
    if len(data) > most:
        raise RecordTooLarge(record.offset, len(data), record.size)
    runs = (Run(record.offset, 1),)
    next_upstream = record.offset + 1
    yield Spliced(data, runs, 1, record.timestamp, record.timestamp, next_upstream, header.leader_epoch, codec)


def kept_codec(header: BatchHeader, batch: memoryview) -> int:
    """That of a batch of any format."""
    return header.attributes & CODEC_MASK if header.magic >= MAGIC else codec_of(batch)


def made_of(joined: Joined, codec: int, next_upstream: int, leader_epoch: int) -> Spliced:
    """One batch of what was joined, which `codec` has compressed."""
    count, base, latest = joined.records, joined.base_timestamp, joined.max_timestamp
    return Spliced(
        _batch(joined.parts, codec, count, base, latest),
        tuple(map(_run, joined.runs)),
        count,
        base,
        latest,
        next_upstream,
        leader_epoch,
        codec,
    )


def _first_leader_epoch(batches: Sequence[tuple[BatchHeader, memoryview]]) -> int:
    return next(header.leader_epoch for header, _ in batches if header.records)


def _keeps_its_records(header: BatchHeader, from_offset: int) -> bool:
    """Whether all of its records are wanted, with their own timestamps."""
    return header.magic == MAGIC and not header.attributes & TIMESTAMP_TYPE_BIT and header.base_offset >= from_offset


def _is_fine(header: BatchHeader, batch: memoryview, from_offset: int) -> bool:
    """Whether no record of the batch must change."""
    return (
        header.magic == MAGIC
        and header.size == len(batch)
        and header.records == header.last_offset_delta + 1 > 0
        and header.base_offset >= from_offset
        and not header.attributes & TIMESTAMP_TYPE_BIT
    )


def _whole(header: BatchHeader, batch: memoryview, codec: int) -> Spliced:
    """The records section as it is, or only compressed anew."""
    old_codec = header.attributes & CODEC_MASK
    try:
        data = batch[HEADER_SIZE:] if codec == old_codec else compress(codec, section(header, batch))
    except ValueError as error:
        raise unreadable(header, error) from error
    return Spliced(
        _batch((data,), codec, header.records, header.base_timestamp, header.max_timestamp),
        (Run(header.base_offset, header.records),),
        header.records,
        header.base_timestamp,
        header.max_timestamp,
        header.next_offset,
        header.leader_epoch,
        codec,
    )


@dataclass
class _Source:
    """The wanted records of some batches, and what is known of the batches."""

    records: Records = field(default_factory=Records)
    starts: list[int] = field(default_factory=list)
    """How many records there were before each change of the leader epoch, and which it was from there on."""
    leader_epochs: list[int] = field(default_factory=list)
    ends: dict[int, int] = field(default_factory=dict)
    """How many records there were after a batch -> the offset after it, where that isn't the last record's plus one."""

    def add(self, header: BatchHeader, batch: memoryview, from_offset: int) -> None:
        records = self.records
        old = header.magic < MAGIC
        next_offset = header.base_offset + 1 + (0 if old else header.last_offset_delta)
        if next_offset > from_offset and (old or header.records):
            leader_epoch = _UNKNOWN if old else header.leader_epoch
            if not self.leader_epochs or leader_epoch != self.leader_epochs[-1]:
                self.starts.append(len(records.offsets))
                self.leader_epochs.append(leader_epoch)
            records.add(header, batch)
            if len(records) > PIECE_RECORDS or records.unpacked > PIECE_BYTES:
                raise NotAtOnce
            if records.offsets[0] < from_offset:
                records.drop_before(from_offset)
        if not records.offsets or records.offsets[-1] + 1 != next_offset:
            self.ends[len(records.offsets)] = next_offset

    @cached_property
    def weights(self) -> list[int]:
        """About how many bytes there are before each record, uncompressed."""
        return list(accumulate((len(body) + _USUAL_OVERHEAD for body in self.records.bodies), initial=0))

    def made(self, start: int, stop: int, codec: int) -> Spliced:
        """One batch of the records from index `start` to before `stop`."""
        timestamps = self.records.timestamps[start:stop]
        offsets = self.records.offsets[start:stop]
        base, latest = timestamps[0], max(timestamps)
        earliest = min(timestamps)
        if latest >= _INT64_END or earliest < -_INT64_END or latest - earliest >= _INT64_END:
            raise ValueError(f"timestamps from {earliest} to {latest} from offset {offsets[0]} on")
        parts = _rewritten(timestamps, self.records.attributes[start:stop], self.records.bodies[start:stop])
        if codec:
            parts = [compress(codec, b"".join(parts))]
        return Spliced(
            _batch(parts, codec, stop - start, base, latest),
            _runs(offsets),
            stop - start,
            base,
            latest,
            self.ends.get(stop, offsets[-1] + 1),
            self.leader_epochs[bisect_right(self.starts, start) - 1],
            codec,
        )


def _rewritten(timestamps: list[int], attributes: bytearray, bodies: list[bytes]) -> list[bytes]:
    """The records with deltas from 0 on, in pieces."""
    base = timestamps[0]
    pieces: list[bytes] = []
    offset_delta = 0  # zigzag-encoded, so it grows by two
    for timestamp, attribute, body in zip(timestamps, attributes, bodies, strict=True):
        delta = timestamp - base
        delta = (delta << 1) ^ (delta >> 63)
        if delta < 0x4000:
            stamp = SHORT[delta]
        elif delta < 0x10000000:
            stamp = CONTINUED[delta & 0x3FFF] + SHORT[delta >> 14]
        else:
            stamp = written(delta)
        head = _ONE_BYTE[attribute] + stamp + (SHORT[offset_delta] if offset_delta < 0x4000 else written(offset_delta))
        offset_delta += 2
        length = (len(head) + len(body)) << 1
        pieces += (SHORT[length] if length < 0x4000 else written(length), head, body)
    return pieces


def _batch(parts: Sequence[Buffer], codec: int, count: int, base: int, latest: int) -> bytearray:
    """A whole batch of that records section, without producer and CRC."""
    data = bytearray().join((bytes(HEADER_SIZE), *parts))
    HEADER.pack_into(
        data,
        0,
        *BatchHeader(
            base_offset=0,
            length=len(data) - LENGTH_OVERHEAD,
            leader_epoch=_UNKNOWN,
            magic=MAGIC,
            crc=0,
            attributes=codec,
            last_offset_delta=count - 1,
            base_timestamp=base,
            max_timestamp=latest,
            producer_id=_UNKNOWN,
            producer_epoch=_UNKNOWN,
            base_sequence=_UNKNOWN,
            records=count,
        ),
    )
    return data


def _runs(offsets: list[int]) -> tuple[Run, ...]:
    if offsets[-1] - offsets[0] == len(offsets) - 1:
        return (Run(offsets[0], len(offsets)),)
    seams = [index for index, (one, next_one) in enumerate(pairwise(offsets), 1) if next_one - one != 1]
    return tuple(Run(offsets[start], stop - start) for start, stop in pairwise((0, *seams, len(offsets))))


def _cut(source: _Source, codec: int, max_bytes: int | None, max_records: int | None) -> list[Spliced]:
    """Batches within the limits: each takes as many records as it can."""
    made: list[Spliced] = []
    start, total = 0, len(source.records)
    guess = total
    while start < total:
        end = min(total, start + (max_records or total))
        try:
            made.append(
                source.made(start, end, codec)
                if max_bytes is None
                else _largest(source, start, end, min(start + guess, end), codec, max_bytes)
            )
        except RecordTooLarge as error:
            error.before = made
            raise
        count = made[-1].count
        start += count
        guess = count if start < end else total
    return made


def _largest(source: _Source, start: int, end: int, guess: int, codec: int, max_bytes: int) -> Spliced:
    """The batch with most records from `start` on that is not larger than `max_bytes`.

    It is looked for by trying: those before index `guess`, then in proportion to the size that came out, then
    halfway. A compressed batch may end somewhat smaller.
    """
    enough = max_bytes * _FULL_ENOUGH if codec else max_bytes
    best: Spliced | None = None
    fits, too_many = start, end + 1
    tries = 0
    while True:
        made = source.made(start, guess, codec)
        size = len(made.data)
        if size <= max_bytes:
            best, fits = made, guess
            if size >= enough or guess == end:
                return made
        elif guess == start + 1:
            raise RecordTooLarge(source.records.offsets[start], size)
        else:
            too_many = guess
        if best is not None and too_many - fits == 1:
            return best
        tries += 1
        if tries > _IN_PROPORTION:
            guess = (fits + too_many) // 2
        else:
            weights = source.weights
            share = (max_bytes - HEADER_SIZE) / (size - HEADER_SIZE)
            wanted = weights[start] + (weights[guess] - weights[start]) * share
            guess = bisect_right(weights, wanted, start, end + 1) - 1
        guess = min(max(guess, fits + 1), too_many - 1)
