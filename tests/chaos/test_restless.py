"""Plans that move partitions again and again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from chaos.restless import exchanged, make_restless

from sparkmirror.mirror.engine import round_runner
from sparkmirror.mirror.engine.assignment import PartitionKey
from sparkmirror.mirror.engine.planner import Planner
from sparkmirror.mirror.engine.slots import Slots

KEYS = [PartitionKey("A->B", topic, partition) for topic in ("orders", "payments") for partition in range(8)]
BEST = (tuple(KEYS[::2]), tuple(KEYS[1::2]))


def test_each_partition_stays_in_the_plan_and_some_move() -> None:
    plans = [exchanged(BEST, turn) for turn in range(20)]
    assert all(sorted(key for keys in plan for key in keys) == KEYS for plan in plans)
    assert all(len(plan) == 2 and all(plan) for plan in plans)
    assert all(list(keys) == sorted(keys) for plan in plans for keys in plan)
    assert len(set(plans)) > 10
    staying = [
        key for key in KEYS if len({plan.index(next(keys for keys in plan if key in keys)) for plan in plans}) == 1
    ]
    assert 2 <= len(staying) <= 14


def test_the_same_turn_has_the_same_plan() -> None:
    assert exchanged(BEST, 3) == exchanged((BEST[1], BEST[0]), 3)


def test_one_partition_for_two_tasks_is_left() -> None:
    lonely = ((KEYS[0],),)
    assert exchanged(lonely, 5) == lonely


def test_a_round_is_left_until_its_tasks_have_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow machine no round would ever begin."""
    for owner, name in (Planner, "plan"), (round_runner, "REPLAN_S"):
        monkeypatch.setattr(owner, name, getattr(owner, name))  # put back afterwards
    monkeypatch.setattr(Planner, "orders", lambda *_: [])
    monkeypatch.setattr(Planner, "is_same_plan", lambda *_: False)
    make_restless()
    begun: dict[int, set[int]] = {6: {0, 1}, 7: set()}
    driver: Any = SimpleNamespace(reports=SimpleNamespace(started_tasks=begun.__getitem__))
    planner = Planner(Slots({"spark.master": "local[2]"}, 2), "a mirror")
    planner.assignment = (*BEST, ())
    planner.orders(7, [driver])
    assert planner.is_same_plan([driver])
    begun[7].add(1)
    assert planner.is_same_plan([driver])
    begun[7].add(0)
    assert not planner.is_same_plan([driver])
