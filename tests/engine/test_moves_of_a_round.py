"""What a driver says on moves in one round, and what it makes of the receipts of tasks that had released partitions."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.receipts import receipt

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.mirror.engine import round_runner
from sparkmirror.mirror.engine.assignment import PartitionKey, PartitionLoad
from sparkmirror.mirror.engine.change import TaskChange
from sparkmirror.mirror.engine.end_reason import EndReason
from sparkmirror.mirror.engine.flow_topics import TargetTopic
from sparkmirror.mirror.engine.flow_view import FlowView
from sparkmirror.mirror.engine.order_book import OrderBook
from sparkmirror.mirror.engine.planner import Growth, Planner
from sparkmirror.mirror.engine.predecessors import Predecessors
from sparkmirror.mirror.engine.report_watch import ReportWatch
from sparkmirror.mirror.engine.round_runner import RoundRunner
from sparkmirror.mirror.engine.slots import Slots
from sparkmirror.mirror.sync.topic_rules import topic_rules
from sparkmirror.pump.messages.control import Phase
from sparkmirror.pump.messages.moves import NO_TASK, RouteMove, RouteMoves
from sparkmirror.pump.messages.orders import FlowEnd, Receipt

TARGET = TargetTopic("A.t", b"1" * 16)
KEYS = [PartitionKey("A->B", "t", number) for number in range(3)]


class DriverOf:
    """The parts of a flow's driver, with stand-ins for clusters, topics and lease."""

    def __init__(self, aliases: str = "AB") -> None:
        clusters = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in aliases)
        source, target = clusters
        self.flow = FlowConfig(source=source, target=target, tasks_max=2)
        self.name = self.flow.name
        self.there = {key._replace(flow=self.name) for key in KEYS}
        self.said: list[RouteMoves] = []
        self.phases: list[Phase] = []
        self.started = {0, 1}
        self.view = FlowView()
        self.predecessors = Predecessors()
        self.control: Any = SimpleNamespace(
            move=self.said.append, add=lambda _: None, say=lambda _, phase: self.phases.append(phase)
        )
        self.done_topics: Any = SimpleNamespace(
            is_reached=lambda *_: False, end_of=lambda *_: None, reach=lambda _: None
        )
        self.control.done_topics = self.done_topics
        self.turns: Any = SimpleNamespace(changed=False, opposite=None)
        self.leadership: Any = SimpleNamespace(is_active=lambda: True)
        self.newest: Any = SimpleNamespace(
            mirrored=[
                SimpleNamespace(
                    source=SimpleNamespace(name="t"), remote=SimpleNamespace(name="A.t", topic_id=TARGET.topic_id)
                )
            ]
        )
        self.takeover: Any = SimpleNamespace(refused={})
        self.rules = topic_rules(self.flow)
        self.ends = None
        self.checked = True
        self.topics = self
        self.identity, self.rank, self.state_lifetime_ms = Identity("c", 1, 0), None, 1000
        self.homes, self.source_id = 8, "s"
        self.orders = OrderBook(
            self.flow,
            "i",
            self.view,
            cast("Any", self.control),
            cast("Any", self),
            self.predecessors,
            cast("Any", self),
        )
        watch = ReportWatch(self.flow, "i", self.view, cast("Any", self.control), lambda: True)
        self.reports: Any = SimpleNamespace(started_tasks=lambda _: self.started, take_receipts=watch.take_receipts)

    def partitions(self) -> Mapping[PartitionKey, tuple[str, int]]:
        return {key: ("A.t", 1) for key in self.there}

    pumped = partitions

    def targets(self) -> Mapping[PartitionKey, TargetTopic]:
        return dict.fromkeys(self.there, TARGET)


@pytest.fixture
def driver() -> DriverOf:
    return DriverOf()


def test_the_orders_tell_which_topics_hold_heartbeats(driver: DriverOf) -> None:
    """By the flow's policy: a topic whose name only ends so is transformed as others are."""
    names = ("heartbeats", "C.heartbeats", "device-heartbeats")
    driver.newest.mirrored = [
        SimpleNamespace(
            source=SimpleNamespace(name=name), remote=SimpleNamespace(name=f"A.{name}", topic_id=TARGET.topic_id)
        )
        for name in names
    ]
    order = driver.orders.order([PartitionKey("A->B", name, 0) for name in names])
    assert [route.untransformed for route in order.routes] == [True, True, False]


def planner_of(driver: DriverOf) -> Planner:
    planner = Planner(Slots({}, 2), "i")
    planner.orders(1, [cast("Any", driver)])
    return planner


def newest(driver: DriverOf) -> RouteMove:
    return next(move for move in driver.said[-1].moves if move.route.partition == 0)


@pytest.mark.parametrize(("task", "before"), [(1, 0), (0, NO_TASK)])
def test_the_last_task_of_a_partition_that_was_left_alone_releases_it(driver: DriverOf, task: int, before: int) -> None:
    """It may not have heard yet that it should leave the partition alone."""
    key = KEYS[0]
    driver.orders.order([key])
    driver.orders.move(1, {key: TaskChange(0, NO_TASK)}, {})
    assert (newest(driver).before, newest(driver).task) == (0, NO_TASK)
    driver.orders.move(1, {key: TaskChange(NO_TASK, task)}, {})
    assert newest(driver) == RouteMove(number=2, route=newest(driver).route, before=before, task=task)


def test_a_partition_that_was_moved_comes_back_by_a_move_only(driver: DriverOf) -> None:
    """A task does not do as an order says that is older than a move."""
    planner = planner_of(driver)
    there = cast("Any", driver)
    driver.there.remove(KEYS[2])
    change = planner.change(1, [there])
    assert change is not None
    assert planner.move(1, change, [there])
    assert KEYS[2] not in {key for keys in planner.assignment for key in keys}
    driver.there.add(KEYS[2])
    assert planner.take_in(1, there, [there]) is Growth.IMPOSSIBLE
    back = planner.change(1, [there])
    assert back is not None
    assert KEYS[2] in back.moved


def test_a_partition_that_is_new_is_taken_in(driver: DriverOf) -> None:
    planner = planner_of(driver)
    there = cast("Any", driver)
    driver.there.add(PartitionKey("A->B", "t", 9))
    assert planner.take_in(1, there, [there]) is Growth.DONE


def test_a_task_that_has_not_begun_is_given_nothing(driver: DriverOf) -> None:
    """It may start with the order that it was given, and never hear of the rest."""
    planner = planner_of(driver)
    there = cast("Any", driver)
    driver.started = set()
    driver.there.add(PartitionKey("A->B", "t", 9))
    assert planner.take_in(1, there, [there]) is Growth.LATER
    driver.started = {0, 1}
    assert planner.take_in(1, there, [there]) is Growth.DONE


def test_a_flow_without_partitions_at_the_rounds_begin_waits_for_the_next_round(driver: DriverOf) -> None:
    """Nobody has said that this round runs, in its control topic: its pumps would end by the silence."""
    there = cast("Any", driver)
    driver.there.clear()
    planner = planner_of(driver)
    driver.there |= set(KEYS)
    assert planner.take_in(1, there, [there]) is Growth.IMPOSSIBLE
    assert planner.change(1, [there]) is None
    planner.orders(2, [there])
    driver.there.add(PartitionKey("A->B", "t", 9))
    assert planner.change(2, [there]) is not None


def test_nothing_moves_after_words_that_tasks_may_have_read(driver: DriverOf, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task may copy what the driver takes for not copied (R7)."""

    def refused(_: object) -> None:
        raise ConnectionError("no answer")

    planner = planner_of(driver)
    there = cast("Any", driver)
    driver.there.add(PartitionKey("A->B", "t", 9))
    monkeypatch.setattr(driver.control, "add", refused)
    assert planner.take_in(1, there, [there]) is Growth.IMPOSSIBLE
    assert planner.change(1, [there]) is None
    planner.orders(2, [there])
    weigh(driver, planner, monkeypatch)
    change = planner.change(2, [there])
    assert change is not None
    monkeypatch.setattr(driver.control, "move", refused)
    assert not planner.move(2, change, [there])
    assert planner.change(2, [there]) is None


def test_topics_that_were_not_checked_are_not_taken_in(driver: DriverOf) -> None:
    """The look at another mirror's copies failed: where theirs end is not known."""
    planner = planner_of(driver)
    there = cast("Any", driver)
    driver.checked = False
    driver.there.add(PartitionKey("A->B", "t", 9))
    assert planner.take_in(1, there, [there]) is Growth.LATER
    assert planner.change(1, [there]) is None
    driver.checked = True
    assert planner.take_in(1, there, [there]) is Growth.DONE


def test_a_flow_whose_topics_could_not_be_checked_holds_up_no_move_that_gives_it_nothing(driver: DriverOf) -> None:
    """Other flows' rounds would end for its sake, again and again."""
    planner = planner_of(driver)
    there = cast("Any", driver)
    busy = max(planner.assignment, key=len)
    driver.there.remove(busy[0])
    driver.checked = False
    change = planner.change(1, [there])
    assert change is not None
    assert change.moved == {busy[0]: TaskChange(planner.assignment.index(busy), NO_TASK)}
    assert planner.move(1, change, [there])


def test_other_flows_partitions_move_while_a_flows_topics_can_not_be_checked(driver: DriverOf) -> None:
    other = DriverOf("CD")
    both = [cast("Any", driver), cast("Any", other)]
    planner = Planner(Slots({}, 2), "i")
    planner.orders(1, both)
    gone = max(other.there, key=lambda key: key.partition)
    other.there.remove(gone)
    driver.checked = False
    change = planner.change(1, both)
    assert change is not None
    assert change.moved.keys() >= {gone}
    assert {key.flow for key in change.moved} == {"C->D"}
    assert planner.move(1, change, both)
    assert other.said
    assert not driver.said


def test_topics_that_can_no_longer_be_checked_while_new_tasks_start_are_not_moved(
    driver: DriverOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    planner = planner_of(driver)
    there = cast("Any", driver)
    weigh(driver, planner, monkeypatch)
    change = planner.change(1, [there])
    assert change is not None
    driver.checked = False
    assert not planner.move(1, change, [there])
    assert planner.change(1, [there]) is None


def weigh(driver: DriverOf, planner: Planner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the task of two partitions far too much, so that one of them should move."""
    busy, calm = sorted(planner.assignment, key=len, reverse=True)
    loads = [
        PartitionLoad(flow=key.flow, topic=key.topic, partition=key.partition, leader=1, bytes_per_s=rate)
        for keys, rate in ((busy, 9e9), (calm, 1.0))
        for key in keys
    ]
    monkeypatch.setattr(driver.orders, "loads", lambda: loads)


def test_a_task_that_has_not_begun_can_release_nothing(driver: DriverOf, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its slot may be missing: the round ends at once then."""
    planner = planner_of(driver)
    there = cast("Any", driver)
    weigh(driver, planner, monkeypatch)
    assert planner.change(1, [there]) is not None
    driver.started = {1}
    assert planner.change(1, [there]) is None


def test_topics_that_go_while_new_tasks_start_are_not_moved(driver: DriverOf, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change is planned up to a minute before it is said."""
    planner = planner_of(driver)
    there = cast("Any", driver)
    weigh(driver, planner, monkeypatch)
    change = planner.change(1, [there])
    assert change is not None
    driver.there.clear()
    driver.newest.mirrored.clear()
    assert not planner.move(1, change, [there])
    assert not driver.said


def test_a_task_without_partitions_is_no_reason_for_another_plan(driver: DriverOf) -> None:
    """Else a cluster with a free slot would have partitions planned again each second."""
    planner = planner_of(driver)
    there = cast("Any", driver)
    (last,) = planner.assignment[1]
    driver.there &= {last}
    change = planner.change(1, [there])
    assert change is not None
    assert planner.move(1, change, [there])
    assert planner.assignment == ((), (last,))
    assert planner.is_same_plan([there])


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("is_checked", [False, True])
def test_the_same_plan_ends_no_round(
    driver: DriverOf, monkeypatch: pytest.MonkeyPatch, once: bool, is_checked: bool
) -> None:
    """Also of `run --once`, whose tasks take nothing in; nor any plan as long as topics could not be checked."""
    planner = planner_of(driver)
    if not is_checked:
        driver.checked = False
        weigh(driver, planner, monkeypatch)
    driver.ends = cast("Any", {(key.topic, key.partition): 5 for key in KEYS} if once else None)
    turns = iter([False, True])
    nothing: Any = SimpleNamespace(
        wait=lambda _: next(turns),
        has_failed=False,
        exchange_beats=lambda: None,
        is_due=False,
        tasks_max=2,
        show=lambda: None,
        refresh=lambda _: False,
    )
    driver.reports.ended_early = lambda _: ""
    monkeypatch.setattr(planner, "slots", SimpleNamespace(changed=lambda *_: False, ask=lambda _: None, count=2))
    monkeypatch.setattr(round_runner, "REPLAN_S", -1.0)
    monkeypatch.setattr(round_runner, "send_failure", lambda _: "")
    there = [cast("Any", driver)]
    runner = RoundRunner(planner, nothing, nothing, nothing, nothing, lambda: there, nothing.show, threading.Event())
    assert runner._wait_for_end(nothing, nothing, there, there) is EndReason.PLANNED  # noqa: SLF001 - its loop alone
    assert (nothing.slots, nothing.tasks) == (2, len(planner.assignment)), "what metrics tell grows with the round"


def of_t(*, released: bool, upstream: int = 5, **changes: bool) -> Receipt:
    state = "waiting" if released else "running"
    return receipt(source_topic="t", state=state, upstream=upstream, released=released, **changes)


KNOWN = {"target_topic_id": "ab", "upstream": 7, "downstream": 6, "appended": 6}
UNKNOWN = {"upstream": -1, "downstream": -1, "appended": -1}


@pytest.mark.parametrize(
    ("own", "counts"),
    [
        ({"target_topic_id": "ab"} | UNKNOWN, KNOWN),
        ({"target_topic_id": ""} | UNKNOWN, KNOWN),
        ({"target_topic_id": "cd"} | UNKNOWN, None),
        ({"target_topic_id": "ab", "upstream": 9, "downstream": 8, "appended": 8}, None),
    ],
)
def test_a_task_that_has_read_no_position_knows_what_the_former_one_knew(
    driver: DriverOf, own: dict[str, Any], counts: dict[str, Any] | None
) -> None:
    """Else a source that starts behind markers that were passed over would look like a loss."""
    former, newest = of_t(released=True).model_copy(update=KNOWN), of_t(released=False).model_copy(update=own)
    taken(driver, newest, former)
    told = driver.view.partitions[KEYS[0]].receipt
    assert told is not None
    assert told.model_dump(include={*KNOWN}) == (counts or own)


def taken(driver: DriverOf, *receipts: Receipt, in_doubt: bool = False) -> None:
    """The end of a round with these receipts."""
    nothing = cast("Any", None)
    runner = RoundRunner(nothing, nothing, nothing, nothing, nothing, nothing, nothing, nothing)
    ends = [FlowEnd(flow="A->B", receipts=receipts, in_doubt=in_doubt)]
    runner.take_results(cast("Any", SimpleNamespace(ends=ends)), [cast("Any", driver)])


@pytest.mark.parametrize("in_doubt", [False, True])
def test_a_doubt_of_a_task_that_had_released_all_counts(driver: DriverOf, in_doubt: bool) -> None:
    """An attempt before may still be alive, and the next round has to wait for it (R5)."""
    taken(driver, of_t(released=True, in_doubt=in_doubt), of_t(released=False))
    assert driver.predecessors.unclean is in_doubt
    assert driver.phases == ([] if in_doubt else ["ended"])


def test_a_doubt_of_a_task_without_partitions_counts(driver: DriverOf) -> None:
    """An attempt that ended before it knew which partitions it had."""
    taken(driver, in_doubt=True)
    assert driver.predecessors.unclean
    assert driver.phases == []


def test_of_tasks_that_had_released_a_partition_the_last_one_knows_most(driver: DriverOf) -> None:
    taken(driver, of_t(released=True, upstream=3), of_t(released=True, upstream=8))
    view = driver.view.partitions[KEYS[0]]
    assert view.receipt is not None
    assert view.receipt.upstream == 8
    view.end_with(of_t(released=True, upstream=-1))
    assert view.receipt.upstream == 8, "an attempt that never copied it"
    view.end_with(of_t(released=False, upstream=-1))
    assert view.receipt.upstream == -1
