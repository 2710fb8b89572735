"""What was fetched of one partition and is not sent: made ready, numbered, claimed.

An answer of compressed small records takes seconds to make ready: that is done in pieces, and what is ready is sent
meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum

from sparkmirror.durable.identity import Identity
from sparkmirror.position.decision import Position
from sparkmirror.pump.batch import Batch, Claim
from sparkmirror.pump.claimer import Claimer
from sparkmirror.pump.intake import Intake, Obstacle, Skipped
from sparkmirror.wire.batches import rewrite
from sparkmirror.wire.buffers import Frame


class Outcome(Enum):
    """What came of making ready."""

    DONE = "nothing is left to make ready"
    MORE = "something is left"
    UNWANTED = "what comes next may not be sent"


class _Answer:
    """One fetch answer on its way through the intake; its frame is held until it is closed."""

    def __init__(
        self, intake: Intake, frame: Frame, records: memoryview, upstream: int, aborted: Sequence[tuple[int, int]]
    ) -> None:
        frame.hold()
        self._frame = frame
        self.items = intake.prepare(frame, records, upstream, aborted)

    def close(self) -> None:
        """Nothing more is wanted of it."""
        self.items.close()
        self._frame.release()


class Backlog:
    """One partition's. `until`: what begins there is not wanted, None: all is."""

    def __init__(self, identity: Identity, intake: Intake, claimer: Claimer, until: int | None) -> None:
        self.queue: deque[Batch] = deque()
        """What is ready to be sent."""
        self.bytes = 0
        """Of the queue."""
        self.claims: deque[Claim] = deque()
        """Claims that must be made durable, in this order."""
        self.upstream = -1
        """The source offset behind all that is ready, or was passed over."""
        self.leader_epoch = -1
        """That of the last batch before it; -1: not known."""
        self.obstacle = ""
        """Why what comes after the queue can't be copied."""
        self._identity = identity
        self._intake = intake
        self._claimer = claimer
        self.until = until
        self._sequence = -1
        self._downstream = -1
        self._answer: _Answer | None = None

    def start(self, position: Position, upstream: int) -> None:
        """Fetch from `upstream` on, and put it behind this position. What was here was dropped before."""
        self.upstream = upstream
        self.leader_epoch = position.leader_epoch if upstream == position.upstream else -1
        self._sequence = position.sequence
        self._downstream = position.downstream

    def feed(self, frame: Frame, records: memoryview, aborted: Sequence[tuple[int, int]]) -> None:
        """Take one fetch answer's batches; `prepare` makes them ready."""
        self._drop_answer()
        self._answer = _Answer(self._intake, frame, records, self.upstream, aborted)

    @property
    def unprepared(self) -> bool:
        """Whether `prepare` has something left to do."""
        return self._answer is not None

    @property
    def wants_more(self) -> bool:
        """Whether what follows should be fetched."""
        return not self.obstacle and self._answer is None and (self.until is None or self.upstream < self.until)

    def prepare(self, may_be_sent: Callable[[Batch], bool], enough: Callable[[], bool]) -> Outcome:
        """Make what was fetched ready and queue it, until nothing is left or it is `enough`; a step is always made.

        Raises ValueError where it can't be read.
        """
        try:
            outcome = self._prepare(may_be_sent, enough)
        except Obstacle as obstacle:
            self.obstacle = str(obstacle)
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
            if self.until is not None and self.upstream >= self.until:
                return Outcome.DONE
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
        """That of what is sent next."""
        return self.queue[0].sequence if self.queue else self._sequence

    def take(self) -> Batch:
        """The head of the queue, which is sent now."""
        batch = self.queue.popleft()
        self.bytes -= len(batch.view)
        return batch

    def drop(self) -> None:
        """Forget all of it; it is fetched again when its turn comes."""
        self._drop_answer()
        for batch in self.queue:
            batch.frame.release()
        self.queue.clear()
        self.bytes = 0
        self.claims.clear()
        self._claimer.forget()
        self.obstacle = ""

    def _drop_answer(self) -> None:
        if self._answer is not None:
            self._answer.close()
            self._answer = None
