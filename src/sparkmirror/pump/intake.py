"""From what was fetched to what can be sent: most batches whole, the others spliced (design section 2, slow path).

Nothing here knows of sequences or claims. Transaction markers, aborted data and batches that compaction
emptied are passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from sparkmirror.pump.batch import Batch
from sparkmirror.pump.limits import MADE_BYTES
from sparkmirror.wire.batches import (
    CODEC_MASK,
    CODECS,
    MAGIC,
    TRANSACTIONAL_BIT,
    BatchHeader,
    batch_headers,
    slow_path_reason,
)
from sparkmirror.wire.buffers import Frame
from sparkmirror.wire.joining import joined_lone_records
from sparkmirror.wire.pieces import LargeRecord, pieces
from sparkmirror.wire.records import NotAtOnce
from sparkmirror.wire.splice import (
    RecordTooLarge,
    Run,
    Spliced,
    kept_codec,
    made_of,
    splice,
    splice_large,
    splice_piece,
)
from sparkmirror.wire.transactions import Transactions

TINY_BYTES = 4096
"""Smaller batches may be merged."""

MERGED_BYTES = 256 << 10
"""Merged batches grow to this size at most."""

REMADE_BYTES = 96 << 10
"""So much of what must be made anew goes into one: larger pieces of memory are given back and fetched anew each time
(malloc's threshold for mmap is 128 KiB), which costs more than the records do."""

BACKLOG_BATCHES = 8
"""So many tiny batches in a row in one fetch answer are a backlog; fewer keep their batches."""


_RAISE = "raise max.message.bytes of the target topic"
_ANOTHER_CODEC = "a pump makes no larger one; set producer.compression.type to none, which leaves batches as they are"


class Skipped(NamedTuple):
    """Nothing to send before this upstream offset."""

    next_upstream: int


class Obstacle(ValueError):
    """What the source has next can't be sent; the message says where and why."""


class _Waiting:
    """Tiny batches one after the other that may become one."""

    def __init__(self) -> None:
        self.batches: list[tuple[BatchHeader, memoryview]] = []
        self.size = 0

    def add(self, header: BatchHeader, view: memoryview) -> None:
        self.batches.append((header, view))
        self.size += header.size

    def takes(self, header: BatchHeader, most: int) -> bool:
        """Whether this batch may be in the same one, of `most` bytes."""
        fits = self.size + header.size <= most
        return not self.batches or (fits and self.batches[0][0].leader_epoch == header.leader_epoch)


class Intake:
    """Prepares one partition's batches.

    `codec`: the number of the one to compress with; None keeps each batch's own.
    """

    def __init__(self, *, read_committed: bool, codec: int | None, merge_tiny: bool) -> None:
        self._read_committed = read_committed
        self._codec = codec
        self._merge_tiny = merge_tiny
        self._refused: int | None = None
        """The size of the smallest batch that was larger than the target's max.message.bytes."""

    def split(self, size: int) -> None:
        """The target has refused a batch of this size: what comes is cut into halves of it."""
        self._refused = min(size, self._refused or size)

    @property
    def _max_bytes(self) -> int | None:
        return None if self._refused is None else self._refused // 2

    def prepare(
        self, frame: Frame, records: memoryview, upstream: int, aborted: Sequence[tuple[int, int]]
    ) -> Generator[Batch | Skipped, None, None]:
        """All of one answer from `upstream` on; each batch's frame is held once."""
        waiting = _Waiting()
        transactions = Transactions(aborted) if self._read_committed else None
        headers = batch_headers(records)
        look_at, merged_to = 0, -1
        while (found := next(headers, None)) is not None:
            position, header = found
            if not waiting.batches and position >= look_at and self._may_be_lone(header):
                lone = joined_lone_records(records[position : position + MERGED_BYTES], upstream, TINY_BYTES)
                if lone is not None and (lone.joined.records >= BACKLOG_BATCHES or position == merged_to):
                    merged_to = position + lone.size
                    headers = batch_headers(records, merged_to)
                    upstream = lone.next_offset
                    yield _made(frame, made_of(lone.joined, 0, upstream, lone.leader_epoch))
                    continue
                look_at = position + MERGED_BYTES  # each look copies so much
            if header.is_corrupt(records, position):
                yield from self._flush(frame, waiting, upstream)
                raise Obstacle(f"the batch at source offset {header.base_offset} is corrupt (its CRC does not match)")
            if header.magic == MAGIC and header.next_offset <= upstream:
                continue
            view = records[position : position + header.size]
            if not waiting.batches and not self._is_tiny(header) and self._goes_whole(header, upstream):
                upstream = header.next_offset
                yield _whole(frame, header, view)
                continue
            passed_over = header.magic == MAGIC and self._is_passed_over(header, view, transactions)
            waits = not passed_over and self._is_tiny(header)
            if not waits or not waiting.takes(header, self._remade_bytes):
                for item in self._flush(frame, waiting, upstream):
                    upstream = item.next_upstream
                    yield item
            if passed_over:
                upstream = header.next_offset
                yield Skipped(upstream)
            elif waits:
                waiting.add(header, view)
            else:
                for item in self._one(frame, header, view, upstream):
                    upstream = item.next_upstream
                    yield item
        yield from self._flush(frame, waiting, upstream)

    def _is_passed_over(self, header: BatchHeader, view: memoryview, transactions: Transactions | None) -> bool:
        dropped = transactions is not None and transactions.is_aborted(header, view)
        return header.is_control or header.records == 0 or dropped

    def _is_tiny(self, header: BatchHeader) -> bool:
        return self._merge_tiny and header.magic == MAGIC and header.size < TINY_BYTES

    def _may_be_lone(self, header: BatchHeader) -> bool:
        """Whether a run of plain one-record batches may begin here; `joined_lone_records` tells."""
        sent_as_they_are = self._codec is None and self._max_bytes is None
        return header.records == 1 and not header.attributes and sent_as_they_are and self._is_tiny(header)

    @property
    def _remade_bytes(self) -> int:
        return min(REMADE_BYTES, self._max_bytes or REMADE_BYTES)

    def _flush(self, frame: Frame, waiting: _Waiting, upstream: int) -> Iterator[Batch | Skipped]:
        batches, waiting.batches, waiting.size = waiting.batches, [], 0
        if len(batches) >= BACKLOG_BATCHES:
            yield from self._splice(frame, batches, upstream, MERGED_BYTES)
            return
        for header, view in batches:
            for item in self._one(frame, header, view, upstream):
                upstream = item.next_upstream
                yield item

    def _one(self, frame: Frame, header: BatchHeader, view: memoryview, upstream: int) -> Iterator[Batch | Skipped]:
        if self._goes_whole(header, upstream):
            yield _whole(frame, header, view)
        else:
            yield from self._splice(frame, [(header, view)], upstream, None)

    def _goes_whole(self, header: BatchHeader, upstream: int) -> bool:
        return (
            slow_path_reason(header) is None
            and header.records > 0
            and not (self._read_committed and header.attributes & TRANSACTIONAL_BIT)
            and header.base_offset >= upstream
            and (self._codec is None or header.attributes & CODEC_MASK == self._codec)
            and (self._max_bytes is None or header.size <= self._max_bytes)
        )

    def _splice(
        self, frame: Frame, batches: Sequence[tuple[BatchHeader, memoryview]], upstream: int, most: int | None
    ) -> Iterator[Batch | Skipped]:
        sizes = [size for size in (self._max_bytes, most) if size is not None]
        try:
            spliced, obstacle = self._within(
                partial(splice, batches, from_offset=upstream, codec=self._codec), min(sizes, default=None)
            )
        except NotAtOnce:
            for header, view in batches:
                yield from self._in_pieces(frame, header, view, upstream)
            return
        except ValueError as error:
            raise Obstacle(f"the batch at source offset {batches[0][0].base_offset} can't be read: {error}") from error
        for one in spliced:
            yield _made(frame, one)
        if obstacle is not None:
            raise obstacle
        last = batches[-1][0]
        if last.magic == MAGIC:
            yield Skipped(last.next_offset)

    def _within(
        self, make: Callable[..., list[Spliced]], max_bytes: int | None
    ) -> tuple[list[Spliced], Obstacle | None]:
        """Made to that size, or to that of a larger record, which the target may take; not if it refused as much.

        Then with what follows those that could be made.
        """
        try:
            return make(max_bytes=max_bytes), None
        except RecordTooLarge as error:
            if self._refused is not None and error.size >= self._refused:
                return error.before, Obstacle(
                    f"the record at source offset {error.upstream} makes a batch of {error.size} bytes: {_RAISE}"
                )
            return self._within(make, error.size)

    def _in_pieces(
        self, frame: Frame, header: BatchHeader, view: memoryview, upstream: int
    ) -> Iterator[Batch | Skipped]:
        """One batch that is too much to be unpacked at once: a new one of each piece.

        Where nothing comes of a part it says so, too: each is a step.
        """
        codec = kept_codec(header, view) if self._codec is None else self._codec
        at = upstream
        try:
            for piece in pieces(header, view):
                if isinstance(piece, LargeRecord):
                    wanted = piece.offset >= upstream
                    for one in self._large(header, view, piece, codec) if wanted else map(_none, piece.body):
                        at = at if one is None else one.next_upstream
                        yield Skipped(at) if one is None else _made(frame, one)
                    continue
                make = partial(splice_piece, header, piece, from_offset=upstream, codec=codec)
                spliced, obstacle = self._within(make, self._max_bytes)
                for one in spliced:
                    at = one.next_upstream
                    yield _made(frame, one)
                if obstacle is not None:
                    raise obstacle
                yield Skipped(at)
        except Obstacle:
            raise
        except ValueError as error:
            raise Obstacle(f"the batch at source offset {header.base_offset} can't be read: {error}") from error
        if header.magic == MAGIC:
            yield Skipped(header.next_offset)

    def _large(
        self, header: BatchHeader, view: memoryview, record: LargeRecord, codec: int
    ) -> Iterator[Spliced | None]:
        most = max(MADE_BYTES, 2 * len(view))
        if self._refused is not None:
            most = min(most, self._refused - 1)
        try:
            yield from splice_large(header, record, codec, most)
        except RecordTooLarge as error:
            remedy = _RAISE if self._refused is not None and most < self._refused else _ANOTHER_CODEC
            raise Obstacle(
                f"the record at source offset {record.offset}, which has {record.size} bytes, makes a batch of more "
                f"than {most} bytes with {CODECS[codec]}: {remedy}"
            ) from error


def _none(_: object) -> None:
    return None


def _made(frame: Frame, spliced: Spliced) -> Batch:
    own = frame.beside(spliced.data)
    return Batch(
        own,
        own.view,
        spliced.codec,
        spliced.runs,
        spliced.count,
        spliced.next_upstream,
        spliced.base_timestamp,
        spliced.max_timestamp,
        spliced.leader_epoch,
    )


def _whole(frame: Frame, header: BatchHeader, view: memoryview) -> Batch:
    frame.hold()
    return Batch(
        frame,
        view,
        header.attributes,
        (Run(header.base_offset, header.records),),
        header.records,
        header.next_offset,
        header.base_timestamp,
        header.max_timestamp,
        header.leader_epoch,
    )
