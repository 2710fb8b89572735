"""What growth costs without brokers: the planner and a scrape of a made-up state; and what follows for more.

No model of a broker speaks enough of Kafka's protocol for a mirror to run on it. So of sizes that real brokers on one
machine can't hold, only these two are measured, and all else is reckoned from the sizes that they can.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from bench.planner import planned_s
from bench.sizes import Size
from sparkmirror.engine.snapshot import (
    ClusterFigures,
    Flow,
    FlowState,
    Partition,
    PartitionState,
    Process,
    Role,
    Snapshot,
    Topic,
)
from sparkmirror.metrics.collector import MirrorCollector

WANTED_PARTITIONS, WANTED_GB_PER_S = 100_000, 10.0
CPU_S_PER_GB, BROKERS_CPU_S_PER_GB = 1.4, 5.8
"""Of `json-lz4` in docs/bench.md, 2026-11-24: batches pass through whole; brokers of both sides, one replica."""
REACH_MB_PER_S, USED_SHARE = 200.0, 0.7
"""What a task moves at most, rounded down from that run, and how busy a core should be."""
_TOPIC_PARTITIONS = 500
_TURNS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class OnPaper:
    """What a size takes without brokers, in CPU seconds of one process."""

    size: Size
    planned_s: float
    scrape_bytes: int
    scrape_s: float


class Figures(Protocol):
    """What was measured of a size on real brokers."""

    @property
    def size(self) -> Size: ...
    @property
    def copied_s(self) -> float: ...
    @property
    def cores(self) -> float: ...
    @property
    def peak_memory_bytes(self) -> int: ...


def median_plan_s(size: Size) -> float:
    """CPU seconds of the planner alone."""
    return statistics.median(planned_s(size.partitions, size.tasks, size.flows, _TURNS))


def on_paper(size: Size) -> OnPaper:
    """Plan for the size, and render its metrics."""
    state = made_up_state(size)
    collector = MirrorCollector(lambda: state)
    scrapes = []
    for _ in range(_TURNS):
        began = time.process_time()
        text = collector.text()
        scrapes.append(time.process_time() - began)
    return OnPaper(
        size=size, planned_s=median_plan_s(size), scrape_bytes=len(text), scrape_s=statistics.median(scrapes)
    )


def made_up_state(size: Size) -> Snapshot:
    """Make the state of an idle mirror of that size."""
    flows = []
    for number in range(size.flows):
        source = f"s{number}"
        count = len(range(number, size.partitions, size.flows))
        firsts = range(0, count, _TOPIC_PARTITIONS)
        flows.append(
            Flow(
                flow=f"{source}->t",
                source=ClusterFigures(alias=source),
                target=ClusterFigures(alias="t"),
                state=FlowState.CAUGHT_UP,
                role=Role.LEADER,
                at_ms=0,
                lag=0,
                topics=tuple(_topic(source, first, min(_TOPIC_PARTITIONS, count - first)) for first in firsts),
            )
        )
    return Snapshot(Process(host="bench", pid=1, version="0", started_ms=0), 0, tuple(flows))


def _topic(source: str, first: int, partitions: int) -> Topic:
    name = f"topic-{first}"
    idle = tuple(
        Partition(partition=number, state=PartitionState.RUNNING, position=1, end=1, lag=0, lag_s=0.0, records=1)
        for number in range(partitions)
    )
    return Topic(topic=name, target_topic=f"{source}.{name}", partitions=idle)


# --- reckoned -----------------------------------------------------------------------------------------


def reckoned(real: Sequence[Figures], paper: Sequence[OnPaper]) -> list[tuple[str, str]]:
    """Return what a hundred thousand partitions and ten GB/s need, as rows of a table; none without the sizes for it.

    Partitions count by the difference of the two largest sizes with one task and one flow, tasks by that of the sizes
    with the fewest and the most.
    """
    alone = sorted((one for one in real if _is_plain(one.size) and one.size.tasks == 1), key=_partitions)
    if len(alone) < 2:
        return []
    small, large = alone[-2:]
    crowd = [one for one in real if _is_plain(one.size) and one.size.partitions == small.size.partitions]
    most = max(crowd, key=lambda one: one.size.tasks)
    for_tasks = _slope(small, most, lambda one: one.peak_memory_bytes, lambda one: one.size.tasks)

    def for_partitions(figure: Callable[[Figures], float]) -> float:
        return figure(large) + _slope(small, large, figure, _partitions) * (WANTED_PARTITIONS - _partitions(large))

    bytes_cores = WANTED_GB_PER_S * CPU_S_PER_GB
    idle_cores = for_partitions(lambda one: one.cores)
    tasks = max(math.ceil(bytes_cores / USED_SHARE), math.ceil(WANTED_GB_PER_S * 1000 / REACH_MB_PER_S))
    memory = for_partitions(lambda one: one.peak_memory_bytes) + for_tasks * (tasks - 1)
    rows = [
        ("cores for the bytes", f"{bytes_cores:.0f}"),
        ("cores for the partitions, idle", f"{idle_cores:.1f}"),
        (f"cores in all, {USED_SHARE:.0%} busy", f"{(bytes_cores + idle_cores) / USED_SHARE:.0f}"),
        ("tasks", f"{tasks}"),
        ("memory of all processes, GB", f"{memory / 1e9:.0f}"),
        (
            "start to all copied, with one record in each partition, s",
            f"{for_partitions(lambda one: one.copied_s):,.0f}",
        ),
        ("cores of the brokers, both sides, for one replica", f"{WANTED_GB_PER_S * BROKERS_CPU_S_PER_GB:.0f}"),
    ]
    for one in paper:
        if one.size.partitions == WANTED_PARTITIONS:
            rows += [
                (f"a plan ({one.size.tasks} tasks for each of {one.size.flows} flows), CPU s", f"{one.planned_s:.1f}"),
                ("a scrape, kB", f"{one.scrape_bytes / 1e3:,.0f}"),
            ]
    return rows


def _is_plain(size: Size) -> bool:
    return size.flows == 1 and not size.workers


def _partitions(figures: Figures) -> int:
    return figures.size.partitions


def _slope(low: Figures, high: Figures, figure: Callable[[Figures], float], of: Callable[[Figures], float]) -> float:
    """What one more of something takes; 0 where both have as many."""
    width = of(high) - of(low)
    return (figure(high) - figure(low)) / width if width else 0.0
