"""Move partitions between a running round's tasks.

The driver names each moved partition's next task. The next task connects and reads ahead, and says that it is ready.
Then the task that has copied the partition so far stops, waits for the batches in flight, and says that it has released
the partition, and where the copy continues. Only then the next task begins: at no time two tasks copy a partition by
plan (R7). All words travel through the control topic, without settings and secrets, and each repeats all earlier ones
in its round, so that a task that is tried again knows them, too. Words that come late or twice change nothing.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from sparkmirror.exact.durable.noted_progress import ReportedProgress
from sparkmirror.exact.position.decision import Position
from sparkmirror.exact.position.route import PartitionReading
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.pump.messages.orders import RouteOrder

NO_TASK = -1

MOST_MOVES = 1000
"""Most partitions in one change, and most moves before it in its round.

A move takes some 300 bytes in the driver's record, and 600 bytes in a task's.
"""


class _MoveValue(BaseModel):
    model_config = ConfigDict(frozen=True)


class RouteMove(_MoveValue):
    """One partition's newest move in a round."""

    number: int
    """The move's number; a later move in the round has a higher number."""
    route: RouteOrder
    before: int = NO_TASK
    """Task that has to release the partition first; `NO_TASK`: no task copied it."""
    task: int = NO_TASK
    """Task that copies the partition from now on; `NO_TASK`: it is left alone."""


class RouteMoves(_MoveValue):
    """All moves in a round, one for each moved partition."""

    incarnation: str
    """The driver's random id."""
    epoch: int
    """The round's number."""
    moves: tuple[RouteMove, ...]
    shares: dict[int, float]
    """Share of the flow's bandwidth cap by task, from now on."""

    def is_older_than(self, other: RouteMoves | None) -> bool:
        """True if words of the same driver have come that say more."""
        return other is not None and (self.epoch, self.newest) < (other.epoch, other.newest)

    @property
    def newest(self) -> int:
        return max((move.number for move in self.moves), default=0)


class Place(_MoveValue):
    """A copy's position, as the former task's acknowledgements show it.

    The fields are those in `position.decision.Position` and `position.route.PartitionReading`, with ids as hexadecimal
    digits.
    """

    sequence: int
    upstream: int | None
    """Source offset after the last copied record."""
    downstream: int
    leader_epoch: int
    newest_timestamp_ms: int | None
    source_topic_id: str
    source_leader: int
    source_leader_epoch: int
    source_start: int
    source_end: int
    target_topic_id: str
    target_leader: int
    compacted: bool
    age_s: float
    """The position's age when the former task heard that the next was ready.

    0: the position was confirmed later.
    """

    @classmethod
    def of(cls, settled: PartitionReading, heard_at: float) -> Place:
        """Return a resting copy's place.

        `heard_at` is the time at which this task heard that the next task was ready, by the clock that `settled` uses.
        """
        position = settled.position
        return cls(
            sequence=position.sequence,
            upstream=position.upstream,
            downstream=position.downstream,
            leader_epoch=position.leader_epoch,
            newest_timestamp_ms=position.newest_timestamp_ms,
            source_topic_id=settled.source_topic_id.hex(),
            source_leader=settled.source_leader,
            source_leader_epoch=settled.source_leader_epoch,
            source_start=settled.source_start,
            source_end=settled.source_end,
            target_topic_id=settled.target_topic_id.hex(),
            target_leader=settled.target_leader,
            compacted=settled.compacted,
            age_s=max(heard_at - settled.read_at, 0.0),
        )

    def reading(self, ready_at: float) -> PartitionReading:
        """Return the position as if it had been read.

        `ready_at` is the time at which this task began to say that it was ready, by its own clock: the former task
        heard about it later.
        """
        return PartitionReading(
            position=Position(
                sequence=self.sequence,
                upstream=self.upstream,
                downstream=self.downstream,
                claim_due=False,
                leader_epoch=self.leader_epoch,
                source_topic_id=bytes.fromhex(self.source_topic_id),
                newest_timestamp_ms=self.newest_timestamp_ms,
                end=self.downstream,
            ),
            resume_at=self.upstream,
            source_topic_id=bytes.fromhex(self.source_topic_id),
            source_leader=self.source_leader,
            source_leader_epoch=self.source_leader_epoch,
            source_start=self.source_start,
            source_end=self.source_end,
            target_topic_id=bytes.fromhex(self.target_topic_id),
            target_leader=self.target_leader,
            read_at=ready_at - self.age_s,
            compacted=self.compacted,
        )


class Release(_MoveValue):
    """A task's word that it sends no more from a partition."""

    number: int
    """Number of the move that asked for it."""
    source_topic: str
    partition: int
    target_topic_id: str = ""
    """Topic id at the target that `appended` is about, as hexadecimal digits."""
    appended: int = -1
    """Target's offset after the last acknowledged record; -1: unknown."""
    passed: tuple[int, int] = (-1, -1)
    """Next offsets, upstream and downstream; -1: unknown."""
    unclean: bool = False
    """True if the partition's batches may still arrive: the quiet rule holds (R5)."""
    place: Place | None = None
    """Position to continue from; None: it must be read."""

    @property
    def source(self) -> TopicPartition:
        return self.source_topic, self.partition

    @classmethod
    def of(cls, move: RouteMove, progress: ReportedProgress, *, unclean: bool, place: Place | None = None) -> Release:
        """Return the word for a move, with the progress up to the copy's end."""
        return cls(
            number=move.number,
            source_topic=move.route.source_topic,
            partition=move.route.partition,
            target_topic_id=progress.target_topic_id,
            appended=progress.appended,
            passed=(progress.upstream, progress.downstream),
            unclean=unclean,
            place=None if unclean else place,
        )

    def carried(self, route: RouteOrder) -> RouteOrder:
        """Return the next task's order, with the former task's progress."""
        known: dict[str, object] = {} if self.passed[0] < 0 else {"passed": self.passed}
        if self.target_topic_id:
            known |= {"target_topic_id": self.target_topic_id, "appended": self.appended}
        return route.model_copy(update=known)


class TaskWords(_MoveValue):
    """All that a task has said on a round's moves."""

    incarnation: str
    epoch: int
    task: int
    attempt: int = 0
    """Spark's number for the task's attempt.

    An earlier attempt's words that come after this one's don't count.
    """
    ready: int = 0
    """Number of the newest move to this task that the task is ready for."""
    releases: tuple[Release, ...] = ()
    """Newest word on each partition that the task has released."""

    def after(self, before: TaskWords | None) -> TaskWords:
        """Return what counts once these words have come after others of the task."""
        if before is None or before.epoch < self.epoch:
            return self
        if (self.epoch, self.attempt) < (before.epoch, before.attempt):
            return before
        words = sorted((*before.releases, *self.releases), key=lambda word: word.number)
        newest = {word.source: word for word in words}
        return self.model_copy(update={"ready": max(before.ready, self.ready), "releases": tuple(newest.values())})
