"""Rules on the spread of the work: tasks, slots, hot partitions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from statistics import median

from sparkmirror.look.doctor.case import MUCH_LAG, Case, name_of
from sparkmirror.look.doctor.finding import Severity
from sparkmirror.look.doctor.rule import LATE, Rule, Sign, counted
from sparkmirror.snapshot.snapshot import FlowState

FEW = 5
"""Fewest partitions per task, as in the latency runbook of Amazon's kit.

Its 10 at most is for a MirrorMaker 2: here partitions hardly cost anything (docs/planning.md).
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
            subject="",
            evidence=f"{wanted:,} tasks are wanted, Spark has {slots:,} slots for all flows",
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
            yield Sign(
                subject=name,
                evidence=f"{100 * most / whole:,.0f} % of the topic's lag, {most:,} of {whole:,} records",
                action=_spread_keys(case.flow.source.tools, topic.topic),
            )


def _spread_keys(tools: str, topic: str) -> str:
    describe = " ".join(filter(None, ("kafka-topics.sh", tools, "--describe --topic", topic)))
    return (
        "Have writers spread their keys; a task of its own does not help more than the leader gives. "
        f"`{describe}` tells its leader."
    )


def _skew(case: Case) -> Iterator[Sign]:
    before = case.before(LEAST_S)
    if before is None or not case.slow:
        return
    moved = sorted(((now.bytes - then.bytes, now.task) for now, then in case.pumps_then(before)), reverse=True)
    if len(moved) > 1 and moved[0][0] > 1_000_000 * before.seconds:
        (most, task), others = moved[0], median(size for size, _ in moved[1:])
        if most > SKEW_TIMES * others:
            yield Sign(
                subject=f"task {task}",
                evidence=f"{most / before.seconds / 1e6:,.1f} MB/s, the others "
                f"{others / before.seconds / 1e6:,.1f} (median)",
            )


def _few(case: Case) -> Iterator[Sign]:
    tasks, before = len(case.flow.pumps), case.before(LEAST_S)
    if tasks < FEW or before is None or len(case.partitions) >= FEW * tasks:
        return
    busy = [(now.cpu_s - then.cpu_s) / before.seconds for now, then in case.pumps_then(before)]
    if len(busy) == tasks and max(busy) < IDLE_CPU:
        there = counted(len(case.partitions), "partition")
        yield Sign(subject="", evidence=f"{there} in {tasks:,} tasks, none of them over 10 % of a core")


def _useless(case: Case) -> Iterator[Sign]:
    flow, partitions = case.flow, len(case.partitions)
    if partitions and flow.tasks_max > partitions and flow.state not in _UNKNOWN:
        yield Sign(subject="", evidence=f"tasks.max {flow.tasks_max:,}, {partitions:,} partitions")


SPREAD = (
    Rule(
        name="slots-short",
        severity=Severity.NOTICE,
        title="Spark has fewer slots than the flow wants tasks",
        when="tasks.max (at most the partitions) is above the tasks that Spark can run at once. A warning "
        "while over 10,000 records wait or the objective is missed. Known only to the process itself.",
        cause="Spark was started with too few cores.",
        action="Give Spark more executors or cores (docs/spark.md), or lower tasks.max.",
        look=_slots,
        explains=("pump-cpu", *LATE),
    ),
    Rule(
        name="hot-partition",
        severity=Severity.WARNING,
        title="One partition holds most of a topic's lag",
        when="Over 10,000 records and half of the topic's lag are in one of at least 4 partitions.",
        cause="Writers' keys put most records there, or its leader is slow.",
        action=_spread_keys("", "TOPIC"),
        look=_hot,
        explains=("task-skew", *LATE),
    ),
    Rule(
        name="task-skew",
        severity=Severity.WARNING,
        title="One task carries most of the load",
        when="While over 10,000 records wait: a task moved 3 times as much as the median of the others, and over 1 "
        "MB/s.",
        cause="Its partitions are the busy ones.",
        action="Wait 5 minutes: the partitions are planned again by load. If the finding stays, raise tasks.max.",
        look=_skew,
        explains=LATE,
    ),
    Rule(
        name="few-partitions-a-task",
        severity=Severity.NOTICE,
        title="More tasks than the load needs",
        when="5 tasks or more with fewer than 5 partitions each, none of them over 10 % of a core.",
        cause="tasks.max is high for so little.",
        action="Lower tasks.max: each task takes about 100 MB.",
        look=_few,
    ),
    Rule(
        name="tasks-max-useless",
        severity=Severity.NOTICE,
        title="tasks.max is above the number of partitions",
        when="A partition is copied by one task, so there are never more tasks than partitions.",
        cause="tasks.max was set for more partitions.",
        action="Lower tasks.max, or add partitions.",
        look=_useless,
    ),
)
