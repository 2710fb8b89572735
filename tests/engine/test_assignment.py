"""The planner: rules 1 to 5 of `engine.assignment`, as properties."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.mirror.engine.assignment import (
    HYSTERESIS,
    LIGHT_SHARE,
    Assignment,
    PartitionKey,
    PartitionLoad,
    plan,
)

FLOWS = ("a->b", "a->c", "b->a", "c->a")


@st.composite
def workloads(draw: st.DrawFn) -> list[PartitionLoad]:
    counts = draw(st.lists(st.integers(0, 12), min_size=1, max_size=len(FLOWS)))
    loads = []
    for flow, count in zip(FLOWS, counts, strict=False):
        for number in range(count):
            rate = draw(st.one_of(st.just(0.0), st.floats(0, 1e8), st.just(1e6)))
            backlog = draw(st.one_of(st.just(0.0), st.floats(0, 1e11)))
            leader = draw(st.integers(-1, 3))
            loads.append(
                PartitionLoad(
                    flow=flow,
                    topic=f"t{number % 3}",
                    partition=number,
                    leader=leader,
                    bytes_per_s=rate,
                    backlog_bytes=backlog,
                )
            )
    return loads


slot_counts = st.integers(1, 12)
caps = st.fixed_dictionaries({flow: st.integers(1, 15) for flow in FLOWS})


def task_loads(assignment: Assignment, loads: list[PartitionLoad]) -> list[float]:
    weights = {load.key: load.weight for load in loads}
    return [sum(weights[key] for key in task) for task in assignment]


def tasks_of_flows(assignment: Assignment) -> dict[str, set[int]]:
    used: dict[str, set[int]] = defaultdict(set)
    for number, task in enumerate(assignment):
        for key in task:
            used[key.flow].add(number)
    return used


def check_rules(assignment: Assignment, loads: list[PartitionLoad], slots: int, tasks_max: dict[str, int]) -> None:
    assert Counter(key for task in assignment for key in task) == Counter(load.key for load in loads)
    assert len(assignment) <= slots
    assert all(assignment)
    used = tasks_of_flows(assignment)
    assert set(used) == {load.flow for load in loads}
    assert all(len(tasks) <= tasks_max[flow] for flow, tasks in used.items())


@given(workloads(), slot_counts, caps)
def test_each_partition_once_and_caps_kept(loads: list[PartitionLoad], slots: int, tasks_max: dict[str, int]) -> None:
    assignment = plan(loads, slots, tasks_max)
    check_rules(assignment, loads, slots, tasks_max)
    partitions = Counter(load.flow for load in loads)
    wanted = sum(min(tasks_max[flow], slots, count) for flow, count in partitions.items())
    assert len(assignment) == min(slots, wanted), "a slot is idle that a flow could use"


@given(workloads(), slot_counts, caps, st.randoms(use_true_random=False))
def test_same_input_same_plan_in_any_order(
    loads: list[PartitionLoad], slots: int, tasks_max: dict[str, int], rng: random.Random
) -> None:
    shuffled = list(loads)
    rng.shuffle(shuffled)
    assert plan(shuffled, slots, tasks_max) == plan(loads, slots, tasks_max)


@given(workloads(), slot_counts, caps)
def test_balanced_within_the_bound_of_list_scheduling(
    loads: list[PartitionLoad], slots: int, tasks_max: dict[str, int]
) -> None:
    assignment = plan(loads, slots, tasks_max)
    if not loads:
        return
    total = sum(load.weight for load in loads)
    flow_share: dict[str, float] = defaultdict(float)
    for load in loads:
        flow_share[load.flow] += load.weight / min(tasks_max[load.flow], slots)
    heaviest = max(load.weight for load in loads)
    capped = max(flow_share.values()) if min(tasks_max[flow] for flow in flow_share) < slots else 0.0
    bound = total / slots + capped + heaviest * (1 + LIGHT_SHARE)
    assert max(task_loads(assignment, loads)) <= bound * (1 + 1e-9)


@given(workloads(), slot_counts, caps, workloads(), slot_counts, caps)
@settings(max_examples=200)
def test_rules_hold_after_any_change_and_the_plan_then_stays(
    before: list[PartitionLoad],
    slots_before: int,
    caps_before: dict[str, int],
    loads: list[PartitionLoad],
    slots: int,
    tasks_max: dict[str, int],
) -> None:
    previous = plan(before, slots_before, caps_before)
    assignment = plan(loads, slots, tasks_max, previous)
    check_rules(assignment, loads, slots, tasks_max)
    assert plan(loads, slots, tasks_max, assignment) == assignment
    if loads:
        afresh = max(task_loads(plan(loads, slots, tasks_max), loads))
        limit = afresh / (1 - HYSTERESIS)
        assert max(task_loads(assignment, loads)) <= limit * (1 + 1e-9)


def moved(before: Assignment, after: Assignment) -> int:
    home = {key: number for number, task in enumerate(before) for key in task}
    return sum(home.get(key) not in (None, number) for number, task in enumerate(after) for key in task)


def test_small_changes_of_load_move_nothing() -> None:
    rng = random.Random(1)
    rates = [rng.uniform(5e5, 2e6) for _ in range(200)]
    loads = [
        PartitionLoad(flow="a->b", topic="t", partition=p, leader=p % 3, bytes_per_s=rate)
        for p, rate in enumerate(rates)
    ]
    previous = plan(loads, 8, {"a->b": 8})
    later = [
        PartitionLoad(flow="a->b", topic="t", partition=p, leader=p % 3, bytes_per_s=rate * rng.uniform(0.9, 1.1))
        for p, rate in enumerate(rates)
    ]
    assert plan(later, 8, {"a->b": 8}, previous) == previous


def test_a_hot_partition_moves_only_its_neighbours() -> None:
    loads = [PartitionLoad(flow="a->b", topic="t", partition=p, leader=0, bytes_per_s=1e6) for p in range(64)]
    previous = plan(loads, 8, {"a->b": 8})
    hot = [
        PartitionLoad(flow="a->b", topic="t", partition=p, leader=0, bytes_per_s=8e6 if p == 0 else 1e6)
        for p in range(64)
    ]
    assignment = plan(hot, 8, {"a->b": 8}, previous)
    assert 1 <= moved(previous, assignment) <= 7
    assert max(task_loads(assignment, hot)) < 0.8 * max(task_loads(previous, hot))


def test_new_partitions_go_to_the_lightest_tasks_and_lost_ones_leave() -> None:
    loads = [PartitionLoad(flow="a->b", topic="t", partition=p, leader=0, bytes_per_s=1e6) for p in range(8)]
    previous = plan(loads, 4, {"a->b": 4})
    later = [*loads[1:], PartitionLoad(flow="a->b", topic="new", partition=0, leader=0, bytes_per_s=1e6)]
    assignment = plan(later, 4, {"a->b": 4}, previous)
    assert moved(previous, assignment) == 0
    assert [len(task) for task in assignment] == [2, 2, 2, 2]


def test_more_flows_than_slots_share_tasks() -> None:
    loads = [PartitionLoad(flow=flow, topic="t", partition=p, leader=0) for flow in FLOWS for p in range(3)]
    assignment = plan(loads, 2, dict.fromkeys(FLOWS, 4))
    assert len(assignment) == 2
    assert set(tasks_of_flows(assignment)) == set(FLOWS)


def test_light_partitions_are_grouped_by_leader() -> None:
    loads = [PartitionLoad(flow="a->b", topic="t", partition=p, leader=p % 4) for p in range(400)]
    leaders = {load.key: load.leader for load in loads}
    assignment = plan(loads, 8, {"a->b": 8})
    assert [len(task) for task in assignment] == [50] * 8
    assert all(len({leaders[key] for key in task}) == 1 for task in assignment)


def test_an_empty_workload_has_an_empty_plan() -> None:
    assert plan([], 3, {}) == ()
    assert plan([], 3, {}, ((PartitionKey("a->b", "t", 0),),)) == ()


@pytest.mark.parametrize(("slots", "tasks_max"), [(0, {}), (2, {"a->b": 0})])
def test_refuses_counts_below_one(slots: int, tasks_max: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        plan([], slots, tasks_max)


def test_refuses_a_partition_given_twice() -> None:
    with pytest.raises(ValueError, match="twice"):
        plan([PartitionLoad(flow="a->b", topic="t", partition=0, leader=0)] * 2, 2, {})


@pytest.mark.full
def test_a_hundred_thousand_partitions_on_five_hundred_tasks() -> None:
    rng = random.Random(7)
    loads = [
        PartitionLoad(
            flow="a->b",
            topic=f"t{p // 100}",
            partition=p % 100,
            leader=rng.randrange(12),
            bytes_per_s=rng.paretovariate(1.2) * 1e4,
        )
        for p in range(100_000)
    ]
    assignment = plan(loads, 500, {"a->b": 500})
    check_rules(assignment, loads, 500, {"a->b": 500})
    per_task = task_loads(assignment, loads)
    mean = sum(per_task) / len(per_task)
    heaviest = max(load.weight for load in loads)
    assert max(per_task) <= max(heaviest, 1.05 * mean)
    leaders = {load.key: load.leader for load in loads}
    connections = sum(len({leaders[key] for key in task}) for task in assignment)
    scattered = 12 * 500
    assert connections < scattered / 1.5

    grown = [
        *loads,
        *(PartitionLoad(flow="a->b", topic="new", partition=p, leader=0, bytes_per_s=1e4) for p in range(1000)),
    ]
    later = plan(grown, 500, {"a->b": 500}, assignment)
    assert moved(assignment, later) == 0
