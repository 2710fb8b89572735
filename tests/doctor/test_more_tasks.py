"""More tasks for a flow that falls behind: when the doctor advises them, and when they would not help."""

from __future__ import annotations

import dataclasses

import pytest
from tests.support.planted_flows import copying, moved
from tests.support.snapshot_samples import PROCESS

from sparkmirror.look.doctor.findings import diagnose
from sparkmirror.mirror.engine.assignment import PartitionLoad, plan
from sparkmirror.snapshot.snapshot import ClusterFigures, Flow, Snapshot

COUNT = 6
SOURCE = ClusterFigures(alias="A", tools="--bootstrap-server a:9092")


def advised(now: Flow) -> set[str]:
    """What to do about lag, by both rules."""
    before = moved(dataclasses.replace(copying(10_000), tasks_max=now.tasks_max))
    found = diagnose(Snapshot(PROCESS, now.at_ms, (now,)), [Snapshot(PROCESS, before.at_ms, (before,))])
    return {one.action for one in found if one.rule in ("lag-growing", "lag-over-objective")}


@pytest.mark.parametrize("tasks_max", [1, 2, 3])
def test_more_tasks_take_load_off_the_busiest(tasks_max: int) -> None:
    """By the real planner, on planted loads: with our two cores more pumps would hardly be faster."""
    (action,) = advised(copying(20_000, lag_s=900.0, tasks_max=tasks_max, source=SOURCE))
    assert f"raise tasks.max (now {tasks_max:,})" in action
    loads = [PartitionLoad(flow="A->B", topic="orders", partition=at, leader=1, bytes_per_s=1e6) for at in range(COUNT)]
    busiest = [max(map(len, plan(loads, COUNT, {"A->B": tasks}))) for tasks in (tasks_max, 2 * tasks_max)]
    assert busiest == [-(-COUNT // tasks_max), -(-COUNT // (2 * tasks_max))]


def test_a_partition_with_a_task_of_its_own_gets_no_faster() -> None:
    (action,) = advised(copying(20_000, lag_s=900.0, tasks_max=COUNT, source=SOURCE))
    assert "a higher tasks.max does not help" in action
    assert "`kafka-topics.sh --bootstrap-server a:9092 --alter --topic TOPIC --partitions N`" in action
    loads = [PartitionLoad(flow="A->B", topic="orders", partition=at, leader=1, bytes_per_s=1e6) for at in range(COUNT)]
    assert plan(loads, 2 * COUNT, {"A->B": COUNT}) == plan(loads, 2 * COUNT, {"A->B": 2 * COUNT})
