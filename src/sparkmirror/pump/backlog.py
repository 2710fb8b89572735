"""One partition's backlog: fetched batches, made ready, numbered and claimed.

Making an answer with compressed small records ready takes seconds. So the work is done in pieces, and ready batches are
sent in between.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum

from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.position.cause import Cause
from sparkmirror.exact.position.decision import Position
from sparkmirror.kafka.wire.batches import rewrite
from sparkmirror.kafka.wire.buffers import Frame
from sparkmirror.kafka.wire.splice import NO_END
from sparkmirror.pump.batch import Batch, PendingClaim
from sparkmirror.pump.claimer import Claimer
from sparkmirror.pump.intake import Intake, Obstacle, Skipped


class Outcome(Enum):
    """Outcome of one turn of making batches ready."""

    DONE = "nothing is left to make ready"
    MORE = "something is left"
    UNWANTED = "the next batch may not be sent"


class _Answer:
    """Fetch answer on the way through the intake; holds the frame until `close`."""

    def __init__(
        self, intake: Intake, frame: Frame, records: memoryview, upstream: int, aborted: Sequence[tuple[int, int]]
    ) -> None:
        frame.hold()
        self._frame = frame
        self.items = intake.prepare(frame, records, upstream, aborted)

    def close(self) -> None:
        """Stop the intake and release the frame."""
        self.items.close()
        self._frame.release()


class Backlog:
    """One partition's fetched and unsent batches, up to the copy's end."""

    def __init__(self, identity: Identity, intake: Intake, claimer: Claimer, until: int | None) -> None:
        self.queue: deque[Batch] = deque()
        """Batches ready to be sent."""
        self.bytes = 0
        """Bytes in the queue's batches."""
        self.claims: deque[PendingClaim] = deque()
        """Claims to be made durable, in this order."""
        self.upstream = -1
        """Source offset after all records that are ready or were passed over."""
        self.leader_epoch = -1
        """Leader epoch of the last batch before `upstream`; -1: unknown."""
        self.obstacle: tuple[str, Cause] | None = None
        """Reason and cause if the records after the queue can't be copied."""
        self._identity = identity
        self._intake = intake
        self._claimer = claimer
        self._sequence = -1
        self._downstream = -1
        self._answer: _Answer | None = None
        self.end_at(until)

    def end_at(self, until: int | None) -> None:
        """End before this upstream offset; None: no end.

        What is not made ready yet is to be fetched again, since it may have been cut at the former end.
        """
        self._intake.until = NO_END if until is None else until
        self._drop_answer()

    def start(self, position: Position, upstream: int) -> None:
        """Fetch from `upstream` on, and number the records from a position on.

        The caller has dropped the former backlog.
        """
        self.upstream = upstream
        self.leader_epoch = position.leader_epoch if upstream == position.upstream else -1
        self._sequence = position.sequence
        self._downstream = position.downstream

    def split(self, refused: int) -> None:
        """Make batches smaller than `refused` bytes from now on."""
        self._intake.split(refused)

    def join(self, size: int) -> None:
        """Join small batches up to `size` bytes in the next answers; 0: don't."""
        self._intake.join(size)

    def feed(self, frame: Frame, records: memoryview, aborted: Sequence[tuple[int, int]]) -> None:
        """Take one fetch answer's batches, for `prepare`."""
        self._drop_answer()
        self._answer = _Answer(self._intake, frame, records, self.upstream, aborted)

    @property
    def unprepared(self) -> bool:
        """True if `prepare` has work left."""
        return self._answer is not None

    @property
    def wants_more(self) -> bool:
        """True if the records after the backlog should be fetched."""
        return not self.obstacle and self._answer is None and self.upstream < self._intake.until

    def prepare(self, may_be_sent: Callable[[Batch], bool], enough: Callable[[], bool]) -> Outcome:
        """Make fetched batches ready and queue the batches, at least one step.

        Continues until the answer has no more, or `enough` returns True. Raises ValueError for unreadable batches.
        """
        try:
            outcome = self._prepare(may_be_sent, enough)
        except Obstacle as obstacle:
            self.obstacle = str(obstacle), obstacle.cause  # without what the error's frames hold
            outcome = Outcome.DONE
        if outcome is not Outcome.MORE:
            self._drop_answer()
        claim = self._claimer.finish()
        if claim is not None:
            self.claims.append(claim)
        return outcome

    def _prepare(self, may_be_sent: Callable[[Batch], bool], enough: Callable[[], bool]) -> Outcome:
        for item in self._answer.items if self._answer is not None else ():
            if not isinstance(item, Skipped):
                if not may_be_sent(item):
                    item.frame.release()
                    return Outcome.UNWANTED
                self._enqueue(item)
            self.upstream = item.next_upstream
            if enough():
                return Outcome.MORE
        return Outcome.DONE

    def _enqueue(self, batch: Batch) -> None:
        size = len(batch.view)
        crc = rewrite(
            batch.view,
            0,
            size,
            batch.attributes,
            self._identity.producer_id,
            self._identity.producer_epoch,
            self._sequence,
        )
        batch.place(self._sequence, self._downstream, crc, self._claimer.follows)
        self.queue.append(batch)
        self.bytes += size
        self._sequence += batch.count
        self._downstream += batch.count
        self.leader_epoch = batch.leader_epoch
        claim = self._claimer.note(batch)
        if claim is not None:
            self.claims.append(claim)

    @property
    def sequence(self) -> int:
        return self.queue[0].sequence if self.queue else self._sequence

    def take(self) -> Batch:
        """Remove and return the queue's head, to be sent now."""
        batch = self.queue.popleft()
        self.bytes -= len(batch.view)
        return batch

    def rewind(self, upstream: int) -> None:
        """Go back to a source offset, after a `drop`.

        Nothing can be made ready from there.
        """
        self.upstream = upstream

    def drop(self) -> None:
        """Forget the whole backlog, to be fetched again later."""
        self._drop_answer()
        for batch in self.queue:
            batch.frame.release()
        self.queue.clear()
        self.bytes = 0
        self.claims.clear()
        self._claimer.forget()
        self.obstacle = None

    def _drop_answer(self) -> None:
        if self._answer is not None:
            self._answer.close()
            self._answer = None
