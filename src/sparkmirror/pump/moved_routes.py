"""Partitions that a running round's task releases, or takes from others.

A partition that comes is copied once its former task has released it. Before that this task connects to its brokers,
reads its claims, and says that it is ready. The release tells where the copy continues. This task believes that as long
as the former task would have believed it (R6): from the time when this task said that it was ready, and only if it has
been connected to the target's leader since. Otherwise it reads the position.

A partition that leaves is copied on until its next task is ready, or the driver ends the round. Then it is fetched no
more; what was fetched is sent and acknowledged, or dropped after `LEAVE_S`. Then this task says that it has released
the partition.

A task's later attempt first says that it is at work, and waits until it reads that: what an earlier attempt said before
counts, and whatever the earlier attempt says afterwards does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sparkmirror.exact.position.route import PartitionPair, PartitionReading
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.pump.look_ahead import Prepared
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.messages.control import ControlState
from sparkmirror.pump.messages.moves import NO_TASK, Place, Release, RouteMove, TaskWords
from sparkmirror.pump.messages.orders import RouteOrder
from sparkmirror.pump.partition import PartitionCopy
from sparkmirror.pump.quiet import GRACE_S
from sparkmirror.pump.task_teller import TaskTeller

LEAVE_S = 0.03
"""Seconds for a leaving partition's fetched records.

Then those that were not sent are dropped: the next task has them sooner than this task would have sent them.
"""

_AGAIN_S = 0.5
"""Pause after words that could not be written."""


@dataclass(slots=True)
class _Leaving:
    move: RouteMove
    unclean: bool
    heard_at: float
    """Time at which this task had heard that the next task was ready.

    It is not the loop's turn time, which began earlier.
    """


class _Reached(NamedTuple):
    """Connection to the target's leader for a partition that comes."""

    leader: int
    ready_at: float
    """Time at which this task began to say that it was ready.

    It has been connected since.
    """


class MovedRoutes:
    """Moves of one flow's partitions from and to one attempt of a round's task.

    `of` returns a source partition's copy, and `on_leaving` is called with each copy that has to leave. `on_coming` is
    called with the routes that other tasks have yet to release, and with a call to make when all is ready for them,
    with the target's leaders that are connected to; `on_released` with an order to copy from now on, True if its former
    task may be alive, and the position if it is known; `on_passed` with the order for a partition that this attempt
    never copied, but releases. `unclean` is True if a pump from before this one may be alive.
    """

    def __init__(
        self,
        loop: Loop,
        teller: TaskTeller,
        task: int,
        attempt: int,
        of: Callable[[TopicPartition], PartitionCopy | None],
        *,
        unclean: bool,
        on_leaving: Callable[[PartitionCopy], None],
        on_coming: Callable[[list[RouteOrder], Prepared], None],
        on_released: Callable[[RouteOrder, bool, PartitionReading | None], None],
        on_passed: Callable[[RouteOrder], None],
    ) -> None:
        self.has_begun = not attempt
        """False while an earlier attempt's words may still come."""
        self._loop = loop
        self._teller = teller
        self._task = task
        self._attempt = attempt
        self._of = of
        self._on_leaving = on_leaving
        self._on_coming = on_coming
        self._on_released = on_released
        self._on_passed = on_passed
        self._alone_at = loop.now + GRACE_S if unclean else loop.now
        """Time from which no pump from before this one can be alive."""
        self._numbers: dict[TopicPartition, int] = {}
        """Each moved partition's newest move number."""
        self._staying: dict[TopicPartition, RouteMove] = {}
        """Moves from this task to tasks that are not ready yet."""
        self._leaving: dict[PartitionCopy, _Leaving] = {}
        self._coming: dict[TopicPartition, RouteMove] = {}
        """Moves to this task whose former task has not released the partition yet."""
        self._reached: dict[TopicPartition, _Reached] = {}
        """Partitions that come, as long as the connections have lasted."""
        self._said: dict[TopicPartition, Release] = {}
        """All this task's words in the round, also from an attempt before."""
        self._doubted: dict[TopicPartition, float] = {}
        """End of the doubt about each partition that was released or taken in doubt.

        From then on no batch can arrive.
        """
        self._ready = 0
        self._unsaid = False
        self._round = ("", 0)

    def is_moved(self, source: TopicPartition) -> bool:
        """True if a move, and no order from before, tells who copies a partition."""
        return source in self._numbers

    def is_leaving(self, copy: PartitionCopy) -> bool:
        """True if a partition is to be released."""
        return copy in self._leaving

    @property
    def moved_in_doubt(self) -> bool:
        """True if other attempts' batches, or unacknowledged ones, may arrive (R5)."""
        earlier_attempts = [self._alone_at] if self._attempt else []
        alone_at = max((*earlier_attempts, *self._doubted.values()), default=self._loop.now)
        return not self.has_begun or self._loop.now < alone_at

    def follow(self, state: ControlState, incarnation: str, round_number: int) -> None:
        """Act on the moves and words in the control topic."""
        mine = state.words_of(self._task, incarnation, round_number)
        is_first, self._round = not self._round[0], (incarnation, round_number)
        if not self.has_begun:
            if mine.attempt < self._attempt:
                if is_first:
                    self._say_soon()
                return
            self.has_begun = True
            self._alone_at = self._loop.now + GRACE_S  # an earlier attempt ends once it hears of this one
            self._said, self._ready = {word.source: word for word in mine.releases}, mine.ready
            if self._said:  # compaction may leave only words of an earlier attempt that came too late to count
                self._say_soon()
        moves = state.moves_in(incarnation, round_number)
        if moves is None:
            return
        new = [move for move in moves.moves if self._numbers.get(move.route.route.source, -1) < move.number]
        for move in new:
            self._take_note(move)
        coming = [move for move in new if move.task == self._task and move.before != NO_TASK]
        if coming:
            number = max(move.number for move in coming)
            self._on_coming([move.route for move in coming], lambda leaders: self._is_ready_for(number, leaders))
        if self._staying:
            self._teller.reach()
        for source, move in list(self._staying.items()):
            if self._may_leave(source, move, state):
                del self._staying[source]
                self._leave(source, move)
        released = {
            task: {word.source: word for word in state.words_of(task, incarnation, round_number).releases}
            for task in {move.before for move in self._coming.values()}
        }
        for source, move in list(self._coming.items()):
            self._take_if_released(source, move, released[move.before].get(source))

    def _take_note(self, move: RouteMove) -> None:
        source = move.route.route.source
        self._numbers[source] = move.number
        self._coming.pop(source, None)
        self._staying.pop(source, None)
        self._reached.pop(source, None)
        if move.task == self._task:
            self._coming[source] = move
        elif move.before == self._task and not self._has_said(move):
            self._staying[source] = move
        elif (copy := self._of(source)) is not None:
            self._begin_leaving(copy, move)

    # --- out ------------------------------------------------------------------------------------

    def _may_leave(self, source: TopicPartition, move: RouteMove, state: ControlState) -> bool:
        if move.task == NO_TASK or self._of(source) is None:
            return True
        return state.words_of(move.task, *self._round).ready >= move.number

    def _leave(self, source: TopicPartition, move: RouteMove) -> None:
        copy = self._of(source)
        if copy is None:
            self._on_passed(move.route)
            unclean = self._may_be_written_to(source)
            self._note_doubt(source, unclean=unclean)
            self._release(Release.of(move, move.route.reported, unclean=unclean))
        else:
            self._begin_leaving(copy, move)

    def _begin_leaving(self, copy: PartitionCopy, move: RouteMove) -> None:
        if copy in self._leaving:
            leaving = self._leaving[copy]
            leaving.move, leaving.heard_at = move, self._loop.clock()
        else:
            unclean = self._may_be_written_to(copy.route.source)
            self._leaving[copy] = _Leaving(move, unclean=unclean, heard_at=self._loop.clock())
            self._loop.at(self._loop.now + LEAVE_S, lambda: self._hurry(copy))
        self._on_leaving(copy)

    def _hurry(self, copy: PartitionCopy) -> None:
        if copy in self._leaving:
            copy.drop_unsent()
            self._on_leaving(copy)

    def doubted(self, copy: PartitionCopy) -> None:
        """Note that a partition's batches or claim may arrive late."""
        self._note_doubt(copy.route.source, unclean=True)
        if copy in self._leaving:
            self._leaving[copy].unclean = True

    def left(self, copy: PartitionCopy, settled: PartitionReading | None) -> None:
        """Say that this task sends no more from a leaving partition.

        `settled` is the position at which the copy continues; None if it must be read.
        """
        leaving, source = self._leaving.pop(copy), copy.route.source
        leaving.unclean |= copy.may_be_written_to(self._loop.now)
        self._note_doubt(source, unclean=leaving.unclean)
        if not self._has_said(leaving.move) and leaving.move.before == self._task:
            place = None if settled is None else Place.of(settled, leaving.heard_at)
            self._release(Release.of(leaving.move, copy.progress.reported, unclean=leaving.unclean, place=place))
        elif (move := self._coming.get(source)) is not None and move.before == NO_TASK:
            self._take_if_released(source, move, None)

    def _note_doubt(self, source: TopicPartition, *, unclean: bool) -> None:
        if unclean:
            self._doubted[source] = self._loop.now + GRACE_S

    def _has_said(self, move: RouteMove) -> bool:
        word = self._said.get(move.route.route.source)
        return word is not None and word.number == move.number

    @property
    def may_have_rivals(self) -> bool:
        """True if an earlier pump may still write to any of this task's partitions (R5)."""
        return self._loop.now < self._alone_at

    def _may_be_written_to(self, source: TopicPartition) -> bool:
        """True if a partition's batches may still arrive, from this task or one before."""
        return self.may_have_rivals or self._loop.now < self._doubted.get(source, self._loop.now)

    # --- in -------------------------------------------------------------------------------------

    def _is_ready_for(self, number: int, leaders: Mapping[PartitionPair, int]) -> None:
        if number > self._ready:
            self._ready = number
            self._reached |= {pair.source: _Reached(leader, self._loop.now) for pair, leader in leaders.items()}
            self._say_soon()

    def lost(self, broker: int) -> None:
        """Take note that a connection to a target broker broke.

        The coming partitions' positions must be read.
        """
        self._reached = {source: reached for source, reached in self._reached.items() if reached.leader != broker}

    def _take_if_released(self, source: TopicPartition, move: RouteMove, word: Release | None) -> None:
        if (copy := self._of(source)) is not None:
            self._begin_leaving(copy, move)
            if self._of(source) is not None:
                return
        if move.before == NO_TASK:
            del self._coming[source]
            self._on_released(move.route, self._may_be_written_to(source), None)
        elif word is not None and word.number == move.number:
            del self._coming[source]
            self._note_doubt(source, unclean=word.unclean)
            self._on_released(word.carried(move.route), self._may_be_written_to(source), self._told(source, word))

    def _told(self, source: TopicPartition, word: Release) -> PartitionReading | None:
        """Return the position that a release tells, if this task may believe it."""
        reached, place = self._reached.pop(source, None), word.place
        if reached is None or place is None or place.target_leader != reached.leader:
            return None
        return place.reading(reached.ready_at)

    # --- words ----------------------------------------------------------------------------------

    def _release(self, word: Release) -> None:
        self._said[word.source] = word
        self._say_soon()

    def _say_soon(self) -> None:
        """Have all words written when the loop's turn ends, in one record."""
        if not self._unsaid:
            self._unsaid = True
            self._loop.at(self._loop.now, self._say)

    def _say(self) -> None:
        self._unsaid = False
        incarnation, round_number = self._round
        newest = max(self._numbers.values(), default=0)  # the places of earlier moves are of no use any more
        words = TaskWords(
            incarnation=incarnation,
            epoch=round_number,
            task=self._task,
            attempt=self._attempt,
            ready=self._ready,
            releases=tuple(
                word if word.number >= newest else word.model_copy(update={"place": None})
                for word in self._said.values()
            ),
        )
        self._teller.tell(words, lambda: self._loop.at(self._loop.now + _AGAIN_S, self._say_soon))

    def close(self) -> None:
        self._teller.close()
