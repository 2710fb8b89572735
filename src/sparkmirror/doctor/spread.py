"""Rules on the spread of the work: tasks, slots, hot partitions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from statistics import median

from sparkmirror.doctor.case import MUCH_LAG, Case, name_of
from sparkmirror.doctor.finding import Severity
from sparkmirror.doctor.rule import LATE, Rule, Sign, counted
from sparkmirror.engine.snapshot import FlowState

FEW, MANY = 5, 10
"""Fewest and most partitions per task.

From the latency runbook of the kit for Amazon's MSK: tune tasks.max to 5 to 10 partitions a task.
"""
HOT_SHARE = 0.5
"""Share of a topic's lag that makes a partition hot.

For topics of at least `HOT_AMONG` partitions.
"""
HOT_AMONG = 4
SKEW_TIMES = 3.0
"""Load of the busiest task, as a multiple of the other tasks' median."""
IDLE_CPU = 0.1
"""Share of a core; a task below has little to do."""
LEAST_S = 5.0
_UNKNOWN = (FlowState.STARTING, FlowState.JOINING, FlowState.STANDING_BY, FlowState.TRANSLATING)


def _slots(case: Case) -> Iterator[Sign]:
    flow, slots = case.flow, case.process.slots
    wanted = min(flow.tasks_max, len(case.partitions))
    if 0 < slots < wanted and flow.state not in _UNKNOWN:
        yield Sign(
            "",
            f"{wanted:,} tasks are wanted, Spark has {slots:,} slots for all flows",
            severity=Severity.WARNING if case.slow else None,
            explains=None if case.slow else (),
        )


def _hot(case: Case) -> Iterator[Sign]:
    by_topic: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for place, (_, partition) in case.lagging.items():
        by_topic[place[0]].append((partition.lag or 0, name_of(place)))
    for topic in case.flow.topics:
        lags = by_topic.get(topic.topic)
        if not lags or len(topic.partitions) < HOT_AMONG:
            continue
        most, name = max(lags)
        whole = sum(lag for lag, _ in lags)
        if most > MUCH_LAG and most > HOT_SHARE * whole:
            yield Sign(name, f"{100 * most / whole:,.0f} % of the topic's lag, {most:,} of {whole:,} records")


def _skew(case: Case) -> Iterator[Sign]:
    before = case.before(LEAST_S)
    if before is None or not case.slow:
        return
    moved = sorted(((now.bytes - then.bytes, now.task) for now, then in case.pumps_then(before)), reverse=True)
    if len(moved) > 1 and moved[0][0] > 1_000_000 * before.seconds:
        (most, task), others = moved[0], median(size for size, _ in moved[1:])
        if most > SKEW_TIMES * others:
            yield Sign(
                f"task {task}",
                f"{most / before.seconds / 1e6:,.1f} MB/s, the others {others / before.seconds / 1e6:,.1f} (median)",
            )


def _many(case: Case) -> Iterator[Sign]:
    tasks = len(case.flow.pumps)
    if tasks and case.slow and len(case.partitions) > MANY * tasks:
        wanted = -(-len(case.partitions) // MANY)
        yield Sign(
            "",
            f"{counted(len(case.partitions), 'partition')} in {tasks:,} tasks",
            action=f"Raise tasks.max (now {case.flow.tasks_max:,}) to about {wanted:,}, and give Spark as many slots.",
        )


def _few(case: Case) -> Iterator[Sign]:
    tasks, before = len(case.flow.pumps), case.before(LEAST_S)
    if tasks < FEW or before is None or len(case.partitions) >= FEW * tasks:
        return
    busy = [(now.cpu_s - then.cpu_s) / before.seconds for now, then in case.pumps_then(before)]
    if len(busy) == tasks and max(busy) < IDLE_CPU:
        there = counted(len(case.partitions), "partition")
        yield Sign("", f"{there} in {tasks:,} tasks, none of them over 10 % of a core")


def _useless(case: Case) -> Iterator[Sign]:
    flow, partitions = case.flow, len(case.partitions)
    if partitions and flow.tasks_max > partitions and flow.state not in _UNKNOWN:
        yield Sign("", f"tasks.max {flow.tasks_max:,}, {partitions:,} partitions")


SPREAD = (
    Rule(
        "slots-short",
        Severity.NOTICE,
        "Spark has fewer slots than the flow wants tasks",
        "tasks.max (at most the partitions) is above the tasks that Spark can run at once. A warning while over 10,000 "
        "records wait or the objective is missed. Known only where the page or an alert asks the process itself.",
        "Spark was started with too few cores.",
        "Give Spark more executors or cores (docs/spark.md), or lower tasks.max.",
        _slots,
        ("partitions-a-task", "pump-cpu", *LATE),
    ),
    Rule(
        "hot-partition",
        Severity.WARNING,
        "One partition holds most of a topic's lag",
        "Over 10,000 records and half of the topic's lag are in one of at least 4 partitions (the AWS kit: unbalanced "
        "counts of active records tell of a hot partition).",
        "Writers' keys put most records there, or its leader is slow.",
        "Look at the keys; a task of its own does not help more than the leader gives. `kafka-topics.sh --describe` "
        "tells its leader.",
        _hot,
        ("task-skew", *LATE),
    ),
    Rule(
        "task-skew",
        Severity.WARNING,
        "One task carries most of the load",
        "While over 10,000 records wait: a task moved 3 times as much as the median of the others, and over 1 MB/s.",
        "Its partitions are the busy ones.",
        "Wait 5 minutes: the partitions are planned anew by load. If the finding stays, raise tasks.max.",
        _skew,
        LATE,
    ),
    Rule(
        "partitions-a-task",
        Severity.WARNING,
        "Tasks have too many partitions each",
        "More than 10 partitions a task while over 10,000 records wait or the objective is missed (the AWS kit's "
        "runbook: 5 to 10).",
        "tasks.max is low for so many partitions.",
        "Raise tasks.max.",
        _many,
        ("pump-cpu", *LATE),
    ),
    Rule(
        "few-partitions-a-task",
        Severity.NOTICE,
        "More tasks than the load needs",
        "5 tasks or more with fewer than 5 partitions each (the AWS kit's runbook: 5 to 10), none of them over 10 % of "
        "a core.",
        "tasks.max is high for so little.",
        "Lower tasks.max: each task takes about 220 MB.",
        _few,
    ),
    Rule(
        "tasks-max-useless",
        Severity.NOTICE,
        "tasks.max is above the number of partitions",
        "A partition is copied by one task, so there are never more tasks than partitions.",
        "tasks.max was set for more partitions.",
        "Lower tasks.max, or add partitions.",
        _useless,
    ),
)
