"""What is left until a goal: told by partition, and nothing once all of it is copied."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.snapshot_samples import NOW_MS, flow, partition, topic

from sparkmirror.api import caught_up
from sparkmirror.snapshot.snapshot import Cause, Flow, PartitionState, Process, Snapshot

ENDS = {("orders", 0): 100, ("orders", 1): 7}


def missing(monkeypatch: pytest.MonkeyPatch, *flows: Flow, ends: Any = ENDS) -> list[str]:
    monkeypatch.setattr(caught_up, "_ends", lambda _: ends)
    goal = caught_up.CatchUp([SimpleNamespace(name="A->B", copies=True), SimpleNamespace(name="A->C", copies=False)])  # type: ignore[list-item]
    process: Any = SimpleNamespace(spec=Process)
    return goal.missing(Snapshot(process, NOW_MS, flows))


def orders(*positions: int | None, **more: Any) -> Flow:
    parts = [partition(number, position=position) for number, position in enumerate(positions)]
    return flow(topics=(topic("orders", *parts, **more),))


def test_nothing_is_left_of_what_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing(monkeypatch, orders(100, 7)) == []
    assert missing(monkeypatch, orders(120, 9)) == []


def test_one_offset_is_enough_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing(monkeypatch, orders(99, 7)) == ["orders-0: 1 offsets are left"]


def test_what_is_not_known_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing(monkeypatch, orders(100)) == ["orders-1: its position is not known yet"]
    assert missing(monkeypatch, orders(100, None)) == ["orders-1: its position is not known yet"]
    assert len(missing(monkeypatch)) == 2


def test_reasons_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    parked = partition(0, position=3, state=PartitionState.PARKED, cause=Cause.TOO_LARGE, reason="a batch is too large")
    seen = flow(topics=(topic("orders", parked, partition(1, position=7)),))
    assert missing(monkeypatch, seen) == ["orders-0: 97 offsets are left (a batch is too large)"]
    recreated = partition(0, position=500, state=PartitionState.PARKED, cause=Cause.RECREATED, reason="made again")
    seen = flow(topics=(topic("orders", recreated, partition(1, position=7)),))
    assert missing(monkeypatch, seen) == ["orders-0: made again"], "its position is another topic's"
    later = partition(0, position=100, state=PartitionState.PARKED, cause=Cause.TOO_LARGE, reason="too large")
    assert missing(monkeypatch, flow(topics=(topic("orders", later, partition(1, position=7)),))) == []
    assert missing(monkeypatch, orders(refused="the target has no room")) == [
        "orders-0: the target has no room",
        "orders-1: the target has no room",
    ]


def test_a_topic_whose_writers_have_moved_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing(monkeypatch, orders(3, 4, released=True)) == []


def test_a_topic_of_the_opposite_flows_turn_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing(monkeypatch, orders(waits=True)) == []
