"""Splice: cut batches open, and make new batches with the wanted records.

Only a record's length, timestamp delta and offset delta are written again; the body is copied unchanged, except by
transforms. Splicing is the slow path for batches that can't be forwarded whole: compacted batches, LogAppendTime, old
message formats, a start offset inside a batch, another codec, batches that are too large, and many tiny batches.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import accumulate, pairwise
from typing import NamedTuple

from sparkmirror.errors import HandledError
from sparkmirror.kafka.wire.batches import (
    CODEC_MASK,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    TIMESTAMP_TYPE_BIT,
    BatchHeader,
)
from sparkmirror.kafka.wire.codecs import Buffer, Codec, Compressor, compress
from sparkmirror.kafka.wire.joined import PIECE_RECORDS, Joined
from sparkmirror.kafka.wire.joining import joined_records, sections
from sparkmirror.kafka.wire.old_formats import codec_of
from sparkmirror.kafka.wire.pieces import LargeRecord
from sparkmirror.kafka.wire.records import NotAtOnce, RecordChange, Records, section, unreadable
from sparkmirror.kafka.wire.unpacking import PIECE_BYTES
from sparkmirror.kafka.wire.varints import CONTINUED, SHORT, written, zigzag
from sparkmirror.kafka.wire.walk_loading import WALK

NO_END = 1 << 63
"""Offset above all offsets."""

_UNKNOWN = -1
_INT64_END = 1 << 63
_ONE_BYTE = SHORT[:0x80] + [bytes((n,)) for n in range(0x80, 0x100)]
_FULL_ENOUGH = 15 / 16
"""Share of the limit at which a compressed batch counts as full.

Each further try would compress the whole batch again.
"""
_IN_PROPORTION = 4
"""Number of tries that assume an even compression."""
_USUAL_OVERHEAD = 6
"""Bytes of a record without its body, to guess sizes by."""


class Run(NamedTuple):
    """Consecutive source offsets: the first offset, and the record count."""

    upstream: int
    length: int


_run = partial(tuple.__new__, Run)
"""Make a `Run` from a pair, in half the time of `Run(...)`."""


@dataclass(slots=True, kw_only=True)
class Spliced:
    """A new magic-2 batch, still without producer and CRC.

    `batches.rewrite` sets these.
    """

    data: bytearray
    runs: tuple[Run, ...]
    """Source offsets of the batch's records."""
    count: int
    base_timestamp: int
    max_timestamp: int
    next_upstream: int
    """Next offset to fetch at the source after this batch.

    Follows the last source batch if this batch has it whole, else the last record.
    """
    leader_epoch: int
    """Leader epoch in the first record's source batch.

    -1 for old formats, which have no leader epoch.
    """
    codec: int


class RecordTooLarge(HandledError):
    """The record at source offset `upstream` alone exceeds `max_bytes` as a batch.

    `size` is the batch's size in bytes. `before` are the batches of the records before, to be sent first. `unpacked` is
    -1, or the uncompressed bytes of a record whose batch was given up halfway; then `size` is the part made so far.
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
    to_offset: int = NO_END,
    codec: Codec | None = None,
    max_bytes: int | None = None,
    max_records: int | None = None,
    change: RecordChange | None = None,
) -> list[Spliced]:
    """Put the wanted records into as few batches as the limits allow.

    Wanted are the offsets from `from_offset` to before `to_offset`. Each source batch is its header and all its bytes;
    the caller has checked a magic-2 batch's CRC. The new batches have offset deltas from 0 without gaps, the records'
    own timestamps (CreateTime), and one `codec` (None: the first source batch's codec, with its usual level).
    `max_bytes` counts whole batches, as max.message.bytes does. `change` is applied to the wanted records. Returns []
    if no record is left.

    Raises `RecordTooLarge`, `NotChanged`, ValueError for unreadable batches, and `NotAtOnce` for batches that need
    splicing piece by piece (`splice_piece`, `splice_large`).
    """
    if not batches:
        return []
    if codec is None:
        codec = kept_codec(*batches[0])
    is_cut = change is not None or batches[-1][0].next_offset > to_offset
    if len(batches) == 1 and not is_cut:
        header, batch = batches[0]
        if _is_fine(header, batch, from_offset) and header.records <= (max_records or header.records):
            whole = _whole(header, batch, codec)
            if max_bytes is None or len(whole.data) <= max_bytes:
                return [whole]
    made = None if is_cut else _joined(batches, from_offset, codec)
    if made is not None and made.count <= (max_records or made.count) and len(made.data) <= (max_bytes or _INT64_END):
        return [made]
    source = _Source()
    for header, batch in batches:
        source.add(header, batch, from_offset, to_offset, change)
    return _cut(source, codec, max_bytes, max_records)


def splice_piece(
    header: BatchHeader,
    piece: Records,
    *,
    from_offset: int,
    to_offset: int = NO_END,
    codec: Codec,
    max_bytes: int | None,
) -> list[Spliced]:
    """Splice some records from a batch, as `splice` does.

    The caller knows the batch's end: the last new batch's `next_upstream` follows its last record only.
    """
    piece.drop_before(from_offset)
    piece.drop_from(to_offset)
    source = _Source(piece, [0], [_UNKNOWN if header.magic < MAGIC else header.leader_epoch])
    return _cut(source, codec, max_bytes, None)


def splice_large(header: BatchHeader, record: LargeRecord, codec: Codec, most: int) -> Iterator[Spliced | None]:
    """Make a one-record batch without holding the whole record.

    Yields None after each part, and the batch at the end. Raises `RecordTooLarge` as soon as the batch exceeds `most`
    bytes, with the size made so far.
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
    data = _batch(section.ended(), codec.number, 1, record.timestamp, record.timestamp)
    if len(data) > most:
        raise RecordTooLarge(record.offset, len(data), record.size)
    runs = (Run(record.offset, 1),)
    next_upstream = record.offset + 1
    yield Spliced(
        data=data,
        runs=runs,
        count=1,
        base_timestamp=record.timestamp,
        max_timestamp=record.timestamp,
        next_upstream=next_upstream,
        leader_epoch=header.leader_epoch,
        codec=codec.number,
    )


def kept_codec(header: BatchHeader, batch: memoryview) -> Codec:
    """Return a batch's codec, whatever its format, with its usual level."""
    return Codec(header.attributes & CODEC_MASK if header.magic >= MAGIC else codec_of(batch))


def made_of(joined: Joined, codec: int, next_upstream: int, leader_epoch: int) -> Spliced:
    """Make one batch from joined records, which are already compressed with `codec`."""
    count, base, latest = joined.records, joined.base_timestamp, joined.max_timestamp
    return Spliced(
        data=_batch(joined.parts, codec, count, base, latest),
        runs=tuple(map(_run, joined.runs)),
        count=count,
        base_timestamp=base,
        max_timestamp=latest,
        next_upstream=next_upstream,
        leader_epoch=leader_epoch,
        codec=codec,
    )


def _joined(batches: Sequence[tuple[BatchHeader, memoryview]], from_offset: int, codec: Codec) -> Spliced | None:
    """Make one batch of all wanted records in one walk; return None if joining can't."""
    if WALK.serves(sum(header.records for header, _ in batches)):
        return _joined_compiled(batches, from_offset, codec)
    if not all(_keeps_its_records(header, from_offset) for header, _ in batches):
        return None
    joined = joined_records(batches, codec)
    WALK.walked(joined.records if joined else 0)
    return joined and made_of(joined, codec.number, batches[-1][0].next_offset, _first_leader_epoch(batches))


def _joined_compiled(
    batches: Sequence[tuple[BatchHeader, memoryview]], from_offset: int, codec: Codec
) -> Spliced | None:
    from sparkmirror.kafka.wire.array_walk import joined_sections

    if any(header.magic != MAGIC or header.records < 0 for header, _ in batches):
        return None
    try:
        wanted = list(sections(batch for batch in batches if batch[0].next_offset > from_offset))
    except ValueError:
        return None
    joined = joined_sections(wanted, from_offset, codec) if wanted else None
    if joined is None:
        return None
    leader_epoch = wanted[joined.first][0].leader_epoch
    return made_of(joined.joined, codec.number, batches[-1][0].next_offset, leader_epoch)


def _first_leader_epoch(batches: Sequence[tuple[BatchHeader, memoryview]]) -> int:
    return next(header.leader_epoch for header, _ in batches if header.records)


def _keeps_its_records(header: BatchHeader, from_offset: int) -> bool:
    """True if all records are wanted, and bear their own timestamps."""
    return header.magic == MAGIC and not header.attributes & TIMESTAMP_TYPE_BIT and header.base_offset >= from_offset


def _is_fine(header: BatchHeader, batch: memoryview, from_offset: int) -> bool:
    """True if no record in the batch must change."""
    return (
        header.magic == MAGIC
        and header.size == len(batch)
        and header.records == header.last_offset_delta + 1 > 0
        and header.base_offset >= from_offset
        and not header.attributes & TIMESTAMP_TYPE_BIT
    )


def _whole(header: BatchHeader, batch: memoryview, codec: Codec) -> Spliced:
    """Copy the records section unchanged, or compress it again for another codec."""
    old_codec = header.attributes & CODEC_MASK
    try:
        data = batch[HEADER_SIZE:] if codec.number == old_codec else compress(codec, section(header, batch))
    except ValueError as error:
        raise unreadable(header, error) from error
    return Spliced(
        data=_batch((data,), codec.number, header.records, header.base_timestamp, header.max_timestamp),
        runs=(Run(header.base_offset, header.records),),
        count=header.records,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        next_upstream=header.next_offset,
        leader_epoch=header.leader_epoch,
        codec=codec.number,
    )


@dataclass
class _Source:
    """The wanted records in some batches, with facts about the batches."""

    records: Records = field(default_factory=Records)
    starts: list[int] = field(default_factory=list)
    """Record counts at which the leader epoch changes.

    `leader_epochs` has the leader epoch that holds from each count on.
    """
    leader_epochs: list[int] = field(default_factory=list)
    ends: dict[int, int] = field(default_factory=dict)
    """Record count after a batch -> offset after the batch.

    Holds only batches whose next offset is not the last record's plus one.
    """

    def add(
        self, header: BatchHeader, batch: memoryview, from_offset: int, to_offset: int, change: RecordChange | None
    ) -> None:
        records, known = self.records, len(self.records)
        old = header.magic < MAGIC
        next_offset = min(header.next_offset, to_offset)
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
            if next_offset == to_offset:
                records.drop_from(to_offset)
            if change is not None:
                change(records, known)
        if not records.offsets or records.offsets[-1] + 1 != next_offset:
            self.ends[len(records.offsets)] = next_offset

    @cached_property
    def weights(self) -> list[int]:
        """Approximate uncompressed bytes before each record."""
        return list(accumulate((len(body) + _USUAL_OVERHEAD for body in self.records.bodies), initial=0))

    def made(self, start: int, stop: int, codec: Codec) -> Spliced:
        """Make one batch of the records from index `start` to before `stop`."""
        timestamps = self.records.timestamps[start:stop]
        offsets = self.records.offsets[start:stop]
        base, latest = timestamps[0], max(timestamps)
        earliest = min(timestamps)
        if latest >= _INT64_END or earliest < -_INT64_END or latest - earliest >= _INT64_END:
            raise ValueError(f"timestamps from {earliest} to {latest} from offset {offsets[0]} on")
        parts = _rewritten(timestamps, self.records.attributes[start:stop], self.records.bodies[start:stop])
        if codec.number:
            parts = [compress(codec, b"".join(parts))]
        return Spliced(
            data=_batch(parts, codec.number, stop - start, base, latest),
            runs=_runs(offsets),
            count=stop - start,
            base_timestamp=base,
            max_timestamp=latest,
            next_upstream=self.ends.get(stop, offsets[-1] + 1),
            leader_epoch=self.leader_epochs[bisect_right(self.starts, start) - 1],
            codec=codec.number,
        )


def _rewritten(timestamps: list[int], attributes: bytearray, bodies: list[bytes]) -> list[bytes]:
    """Return the records with deltas from 0 on, as byte strings to join."""
    base = timestamps[0]
    pieces: list[bytes] = []
    offset_delta = 0  # zigzag encoding makes each step 2
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
    """Make a whole batch from this records section, without producer and CRC."""
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
    seams = [index for index, (offset, next_offset) in enumerate(pairwise(offsets), 1) if next_offset - offset != 1]
    return tuple(Run(offsets[start], stop - start) for start, stop in pairwise((0, *seams, len(offsets))))


def _cut(source: _Source, codec: Codec, max_bytes: int | None, max_records: int | None) -> list[Spliced]:
    """Cut batches within the limits, each with as many records as possible."""
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


def _largest(source: _Source, start: int, end: int, guess: int, codec: Codec, max_bytes: int) -> Spliced:
    """Return the batch with the most records from `start` on within `max_bytes`.

    The search tries the records before index `guess`, then guesses in proportion to the resulting size, then halves the
    range. A compressed batch may end somewhat smaller than possible.
    """
    enough = max_bytes * _FULL_ENOUGH if codec.number else max_bytes
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
