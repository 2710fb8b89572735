"""How many tasks to plan for, while a cluster's executors come and go: with a clock and a cluster of the test's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import pytest
from pyspark import SparkContext

from sparkmirror.mirror.engine import slots as module
from sparkmirror.mirror.engine.round_runner import REPLAN_S
from sparkmirror.mirror.engine.slots import GROWN_S, HELD_S, LONGEST_START_S, LOOK_S, START_S, Slots

CLUSTER = {"spark.master": "spark://somewhere:7077"}
SPARK = cast("SparkContext", None)


class Cluster:
    """`there`: its slots, None where Spark does not say; all tasks that have one have started."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        there: int,
        settings: Mapping[str, str] = CLUSTER,
        *,
        shared: bool = False,
    ) -> None:
        self.there: int | None = there
        self.now = 1000.0
        self.asked = 0
        monkeypatch.setattr(module, "slots_of", self._say)
        self.slots = Slots(settings, 8, shared=shared, clock=lambda: self.now)
        self.same_plan = False
        self.slow = 0
        """Tasks that have a slot and have not started."""
        self.held = 0
        """Slots that others hold; Spark counts them as the mirror's."""

    def _say(self, _: SparkContext) -> int:
        self.asked += 1
        if self.there is None:
            raise RuntimeError("no JVM")
        return self.there

    def _started(self) -> int:
        return min((self.there or 0) - self.held, self.tasks) - self.slow

    def begin(self) -> None:
        self.tasks = self.slots.count
        self.slots.begin(self.tasks)

    def passes(self, seconds: float) -> bool:
        """Whether something has changed before so much time is over; a look each quarter of a second."""
        until = self.now + seconds
        while self.now < until:
            if self.slots.changed(SPARK, self._started, lambda: self.same_plan):
                return True
            self.now += 0.25
        return False


@pytest.fixture
def four(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster of four slots, with a round of four tasks, where eight are asked for."""
    cluster = Cluster(monkeypatch, 4)
    cluster.begin()
    assert cluster.passes(START_S + 1), "four of eight tasks have no slot"
    assert cluster.slots.count == 4
    cluster.begin()
    assert not cluster.passes(60)
    return cluster


def test_there_is_a_task_to_plan_for_though_all_flows_are_gone_for_a_moment() -> None:
    """Their last drivers may still be at work."""
    slots = Slots({}, 2)
    slots.ask(0)
    assert slots.count == 1


def test_tasks_without_a_slot_are_waited_for_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, 4)
    cluster.begin()
    assert not cluster.passes(START_S - 1)
    cluster.there = 8
    assert not cluster.passes(60)
    assert cluster.slots.count == 8


def test_a_task_that_has_a_slot_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its executor is new, and the machine busy: it is neither cancelled nor planned away."""
    cluster = Cluster(monkeypatch, 8)
    cluster.begin()
    cluster.slow = 3
    assert not cluster.passes(LONGEST_START_S - 1)
    cluster.slow = 0
    assert not cluster.passes(60)
    cluster.begin()
    cluster.slow = 3
    assert cluster.passes(LONGEST_START_S + 1), "but not for ever"
    assert cluster.slots.count == 5


def test_of_some_without_a_slot_those_that_have_one_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, 6)
    cluster.begin()
    cluster.slow = 2
    assert cluster.passes(START_S + 1)
    assert cluster.slots.count == 6


@pytest.mark.parametrize("settings", [CLUSTER, {"spark.master": "local[8]"}])
def test_slots_that_others_hold_are_tried_again_after_an_hour(
    monkeypatch: pytest.MonkeyPatch, settings: Mapping[str, str]
) -> None:
    """Each trial stops the copy of the missing tasks' partitions for a minute."""
    cluster = Cluster(monkeypatch, 8, settings, shared=True)
    cluster.held = 5
    cluster.begin()
    assert cluster.passes(LONGEST_START_S + 1)
    assert cluster.slots.count == 3
    cluster.begin()
    for _ in range(int(HELD_S // REPLAN_S) - 1):
        assert not cluster.passes(REPLAN_S)
        cluster.slots.ask(8)
        assert cluster.slots.count == 3, "a plan by load does not try again either"
    cluster.held = 0
    assert cluster.passes(REPLAN_S + GROWN_S + LOOK_S + 2)
    assert cluster.slots.count == 8
    cluster.begin()
    assert not cluster.passes(60)


def test_another_number_of_slots_is_tried_at_once_though_others_hold_some(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, 8, shared=True)
    cluster.held = 5
    cluster.begin()
    assert cluster.passes(LONGEST_START_S + 1)
    cluster.begin()
    cluster.there = 10
    assert cluster.passes(GROWN_S + LOOK_S + 1)


def test_slow_tasks_of_a_spark_that_nobody_shares_are_tried_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, 8)
    cluster.begin()
    cluster.slow = 3
    assert cluster.passes(LONGEST_START_S + 1)
    cluster.begin()
    cluster.slow = 0
    assert cluster.passes(GROWN_S + LOOK_S + 2)
    assert cluster.slots.count == 8


def test_more_slots_are_used_once_they_have_stayed(four: Cluster) -> None:
    four.there = 6
    assert not four.passes(GROWN_S)
    assert four.passes(LOOK_S + 1)
    assert four.slots.count == 6
    four.begin()
    assert not four.passes(60)


def test_more_slots_than_tasks_are_asked_for(four: Cluster) -> None:
    four.there = 50
    assert four.passes(GROWN_S + LOOK_S + 1)
    assert four.slots.count == 8
    four.begin()
    four.there = 60
    assert not four.passes(60)


def test_slots_that_no_plan_has_use_for_are_judged_once(four: Cluster) -> None:
    four.there, four.same_plan = 6, True
    assert not four.passes(60)
    assert four.slots.count == 4
    four.same_plan = False
    assert not four.passes(60), "the load is looked at when the partitions are planned again"
    four.there = 7
    assert four.passes(GROWN_S + LOOK_S + 1)


def test_slots_that_go_are_noticed_at_once(four: Cluster) -> None:
    four.there = 3
    assert four.passes(LOOK_S + 0.5)
    assert four.slots.count == 3


def test_a_cluster_without_slots_or_words_is_waited_for(four: Cluster) -> None:
    for there in (0, None):
        four.there = there
        assert not four.passes(60)
    four.there = 4
    assert not four.passes(60)


def test_it_is_asked_once_a_second(four: Cluster) -> None:
    before = four.asked
    four.passes(20)
    assert 18 <= four.asked - before <= 21


def test_where_spark_grows_for_waiting_tasks_all_are_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, 8, {**CLUSTER, "spark.dynamicAllocation.enabled": "true"})
    cluster.begin()
    assert not cluster.passes(20)
    cluster.there = 5
    assert not cluster.passes(START_S - 1), "Spark asks for another executor"
    cluster.there = 8
    assert not cluster.passes(60)
    cluster.there = 5
    assert cluster.passes(START_S + LOOK_S + 1)
    assert cluster.slots.count == 5
    cluster.begin()
    cluster.slots.ask(8)
    assert cluster.slots.count == 8, "the next plan by load asks again"


@pytest.mark.parametrize(("master", "count"), [("local[3]", 3), ("local[*]", 8), ("local", 8)])
def test_in_local_mode_it_is_ours_to_say(monkeypatch: pytest.MonkeyPatch, master: str, count: int) -> None:
    cluster = Cluster(monkeypatch, 1, {"spark.master": master})
    cluster.begin()
    assert cluster.slots.count == count
    assert not cluster.passes(60)
    assert cluster.asked == 0
