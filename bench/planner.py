"""The planner alone: how long a plan takes for as many partitions as the largest clusters have.

Between two rounds nothing is copied, so that time matters. No cluster and no Spark: it is a pure function.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from sparkmirror.mirror.engine.assignment import Assignment, PartitionKey, PartitionLoad, plan

PARTITIONS = 100_000
TASKS = 500
FLOWS = 10
TOPICS = 200
LEADERS = 60
DRIFT = 0.05
"""How much a partition's rate changes from one round to the next when nothing happens."""
HOT_SHARE, HOT_FACTOR = 0.1, 10.0
"""The change: so many partitions get so much busier, ..."""
NEW_SHARE = 0.01
"""... and so many appear; as many are gone."""
_BUSIEST_BYTES_PER_S = 2e5
"""Ten times that is still less than a task's share, so that every plan can be even."""
_SHAPE = 1.2
"""Of a Pareto distribution: a few partitions carry most of the load."""


@dataclass(slots=True)
class PlannerResult:
    """One kind of plan; a figure for each round."""

    what: str
    cpu_s: list[float] = field(default_factory=list)
    moved: list[int] = field(default_factory=list)
    """Partitions that another task pumps than before; of those that were there before."""
    imbalance: list[float] = field(default_factory=list)
    """The heaviest task's load over the mean."""


def measure_planner(rounds: int) -> list[PlannerResult]:
    """Plan afresh, again with nothing new, and again after a change. Raises RuntimeError if a plan is wrong."""
    fresh, steady, changed = (
        PlannerResult("fresh"),
        PlannerResult("again, rates have drifted"),
        PlannerResult("again, after a change"),
    )
    for number in range(rounds):
        source = random.Random(number)
        loads = _loads(source)
        first = _measure(fresh, loads, ())
        loads = [replace(load, bytes_per_s=load.bytes_per_s * source.uniform(1 - DRIFT, 1 + DRIFT)) for load in loads]
        second = _measure(steady, loads, first)
        _measure(changed, _change(source, loads), second)
    return [fresh, steady, changed]


def planned_s(partitions: int, tasks: int, flows: int, rounds: int) -> list[float]:
    """CPU seconds of a fresh plan for as many partitions, so many times; `tasks` of each flow."""
    source = random.Random(0)
    loads = [_load(source, number, flows) for number in range(partitions)]
    caps = {f"flow-{number}": tasks for number in range(flows)}
    return [_timed(lambda: plan(loads, tasks * flows, caps, ()))[1] for _ in range(rounds)]


def _loads(source: random.Random) -> list[PartitionLoad]:
    return [_load(source, number) for number in range(PARTITIONS)]


def _load(source: random.Random, number: int, flows: int = FLOWS) -> PartitionLoad:
    topic, partition = number % TOPICS, number // TOPICS
    rate = min(1e3 * source.paretovariate(_SHAPE), _BUSIEST_BYTES_PER_S)
    return PartitionLoad(
        flow=f"flow-{topic % flows}",
        topic=f"topic-{topic}",
        partition=partition,
        leader=source.randrange(LEADERS),
        bytes_per_s=rate,
    )


def _change(source: random.Random, loads: Sequence[PartitionLoad]) -> list[PartitionLoad]:
    """Some are gone, others are new, and some have become hot, most of them in few topics."""
    some = int(PARTITIONS * NEW_SHARE)
    hot_topics = {f"topic-{number}" for number in range(int(TOPICS * HOT_SHARE))}
    kept = [
        replace(load, bytes_per_s=load.bytes_per_s * HOT_FACTOR) if load.topic in hot_topics else load
        for load in source.sample(loads, len(loads) - some)
    ]
    return kept + [_load(source, PARTITIONS + number) for number in range(some)]


def _measure(result: PlannerResult, loads: Sequence[PartitionLoad], previous: Assignment) -> Assignment:
    caps = {f"flow-{number}": TASKS for number in range(FLOWS)}
    assignment, cpu_s = _timed(lambda: plan(loads, TASKS, caps, previous))
    home = _homes(assignment)
    if len(home) != len(loads) or home.keys() != {load.key for load in loads} or len(assignment) > TASKS:
        raise RuntimeError("a plan has not each partition once")
    before = _homes(previous)
    weights = {load.key: load.weight for load in loads}
    carried = [sum(weights[key] for key in task) for task in assignment]
    result.cpu_s.append(cpu_s)
    result.moved.append(sum(key in home and home[key] != task for key, task in before.items()))
    result.imbalance.append(max(carried) / (sum(carried) / len(carried)))
    return assignment


def _homes(assignment: Assignment) -> dict[PartitionKey, int]:
    return {key: task for task, keys in enumerate(assignment) for key in keys}


def _timed(work: Callable[[], Assignment]) -> tuple[Assignment, float]:
    began = time.process_time()
    done = work()
    return done, time.process_time() - began
