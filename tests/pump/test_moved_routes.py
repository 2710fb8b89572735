"""Moves between tasks in any order of events: no partition is copied by two tasks, and each one arrives.

A model of the tasks and of the control topic: records come late, twice, or never, and killed attempts live on for a
while, as R5 expects.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import pytest

from sparkmirror.exact.durable.noted_progress import ReportedProgress
from sparkmirror.exact.position.decision import Position
from sparkmirror.exact.position.route import PartitionReading
from sparkmirror.kafka.cluster.topic_log import LogEntry, TopicLog
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.pump import moved_routes
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.messages.control import Control, ControlState
from sparkmirror.pump.messages.moves import NO_TASK, RouteMove, RouteMoves, TaskWords
from sparkmirror.pump.messages.orders import RouteOrder
from sparkmirror.pump.moved_routes import LEAVE_S, MovedRoutes
from sparkmirror.pump.quiet import GRACE_S

DRIVER, ROUND, TASKS, PARTITIONS = "driver", 1, 3, 4
TOPIC_ID = bytes(range(16))
LEADER = 1
"""At the target, of all partitions."""


class ControlTopic:
    """The topic in memory; words that tasks are writing come to it later, or never if the task is killed."""

    def __init__(self, choices: random.Random) -> None:
        self.entries: list[LogEntry] = []
        self.ends: dict[TopicPartition, int] = {}
        """Target's end by partition: what was appended by whichever task."""
        self.failures = 0
        self.is_troubled = False
        """True if appends may be left unanswered: they are tried again, and the first try may arrive late."""
        self.always_troubled = False
        self._late: list[Sequence[tuple[bytes, bytes | None]]] = []
        self._choices = choices

    def append(self, partition: int, entries: Sequence[tuple[bytes, bytes | None]]) -> int:
        if self.is_troubled and (self.always_troubled or self._choices.random() < 0.2):
            self.failures += 1
            self._late.append(entries)
        return self._append(entries)

    def _append(self, entries: Sequence[tuple[bytes, bytes | None]]) -> int:
        for key, value in entries:
            self.entries.append(LogEntry(self.end, key, value))
        return self.end - 1

    @property
    def end(self) -> int:
        return self.entries[-1].offset + 1 if self.entries else 0

    def compact(self) -> None:
        """Keep the newest entry of each key, at its offset."""
        newest = {entry.key: entry for entry in self.entries}
        self.entries = sorted(newest.values(), key=lambda entry: entry.offset)

    def repeat(self) -> None:
        """Append a request which a writer had given up and repeated, and has said more since."""
        if self._late:
            self._append(self._late.pop(self._choices.randrange(len(self._late))))

    def repeat_all(self, kind: bytes) -> None:
        """Append all requests of a kind that were given up, the newest first."""
        for entries in reversed(self._late):
            self._append([record for record in entries if record[0].startswith(kind)])


class Copy:
    """A partition's copy: `busy` while records are on their way."""

    def __init__(self, route: RouteOrder, unclean: bool) -> None:
        self.route, self.unclean, self.busy = route.route, unclean, False
        self.has_late_requests = False
        self.order = route
        self.appended = route.appended

    def may_be_written_to(self, _: float) -> bool:
        return self.has_late_requests

    @property
    def progress(self) -> Any:
        copy = self

        class Progress:
            reported = ReportedProgress(copy.appended, copy.appended, copy.appended, TOPIC_ID.hex())

        return Progress

    @property
    def settled(self) -> PartitionReading:
        position = Position(
            sequence=self.appended,
            upstream=self.appended,
            downstream=self.appended,
            claim_due=False,
            leader_epoch=0,
            source_topic_id=TOPIC_ID,
            newest_timestamp_ms=None,
        )
        return PartitionReading(
            position=position,
            resume_at=self.appended,
            source_topic_id=TOPIC_ID,
            source_leader=0,
            source_leader_epoch=0,
            source_start=0,
            source_end=self.appended,
            target_topic_id=TOPIC_ID,
            target_leader=LEADER,
            read_at=0.0,
        )

    def drop_unsent(self) -> None:
        self.busy = False


class Task:
    """An attempt's pump, as far as moves are its business."""

    def __init__(self, topic: ControlTopic, number: int, orders: Sequence[RouteOrder], attempt: int) -> None:
        self.topic, self.number, self.attempt = topic, number, attempt
        self.now = 0.0
        self.loop = Loop(lambda: self.now)
        self.copies: dict[TopicPartition, Copy] = {}
        self.writing: list[Callable[[], None]] = []
        self.preparing: list[Callable[[], None]] = []
        self.told: list[tuple[int, int]] = []
        """Sequences from which it continued without a reading, and those that a reading would have shown."""
        self.passed: list[RouteOrder] = []
        self.heard = 0
        self.is_over = False
        self.state = ControlState()
        self.control = Control(cast("TopicLog", topic))
        self.moves = MovedRoutes(
            self.loop,
            cast("Any", self),
            number,
            attempt,
            cast("Any", self.copies.get),
            unclean=attempt > 0,
            on_leaving=cast("Any", self.step),
            on_coming=lambda routes, then: self.preparing.append(
                lambda: then({route.route: LEADER for route in routes})
            ),
            on_released=self.take,
            on_passed=self.passed.append,
        )
        self.withheld = list(orders)

    def reach(self) -> None:
        """Stand in for the teller's connection."""

    def tell(self, words: TaskWords, _: Any) -> None:
        """Stand in for the teller's thread."""
        self.writing.append(lambda: self.control.tell(words))

    def take(self, route: RouteOrder, unclean: bool, told: PartitionReading | None = None) -> None:
        assert route.route.source not in self.copies
        if told is not None and not unclean:
            self.told.append((told.position.sequence, self.topic.ends[route.route.source]))
        self.copies[route.route.source] = Copy(route, unclean or self.attempt > 0)

    def step(self, copy: Copy) -> None:
        if self.moves.is_leaving(cast("Any", copy)) and not copy.busy:
            del self.copies[copy.route.source]
            self.moves.left(cast("Any", copy), copy.settled)

    def hear(self) -> None:
        entries = [entry for entry in self.topic.entries if entry.offset >= self.heard]
        if not entries:
            return
        self.heard = self.topic.end
        self.state.apply(entries)
        self.is_over |= self.state.words_of(self.number, DRIVER, ROUND).attempt > self.attempt
        if self.is_over:
            self.copies.clear()
            return
        self.moves.follow(self.state, DRIVER, ROUND)
        if self.moves.has_begun:
            withheld, self.withheld = self.withheld, []
            for order in withheld:
                if not self.moves.is_moved(order.route.source):
                    self.take(order, unclean=False)

    def turn(self) -> None:
        for copy in list(self.copies.values()):
            self.step(copy)
        self.loop.turn(0)
        if self.writing:
            self.writing.pop(0)()

    def prepare(self) -> None:
        if self.preparing:
            self.preparing.pop(0)()

    def wait(self, seconds: float) -> None:
        for passed in [1.0] * int(seconds) + [seconds % 1]:  # a longer turn would be a suspended process's
            self.now += passed
            self.loop.turn(0)


class Mirror:
    """The tasks of a round, and the driver's moves."""

    def __init__(self, choices: random.Random) -> None:
        self.choices = choices
        self.topic = ControlTopic(choices)
        self.control = Control(cast("TopicLog", self.topic))
        self.topic.append(0, [(b"pause", b'{"topics": []}')])
        self.orders = {
            number: [RouteOrder(source_topic="t", target_topic="a.t", partition=partition, appended=0)]
            for number, partition in enumerate(range(TASKS))
        }
        self.orders[0].append(RouteOrder(source_topic="t", target_topic="a.t", partition=3, appended=0))
        self.owner = {order.route.source: number for number, orders in self.orders.items() for order in orders}
        self.moves: dict[TopicPartition, RouteMove] = {}
        self.number = 0
        self.ends = self.topic.ends
        self.ends |= dict.fromkeys(self.owner, 0)
        self.tasks = [Task(self.topic, number, self.orders[number], 0) for number in range(TASKS)]
        self.undead: list[Task] = []
        """Killed attempts that are still alive."""

    def move(self, moves: dict[TopicPartition, int] | None = None) -> None:
        """One change, as the driver makes it: only when the one before is complete."""
        self.number += 1
        if moves is None:
            chosen = self.choices.sample(sorted(self.owner), self.choices.randrange(1, PARTITIONS))
            moves = {source: self.choices.randrange(TASKS) for source in chosen}
        for source, task in moves.items():
            before = self.owner[source]
            if task != before:
                route = RouteOrder(source_topic=source[0], target_topic="a.t", partition=source[1], appended=0)
                self.moves[source] = RouteMove(number=self.number, route=route, before=before, task=task)
                self.owner[source] = task
        self.say()

    def say(self) -> None:
        said = RouteMoves(incarnation=DRIVER, epoch=ROUND, moves=tuple(self.moves.values()), shares={})
        self.control.move(said)

    def wake_another(self) -> None:
        """A driver that was frozen, and one of its tasks, say what they would have said long ago."""
        moves = RouteMoves(incarnation="frozen", epoch=ROUND, moves=tuple(self.moves.values())[:1], shares={})
        control = Control(cast("TopicLog", self.topic))
        control.move(moves)
        control.tell(TaskWords(incarnation="frozen", epoch=ROUND, task=self.choices.randrange(TASKS)))

    def hear(self) -> None:
        for task in self.tasks:
            task.hear()

    def kill(self) -> None:
        number = self.choices.randrange(TASKS)
        killed = self.tasks[number]
        if self.choices.random() < 0.5:
            self.undead.append(killed)
        else:
            killed.loop.close()
        self.tasks[number] = Task(self.topic, number, self.orders[number], killed.attempt + 1)

    def check(self) -> None:
        for source in self.owner:
            copying = [task for task in self.tasks if source in task.copies]
            assert len(copying) <= 1, f"{source} is copied by {[task.number for task in copying]}"
            assert all(told == seen for task in self.tasks for told, seen in task.told), "what a release tells is true"
            rivals = [task for task in self.undead if source in task.copies]
            assert not rivals or all(task.copies[source].unclean for task in copying), "the quiet rule holds (R5)"

    def work(self) -> None:
        """Some task appends to a partition that it copies."""
        task = self.choices.choice(self.tasks)
        if task.copies:
            copy = self.choices.choice(list(task.copies.values()))
            copy.busy = self.choices.random() < 0.5
            if not task.moves.is_leaving(cast("Any", copy)):
                self.ends[copy.route.source] += 1
                copy.appended = self.ends[copy.route.source]

    def close(self) -> None:
        for task in self.tasks:
            task.loop.close()

    @property
    def is_settled(self) -> bool:
        return all(source in self.tasks[task].copies for source, task in self.owner.items())

    def settle(self, *, to_the_end: bool = True) -> None:
        """Let all events happen; killed attempts live on, or end after their last requests have arrived."""
        for _ in range(200):
            for task in [*self.tasks, *self.undead]:
                for copy in task.copies.values():
                    copy.busy = False
                task.hear()
                task.prepare()
                task.turn()
                self.check()
            if self.is_settled and not to_the_end:
                return
            if self.is_settled:
                for task in self.undead:
                    task.loop.close()
                self.undead.clear()
                return
        raise AssertionError("a partition is copied by no task")


@pytest.mark.parametrize("troubles", ["none", "repeats", "kills", "kills and compaction", "repeats and compaction"])
def test_moves_in_any_order(troubles: str) -> None:
    for seed in range(60):
        choices = random.Random(seed)
        mirror = Mirror(choices)
        mirror.topic.is_troubled = "repeats" in troubles or "kills" in troubles
        for _ in range(4):
            if troubles == "kills and compaction":
                mirror.topic.compact()
            if "kills" in troubles and choices.random() < 0.3:
                mirror.kill()
                mirror.tasks[choices.randrange(TASKS)].hear()
            mirror.move()
            for _ in range(choices.randrange(60)):
                task = choices.choice([*mirror.tasks, *mirror.undead])
                choices.choice([task.hear, task.turn, task.prepare, mirror.work])()
                if "kills" in troubles and choices.random() < 0.05:
                    mirror.kill()
                if troubles != "none" and choices.random() < 0.1:
                    mirror.topic.repeat()
                if "compaction" in troubles and choices.random() < 0.1:
                    choices.choice([mirror.topic.compact, mirror.wake_another])()
                mirror.check()
            mirror.settle(to_the_end=choices.random() < 0.5)
        mirror.settle()
        mirror.close()
        assert "kills" in troubles or all(
            not copy.unclean and copy.appended == mirror.ends[source]
            for task in mirror.tasks
            for source, copy in task.copies.items()
        ), "the next task knows all that its former task has appended"


def test_a_partition_is_copied_on_until_its_next_task_is_ready() -> None:
    mirror = Mirror(random.Random(0))
    source = ("t", 1)
    _, former, following = mirror.tasks
    former.hear()
    mirror.move({source: 2})
    for task in (former, following):
        task.hear()
        task.turn()
    assert source in former.copies
    following.prepare()
    following.turn()
    former.hear()
    assert source not in former.copies
    former.turn()
    following.hear()
    assert not following.copies[source].unclean
    assert following.told == [(0, 0)]


def test_a_partition_that_does_not_come_to_rest_is_dropped() -> None:
    mirror = Mirror(random.Random(0))
    (task, *_) = mirror.tasks
    task.hear()
    (copy, _) = task.copies.values()
    copy.busy = True
    mirror.moves[copy.route.source] = RouteMove(number=1, route=copy.order, before=0, task=NO_TASK)
    mirror.say()
    task.hear()
    assert copy.route.source in task.copies
    task.wait(LEAVE_S + 0.01)
    assert copy.route.source not in task.copies


def test_a_killed_tasks_partition_is_released_as_perhaps_still_written_to() -> None:
    mirror = Mirror(random.Random(0))
    source = ("t", 1)
    mirror.move({source: 2})
    mirror.tasks[1].loop.close()
    mirror.tasks[1] = again = Task(mirror.topic, 1, mirror.orders[1], 1)
    mirror.settle()
    assert mirror.tasks[2].copies[source].unclean
    assert mirror.tasks[2].moves.moved_in_doubt, "so the round's end is in doubt for a while"
    assert [route.route.source for route in again.passed] == [source], "though it never copied it"
    mirror.move({source: 0})
    mirror.settle()
    assert mirror.tasks[0].copies[source].unclean, "the task between did not wait long enough"
    for task in mirror.tasks:
        task.wait(GRACE_S + 0.1)
    assert not mirror.tasks[0].moves.moved_in_doubt
    mirror.move({source: 1})
    mirror.settle()
    mirror.move({source: 2})
    mirror.settle()
    assert not mirror.tasks[2].copies[source].unclean


def test_a_doubt_of_a_partition_that_comes_is_its_own() -> None:
    """Others of the task, and those that come later, need not wait for its former task."""
    mirror = Mirror(random.Random(0))
    doubted, calm = ("t", 1), ("t", 0)
    mirror.move({doubted: 2})
    mirror.tasks[1].loop.close()
    mirror.tasks[1] = Task(mirror.topic, 1, mirror.orders[1], 1)
    mirror.settle()
    mirror.move({calm: 2})
    mirror.settle()
    assert [mirror.tasks[2].copies[source].unclean for source in (doubted, calm)] == [True, False]


def test_what_a_killed_attempt_said_counts_if_it_came_in_time() -> None:
    """Else two tasks could copy a partition: the next attempt begins with its order."""
    for late in (False, True):
        mirror = Mirror(random.Random(0))
        source = ("t", 1)
        _, killed, following = mirror.tasks
        killed.hear()
        mirror.move({source: 2})
        following.hear()
        following.prepare()
        following.turn()
        killed.hear()
        killed.turn()
        assert source not in killed.copies
        again = mirror.tasks[1] = Task(mirror.topic, 1, mirror.orders[1], 1)
        if not late:
            again.hear()
        words = mirror.topic.entries.pop()  # they arrive now or later
        if late:
            again.hear()
            again.turn()
        mirror.topic.append(0, [(words.key or b"", words.value)])
        again.hear()
        following.hear()
        mirror.check()
        mirror.settle()
        assert following.copies[source].unclean is late


def test_a_partition_that_is_left_alone_comes_back() -> None:
    """Also if the task has not heard yet that it should leave the partition alone."""
    for to in (0, 1):
        mirror = Mirror(random.Random(0))
        source = ("t", 1)
        mirror.hear()
        before = NO_TASK if to == 1 else 1  # as `OrderBook` says
        copy = mirror.tasks[1].copies[source]
        copy.busy = True
        mirror.moves[source] = RouteMove(number=2, route=copy.order, before=before, task=to)
        mirror.owner[source] = to
        mirror.say()
        for task in mirror.tasks:
            task.hear()
            mirror.check()
        assert mirror.tasks[1].copies[source] is copy
        mirror.settle()
        assert mirror.tasks[to].copies[source] is not copy


@pytest.mark.parametrize("to", [1, 2])
@pytest.mark.parametrize("leaves_first", [False, True])
def test_a_partition_that_is_left_alone_with_batches_on_their_way_is_told_so(to: int, leaves_first: bool) -> None:
    """Whoever copies it next: nobody has waited for its first release."""
    mirror = Mirror(random.Random(0))
    source = ("t", 1)
    task = mirror.tasks[1]
    mirror.hear()
    copy = task.copies[source]
    copy.busy = True
    mirror.moves[source] = RouteMove(number=1, route=copy.order, before=1, task=NO_TASK)
    mirror.say()
    task.hear()
    task.moves.doubted(cast("Any", copy))
    if leaves_first:
        copy.busy = False
        task.turn()
        assert source not in task.copies
    before = NO_TASK if to == 1 else 1  # as `OrderBook` says
    mirror.moves[source] = RouteMove(number=2, route=copy.order, before=before, task=to)
    mirror.owner[source] = to
    mirror.say()
    mirror.settle()
    assert mirror.tasks[to].copies[source].unclean


def leave(mirror: Mirror, source: TopicPartition) -> None:
    """Task 1 gives a partition to task 0, which is ready for it."""
    mirror.moves[source] = RouteMove(number=1, route=mirror.orders[1][0], before=1, task=0)
    mirror.owner[source] = 0
    mirror.say()
    mirror.settle()


@pytest.mark.parametrize("in_doubt", [False, True])
def test_batches_lost_just_before_a_partition_leaves_are_told(in_doubt: bool) -> None:
    """A connection broke, or the process was suspended: the kernel may still send what it had."""
    mirror = Mirror(random.Random(0))
    source = ("t", 1)
    mirror.hear()
    if in_doubt:
        mirror.tasks[1].moves.doubted(cast("Any", mirror.tasks[1].copies[source]))
    assert mirror.tasks[1].moves.moved_in_doubt is in_doubt
    leave(mirror, source)
    assert mirror.tasks[0].copies[source].unclean is in_doubt


@pytest.mark.parametrize("waits", [False, True])
def test_a_partition_that_waits_for_its_predecessor_keeps_waiting_elsewhere(waits: bool) -> None:
    """Its position moved, so somebody else writes there, however long ago the round began (R5)."""
    mirror = Mirror(random.Random(0))
    source = ("t", 1)
    mirror.hear()
    for task in mirror.tasks:
        task.wait(GRACE_S + 1)
    mirror.tasks[1].copies[source].has_late_requests = waits
    leave(mirror, source)
    assert mirror.tasks[0].copies[source].unclean is waits


@pytest.mark.parametrize(
    ("attempt", "seconds", "in_doubt"),
    [(0, 1.0, False), (1, 1.0, True), (1, GRACE_S + 1, False), (2, 0.0, True)],
)
def test_an_early_end_of_a_further_attempt_is_in_doubt(attempt: int, seconds: float, in_doubt: bool) -> None:
    """The next round must wait as long as this one should have, also if the attempt never had a partition."""
    mirror = Mirror(random.Random(0))
    again = mirror.tasks[1] = Task(mirror.topic, 1, mirror.orders[1], attempt)
    for _ in range(2):  # it says that it is at work, and reads that
        again.hear()
        again.turn()
    assert again.moves.has_begun
    again.wait(seconds)
    assert again.moves.moved_in_doubt is in_doubt


def test_an_attempt_that_begins_late_fears_the_earlier_one_as_long() -> None:
    """The control topic was away, so that neither heard of the other."""
    mirror = Mirror(random.Random(0))
    mirror.tasks[0].hear()
    again = mirror.tasks[1] = Task(mirror.topic, 1, mirror.orders[1], 1)
    again.hear()
    again.wait(GRACE_S + 5)
    told = [(again.moves.has_begun, again.moves.moved_in_doubt)]
    again.turn()
    again.hear()
    told.append((again.moves.has_begun, again.moves.moved_in_doubt and again.moves.may_have_rivals))
    again.wait(GRACE_S + 1)
    told.append((again.moves.has_begun, again.moves.moved_in_doubt or again.moves.may_have_rivals))
    assert told == [(False, True), (True, True), (True, False)]


def test_words_that_could_not_be_written_are_said_again(monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = Mirror(random.Random(0))
    task = mirror.tasks[0]
    failures: list[Callable[[], None]] = []
    monkeypatch.setattr(task, "tell", lambda words, failed: failures.append(failed))
    task.hear()
    mirror.moves[("t", 0)] = RouteMove(number=1, route=mirror.orders[0][0], before=0, task=NO_TASK)
    mirror.say()
    task.hear()
    task.loop.turn(0)
    failures[0]()
    task.wait(moved_routes._AGAIN_S + 0.01)  # noqa: SLF001 - the pause itself
    task.loop.turn(0)
    assert len(failures) == 2


def test_a_further_attempt_says_again_what_an_earlier_one_said() -> None:
    """Compaction leaves only the newest words of a task, and a task that is tried again needs them all."""
    mirror = Mirror(random.Random(0))
    source = ("t", 1)
    mirror.move({source: 2})
    mirror.settle()
    for number in (1, 2):
        mirror.tasks[number].loop.close()
        mirror.tasks[number] = Task(mirror.topic, number, mirror.orders[number], 1)
        mirror.settle()
        mirror.topic.compact()
    assert source in mirror.tasks[2].copies


class Later(NamedTuple):
    """A record that stands behind the newest words of a driver or of a task when the topic is compacted."""

    moves: bool
    frozen: bool


@pytest.mark.parametrize("later", [Later(*each) for each in itertools.product([True, False], repeat=2)], ids=str)
def test_compaction_leaves_the_newest_words_whatever_comes_behind_them(later: Later) -> None:
    """A late repeat, or a word of a driver that was frozen: two tasks would copy a partition, or none would."""
    mirror = Mirror(random.Random(0))
    first, second = ("t", 0), ("t", 3)
    mirror.topic.is_troubled = not later.frozen
    mirror.topic.always_troubled = True
    mirror.move({first: 2})
    mirror.settle()
    mirror.move({second: 2})
    mirror.settle()
    if later.frozen:
        incarnation = "frozen"
        control = Control(cast("TopicLog", mirror.topic))
        if later.moves:
            control.move(RouteMoves(incarnation=incarnation, epoch=ROUND, moves=(), shares={}))
        else:
            for number in range(TASKS):
                control.tell(TaskWords(incarnation=incarnation, epoch=ROUND, task=number))
    else:
        mirror.topic.repeat_all(b"moves" if later.moves else b"task")
    mirror.topic.compact()
    for number in range(TASKS) if later.moves else [2]:  # without the former task's words task 2 would wait for them
        mirror.tasks[number].loop.close()
        mirror.tasks[number] = Task(mirror.topic, number, mirror.orders[number], 1)
    mirror.settle()
    assert [sorted(task.copies) for task in mirror.tasks] == [[], [("t", 1)], [first, ("t", 2), second]]
