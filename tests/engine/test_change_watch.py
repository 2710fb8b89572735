"""A change of a running round step by step: tasks are started, then partitions are moved, or the round ends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from sparkmirror.mirror.engine import change_watch
from sparkmirror.mirror.engine.assignment import PartitionKey
from sparkmirror.mirror.engine.change import TaskChange
from sparkmirror.mirror.engine.change_watch import MOVE_S, TASKS_S, ChangeWatch
from sparkmirror.mirror.engine.end_reason import EndReason
from sparkmirror.mirror.engine.planner import PlannedChange

KEY = PartitionKey("a->b", "t", 0)


class Round:
    """Stand-ins for a round's planner, job and one flow's driver, with a clock of the test's."""

    name = "a->b"

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, new_task: bool = False, can_be_said: bool = True) -> None:
        self.now = 0.0
        monkeypatch.setattr(change_watch, "time", SimpleNamespace(monotonic=lambda: self.now))
        order: Any = SimpleNamespace(task=1, flows=(SimpleNamespace(flow=self),))
        orders = [order] if new_task else []
        self.planned: PlannedChange | None = PlannedChange(((), (KEY,)), orders, {KEY: TaskChange(0, 1)})
        self.started: set[int] = {0}
        self.owner = 0
        self.did: list[str] = []
        self.can_be_said = can_be_said
        self.slots = self.reports = self.view = self.orders = self
        self.watch = ChangeWatch(cast("Any", self), cast("Any", self), 1, [cast("Any", self)])

    def change(self, _: int, __: object) -> PlannedChange | None:
        return self.planned

    def begin(self, _: object) -> None:
        self.did.append("begun")

    def extend(self, _: object) -> None:
        self.did.append("started")

    def move(self, _: int, __: object, ___: object) -> bool:
        self.did.append("said")
        return self.can_be_said

    def started_tasks(self, _: int) -> set[int]:
        return self.started

    def newest_move(self, _: PartitionKey) -> int:
        return 7

    def has_arrived(self, _: PartitionKey, __: int, move: int) -> bool:
        assert move == 7
        return self.owner == 1


def test_running_tasks_exchange_partitions_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Round(monkeypatch)
    assert run.watch.begin(EndReason.LOAD) is None
    assert (run.did, run.watch.is_under_way) == (["said"], True)
    assert run.watch.begin(EndReason.SLOTS) is EndReason.SLOTS, "one change at a time"
    run.owner = 1
    assert run.watch.go_on() is None
    assert not run.watch.is_under_way


def test_partitions_move_when_new_tasks_have_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Round(monkeypatch, new_task=True)
    assert run.watch.begin(EndReason.TOPICS) is None
    assert run.did == ["started", "begun", "begun"], "the job, then planner and slots"
    assert run.watch.go_on() is None
    run.started.add(1)
    assert run.watch.go_on() is None
    assert run.did[-1] == "said"


@pytest.mark.parametrize("new_task", [False, True])
def test_what_takes_too_long_ends_the_round(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, new_task: bool
) -> None:
    run = Round(monkeypatch, new_task=new_task)
    assert run.watch.begin(EndReason.LOAD) is None
    run.now = TASKS_S if new_task else MOVE_S
    assert run.watch.go_on() is None
    run.now += 0.1
    assert run.watch.go_on() is EndReason.LOAD
    assert f"no report of {'task 1' if new_task else 't-0'}" in caplog.text


def test_what_can_only_be_planned_again_ends_the_round(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Round(monkeypatch)
    run.planned = None
    assert run.watch.begin(EndReason.TOPICS) is EndReason.TOPICS
    run = Round(monkeypatch, can_be_said=False)
    assert run.watch.begin(EndReason.LOAD) is EndReason.LOAD


def test_the_same_plan_is_no_change(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Round(monkeypatch)
    run.planned = PlannedChange(((KEY,),), [], {})
    assert run.watch.begin(EndReason.LOAD) is None
    assert not run.watch.is_under_way
