"""Intake: from fetched batches to batches that can be sent.

Most batches are sent whole, the rest is spliced (the slow path). See "Logs that are not clean" in docs/design.md. The
module knows no sequences and no claims. Transaction markers, aborted data and batches emptied by compaction are passed
over.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple

from sparkmirror.errors import HandledError
from sparkmirror.exact.position.cause import Cause
from sparkmirror.kafka.wire.batches import (
    CODEC_MASK,
    CODECS,
    MAGIC,
    TRANSACTIONAL_BIT,
    BatchHeader,
    batch_headers,
    slow_path_reason,
)
from sparkmirror.kafka.wire.buffers import Frame
from sparkmirror.kafka.wire.codecs import Codec
from sparkmirror.kafka.wire.joined import PIECE_RECORDS
from sparkmirror.kafka.wire.joining import joined_lone_records
from sparkmirror.kafka.wire.pieces import LargeRecord, pieces
from sparkmirror.kafka.wire.records import NotAtOnce, NotChanged, RecordChange, Records
from sparkmirror.kafka.wire.splice import (
    NO_END,
    RecordTooLarge,
    Run,
    Spliced,
    kept_codec,
    made_of,
    splice,
    splice_large,
    splice_piece,
)
from sparkmirror.kafka.wire.transactions import Transactions
from sparkmirror.pump.batch import Batch
from sparkmirror.pump.limits import MADE_BYTES

TINY_BYTES = 4096
"""A batch below this size is tiny and may be merged."""

MERGED_BYTES = 256 << 10
"""A merged batch's largest size."""

REMADE_BYTES = 96 << 10
"""Most bytes of batches that wait to become one new batch.

Larger pieces of memory are given back and fetched again each time (malloc's threshold for mmap is 128 KiB), which costs
more than the records do.
"""

JOINED_BYTES = 768 << 10
"""Most bytes in batches that are joined for a long line.

A topic takes a batch of a million bytes by default (`max.message.bytes`), and joined records may compress worse.
"""

LARGEST_JOINED_BYTES = 1_000_000
"""Largest batch made of joined batches."""

BACKLOG_BATCHES = 8
"""Number of tiny batches in a row in one fetch answer that make a backlog.

Fewer batches are not merged.
"""


_REFUSED = "larger than the target's max.message.bytes, as it has refused a batch of"
_ANOTHER_CODEC = "a pump makes no larger one; set producer.compression.type to none, which leaves batches as they are"


class Skipped(NamedTuple):
    """Step without a batch: no further record to send below `next_upstream`."""

    next_upstream: int


class Obstacle(HandledError, ValueError):
    """Error for the source's next records if these can't be sent.

    The message has the offset and the reason. By `cause` either the records or the target's limit is the trouble.
    """

    def __init__(self, message: str, cause: Cause = Cause.UNREADABLE) -> None:
        super().__init__(message)
        self.cause = cause


class _Waiting:
    """Consecutive batches that may be merged.

    These are tiny batches, batches that are made again in any case, and for a long line all.
    """

    def __init__(self) -> None:
        self.batches: list[tuple[BatchHeader, memoryview]] = []
        self.size = self.records = 0

    def add(self, header: BatchHeader, view: memoryview) -> None:
        self.batches.append((header, view))
        self.size += header.size
        self.records += header.records

    def takes(self, header: BatchHeader, most: int) -> bool:
        """True if the batch may join the waiting batches, up to `most` bytes in all.

        The first batch's codec becomes the codec of all, which only tiny batches may change.
        """
        if not self.batches:
            return True
        first = self.batches[0][0]
        alike = header.size < TINY_BYTES or header.codec == first.codec
        fits = self.size + header.size <= most and self.records + header.records <= PIECE_RECORDS
        return alike and fits and first.leader_epoch == header.leader_epoch


class Intake:
    """Prepare one partition's batches.

    `codec` is the codec to compress with; None keeps each batch's codec. `change` is applied to each record; None
    copies bodies unchanged. Batches of the producer id `opposite` are passed over: a migration's opposite flow has
    copied them from the target (M1).
    """

    until: int = NO_END
    """Source offset at which the copy ends; a batch that goes beyond is cut there.

    Another end counts from the next answer on.
    """

    def __init__(
        self,
        *,
        read_committed: bool,
        codec: Codec | None,
        merge_tiny: bool,
        change: RecordChange | None = None,
        opposite: int | None = None,
    ) -> None:
        self._opposite = opposite
        self._read_committed = read_committed
        self._codec = codec
        self._change = change
        self._merge_tiny = merge_tiny
        self._refused: int | None = None
        """Smallest batch size refused for the target's max.message.bytes, or None."""
        self._max_bytes: int | None = None
        """Largest batch to make since then: half of the refused size."""
        self._joined_bytes = 0
        self._joinable_bytes: int | None = None
        """Most bytes to join, None for no limit.

        More bytes than that have unpacked to more than a piece.
        """

    @property
    def changes(self) -> bool:
        """True if transforms change the records."""
        return self._change is not None

    def join(self, size: int) -> None:
        """Join batches up to `size` bytes in the next answers; 0: don't.

        Joins none if merging is not wanted.
        """
        if self._joinable_bytes is not None:
            self._joinable_bytes += self._joinable_bytes // 16  # later records may unpack to less
        self._joined_bytes = min(size, self._joinable_bytes or size) if self._merge_tiny else 0

    def split(self, size: int) -> None:
        """Cut the following batches to half the size of a batch that the target refused."""
        self._refused = min(size, self._refused or size)
        self._max_bytes = self._refused // 2

    def prepare(
        self, frame: Frame, records: memoryview, upstream: int, aborted: Sequence[tuple[int, int]]
    ) -> Generator[Batch | Skipped, None, None]:
        """Yield one answer's batches from `upstream` on, and steps without a batch.

        Each batch's frame is held once, for the receiver to release. Raises `Obstacle`.
        """
        waiting = _Waiting()
        transactions = Transactions(aborted) if self._read_committed else None
        headers = batch_headers(records)
        look_at, merged_to, ahead, asked = 0, -1, 0, upstream
        while (placed := next(headers, None)) is not None:
            position, header = placed
            if not waiting.batches and position >= look_at and self._may_be_lone(header):
                lone = joined_lone_records(records[position : position + MERGED_BYTES], upstream, TINY_BYTES)
                if (
                    lone is not None
                    and lone.next_offset <= self.until
                    and (lone.joined.records >= BACKLOG_BATCHES or position == merged_to)
                ):
                    merged_to = position + lone.size
                    headers = batch_headers(records, merged_to)
                    upstream = ahead = lone.next_offset
                    yield _made(frame, made_of(lone.joined, 0, upstream, lone.leader_epoch))
                    continue
                look_at = position + MERGED_BYTES  # looks are rare, as each look copies MERGED_BYTES
            if header.magic == MAGIC and header.base_offset >= self.until:
                yield from self._flush(frame, waiting, upstream)
                yield Skipped(self.until)
                return
            if header.is_corrupt(records, position):
                yield from self._flush(frame, waiting, upstream)
                raise Obstacle(f"the batch at source offset {header.base_offset} is corrupt (its CRC does not match)")
            if header.base_offset < ahead:
                yield from self._flush(frame, waiting, upstream)
                raise Obstacle(
                    f"the batch at source offset {header.base_offset} comes after the records up to {ahead - 1}: the "
                    "source's answer is out of order"
                )
            ahead = header.next_offset
            if header.magic == MAGIC and ahead <= upstream:
                continue
            view = records[position : position + header.size]
            if not waiting.batches and not self._is_small(header) and self._goes_whole(header, upstream):
                upstream = ahead
                yield _whole(frame, header, view)
                continue
            passed_over = header.magic == MAGIC and self._is_passed_over(header, view, transactions)
            waits = not passed_over and self._may_wait(header)
            if not waits or not waiting.takes(header, self._remade_bytes):
                for item in self._flush(frame, waiting, upstream):
                    upstream = item.next_upstream
                    yield item
            if passed_over:
                upstream = self._next_offset(header)
                yield Skipped(upstream)
            elif waits:
                waiting.add(header, view)
            else:
                for item in self._one(frame, header, view, upstream):
                    upstream = item.next_upstream
                    yield item
        yield from self._flush(frame, waiting, upstream)
        if 0 < ahead <= asked and header.magic == MAGIC:
            raise Obstacle(f"the source answers with records up to {ahead - 1} in place of those from {asked} on")

    def _next_offset(self, header: BatchHeader) -> int:
        """Return the offset after a batch; the copy's end if the batch goes beyond."""
        return min(header.next_offset, self.until)

    def _is_passed_over(self, header: BatchHeader, view: memoryview, transactions: Transactions | None) -> bool:
        dropped = transactions is not None and transactions.is_aborted(header, view)
        return header.is_control or header.records == 0 or dropped or self._comes_back(header)

    def _comes_back(self, header: BatchHeader) -> bool:
        """True if the opposite flow has copied the batch from the target."""
        return self._opposite is not None and header.producer_id == self._opposite

    def _is_tiny(self, header: BatchHeader) -> bool:
        return self._merge_tiny and header.magic == MAGIC and header.size < TINY_BYTES

    def _is_small(self, header: BatchHeader) -> bool:
        """True if the batch is tiny, or small for the target's line."""
        if not self._merge_tiny or header.magic != MAGIC:
            return False
        size = header.size
        return size < TINY_BYTES or (self._joined_bytes > 0 and self._joins(size))

    def _may_wait(self, header: BatchHeader) -> bool:
        """True if the batch may be merged with batches after it.

        A batch that is made again in any case is: what compaction has left of it, what the broker stamped, and what is
        transformed. Fewer and larger batches cost less to claim, and to send one at a time (R19).
        """
        is_remade = slow_path_reason(header) is not None or self._change is not None
        return (self._merge_tiny and header.magic == MAGIC and is_remade) or self._is_small(header)

    def _joins(self, size: int) -> bool:
        return 2 * size <= min(self._joined_bytes, self._max_bytes or self._joined_bytes)

    def _may_be_lone(self, header: BatchHeader) -> bool:
        """True if a run of plain one-record batches may begin here.

        `joined_lone_records` tells for sure.
        """
        sent_as_they_are = self._codec is None and self._max_bytes is None and self._change is None
        sent_as_they_are = sent_as_they_are and self._opposite is None
        return header.records == 1 and not header.attributes and sent_as_they_are and self._is_tiny(header)

    @property
    def _remade_bytes(self) -> int:
        most = max(REMADE_BYTES, self._joined_bytes)
        return min(most, self._max_bytes or most, self._joinable_bytes or most)

    def _flush(self, frame: Frame, waiting: _Waiting, upstream: int) -> Iterator[Batch | Skipped]:
        batches, waiting.batches, waiting.size, waiting.records = waiting.batches, [], 0, 0
        most = LARGEST_JOINED_BYTES if self._joined_bytes > REMADE_BYTES else MERGED_BYTES
        if len(batches) >= (2 if self._joined_bytes else BACKLOG_BATCHES):
            yield from self._splice(frame, batches, upstream, most)
            return
        begin = upstream
        for is_whole, alike in groupby(batches, lambda batch: self._goes_whole(batch[0], begin)):
            if is_whole:
                for header, view in alike:
                    upstream = header.next_offset
                    yield _whole(frame, header, view)
                continue
            for item in self._splice(frame, [*alike], upstream, None):
                upstream = item.next_upstream
                yield item

    def _one_by_one(
        self, frame: Frame, batches: Iterable[tuple[BatchHeader, memoryview]], upstream: int
    ) -> Iterator[Batch | Skipped]:
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
            self._change is None
            and not self._comes_back(header)
            and slow_path_reason(header) is None
            and header.records > 0
            and not (self._read_committed and header.attributes & TRANSACTIONAL_BIT)
            and header.base_offset >= upstream
            and header.next_offset <= self.until
            and (self._codec is None or header.attributes & CODEC_MASK == self._codec.number)
            and (self._max_bytes is None or header.size <= self._max_bytes)
        )

    def _splice(
        self,
        frame: Frame,
        batches: Sequence[tuple[BatchHeader, memoryview]],
        upstream: int,
        most: int | None,
        before: int = NO_END,
    ) -> Iterator[Batch | Skipped]:
        sizes = [size for size in (self._max_bytes, most) if size is not None]
        try:
            spliced, obstacle = self._within(
                partial(
                    splice,
                    batches,
                    from_offset=upstream,
                    to_offset=min(self.until, before),
                    codec=self._codec,
                    change=self._change,
                ),
                min(sizes, default=None),
            )
        except NotAtOnce:
            if len(batches) == 1:
                yield from self._in_pieces(frame, *batches[0], upstream)
                return
            self._joinable_bytes = sum(header.size for header, _ in batches) // 2
            yield from self._one_by_one(frame, batches, upstream)
            return
        except NotChanged as error:
            if len(batches) > 1:
                yield from self._one_by_one(frame, batches, upstream)
                return
            yield from self._splice(frame, batches, upstream, most, before=error.upstream)
            raise Obstacle(str(error), Cause.TRANSFORM) from error
        except ValueError as error:
            if len(batches) > 1:  # the batches before the unreadable batch can be sent
                yield from self._one_by_one(frame, batches, upstream)
                return
            raise Obstacle(f"the batch at source offset {batches[0][0].base_offset} can't be read: {error}") from error
        for new_batch in spliced:
            yield _made(frame, new_batch)
        if obstacle is not None:
            raise obstacle
        if before == NO_END:
            yield from self._ended(batches[-1][0], upstream)

    def _ended(self, last: BatchHeader, upstream: int) -> Iterator[Skipped]:
        """Yield the step after a spliced batch.

        An old format's header does not tell whether records are missing after the last one, which a transform may have
        dropped; and its records may be older than `upstream`.
        """
        if last.magic == MAGIC or last.next_offset >= self.until:
            yield Skipped(self._next_offset(last))
        elif self._change is not None:
            yield Skipped(max(last.next_offset, upstream))

    def _within(
        self, make: Callable[..., list[Spliced]], max_bytes: int | None
    ) -> tuple[list[Spliced], Obstacle | None]:
        """Make batches of at most `max_bytes`, or larger for a single larger record.

        The target may take the larger record. If the target has refused a batch that large or smaller, the result is
        the batches before the record, and an obstacle for the record.
        """
        try:
            return make(max_bytes=max_bytes), None
        except RecordTooLarge as error:
            if self._refused is not None and error.size >= self._refused:
                return error.before, Obstacle(
                    f"the record at source offset {error.upstream} makes a batch of {error.size} bytes, {_REFUSED}"
                    f" {self._refused}",
                    Cause.TOO_LARGE,
                )
            return self._within(make, error.size)

    def _in_pieces(
        self, frame: Frame, header: BatchHeader, view: memoryview, upstream: int
    ) -> Iterator[Batch | Skipped]:
        """Yield new batches piece by piece, for a batch too large to unpack at once.

        A part without a new batch yields a `Skipped`, as each part is a step.
        """
        codec = kept_codec(header, view) if self._codec is None else self._codec
        at = upstream
        try:
            for piece in pieces(header, view):
                if isinstance(piece, LargeRecord) and self._change is not None:
                    piece = piece.held()
                if isinstance(piece, LargeRecord):
                    wanted = upstream <= piece.offset < self.until
                    for new_batch in self._large(header, view, piece, codec) if wanted else map(_none, piece.body):
                        at = at if new_batch is None else new_batch.next_upstream
                        yield Skipped(at) if new_batch is None else _made(frame, new_batch)
                    continue
                spliced, obstacle = self._of_piece(header, piece, upstream, codec)
                for new_batch in spliced:
                    at = new_batch.next_upstream
                    yield _made(frame, new_batch)
                if obstacle is not None:
                    raise obstacle
                yield Skipped(at)
        except Obstacle:
            raise
        except ValueError as error:
            raise Obstacle(f"the batch at source offset {header.base_offset} can't be read: {error}") from error
        yield from self._ended(header, at)

    def _of_piece(
        self, header: BatchHeader, piece: Records, upstream: int, codec: Codec
    ) -> tuple[list[Spliced], Obstacle | None]:
        obstacle = None
        piece.drop_before(upstream)
        piece.drop_from(self.until)
        if self._change is not None:
            try:
                self._change(piece, 0)
            except NotChanged as error:
                obstacle = Obstacle(str(error), Cause.TRANSFORM)
                piece.drop_from(error.upstream)
                self._change(piece, 0)
        make = partial(splice_piece, header, piece, from_offset=upstream, codec=codec)
        spliced, earlier = self._within(make, self._max_bytes)
        return spliced, earlier or obstacle

    def _large(
        self, header: BatchHeader, view: memoryview, record: LargeRecord, codec: Codec
    ) -> Iterator[Spliced | None]:
        most, refused = max(MADE_BYTES, 2 * len(view)), self._refused
        if refused is not None:
            most = min(most, refused - 1)
        try:
            yield from splice_large(header, record, codec, most)
        except RecordTooLarge as error:
            at_target = refused is not None and most < refused
            why = f", {_REFUSED} {refused}" if at_target else f": {_ANOTHER_CODEC}"
            raise Obstacle(
                f"the record at source offset {record.offset}, which has {record.size} bytes, makes a batch of more "
                f"than {most} bytes with {CODECS[codec.number]}{why}",
                Cause.TOO_LARGE if at_target else Cause.UNREADABLE,
            ) from error


def _none(_: object) -> None:
    return None


def _made(frame: Frame, spliced: Spliced) -> Batch:
    own = frame.sibling(spliced.data)
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
