"""Sizing: from a rate to tasks, cores, memory and executors.

Every figure is from the newest tables in docs/results.md: 2026-11-29, commit 9ff50dc4, two slow cores that brokers,
mirror and measurer shared; for long lines: 1cc01026, the evening before. `tests/engine/test_sizing.py` compares them
with these tables, and the formula's results with what was measured. docs/planning.md explains the formula.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

USED_SHARE = 0.7
"""Share of a core to plan with.

The rest is for bursts, garbage collection and a takeover.
"""

PROCESS_CORES = 0.47
"""Cores of a process that copies few records (`latency`)."""

PROCESS_MB, TASK_MB = 410, 220
"""Memory of a process without tasks, and of a task, in MB.

No measured peak is higher.
"""

TASK_PARTITIONS = 2_000
"""Partitions a task at most: more were not tried under load."""

EXECUTOR_HEAP_MB, EXECUTOR_MB = 512, 256
"""An executor's JVM heap, and the JVM's memory next to it, in MiB."""

LONG_LINE_MS = 10.0
"""Round trip from which small batches for a far target are joined.

The pump's own bound is in `pump/window.py`.
"""


class Batches(StrEnum):
    """Kinds of batches at the source that cost differently."""

    WHOLE = "whole"
    SMALL = "small"
    TRANSACTIONAL = "transactional"
    SINGLE = "single"
    COMPACTED = "compacted"


class FarSide(StrEnum):
    """The cluster that is far from the mirror."""

    SOURCE = "source"
    TARGET = "target"


@dataclass(frozen=True, slots=True)
class Measured:
    """One task's cost and rate in a bench workload."""

    workload: str
    cpu_s_per_gb: float
    mb_per_s: float


MEASURED = {
    Batches.WHOLE: Measured("json-lz4", 3.28, 142.4),
    Batches.SMALL: Measured("small-lz4", 6.00, 105.2),
    Batches.TRANSACTIONAL: Measured("transactional", 4.71, 143.2),
    Batches.SINGLE: Measured("tiny", 29.59, 32.7),
    Batches.COMPACTED: Measured("compacted", 12.73, 66.3),
}
TLS = Measured("json-lz4-tls", 5.81, 123.1)
ANOTHER_CODEC = Measured("zstd", 12.86, 67.2)

FAR_SOURCE_CPU_S_PER_GB_MS = 0.0125
"""CPU seconds that a GB costs more for each millisecond to a far source."""

FAR_TARGET_CPU_S_PER_GB = 12.7
"""CPU seconds that a GB costs more to a far target.

Batches are unpacked, joined and packed again.
"""

FAR_MB = {FarSide.SOURCE: 11.0, FarSide.TARGET: 3.2}
"""MB that one task moved in each round trip at least.

In copies of an eighth of a GB; the task's windows grow to 32 and 24 MiB with longer copies.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Work that a mirror has to do."""

    mb_per_s: float
    """Peak rate at the source, as its log stores the batches."""
    partitions: int
    history_gb: float = 0.0
    within_hours: float = 48.0
    """Time in which the history is to be copied."""
    batches: Batches = Batches.WHOLE
    tls: bool = False
    another_codec: bool = False
    """True: the copies get another codec than the source's batches."""
    round_trip_ms: float = 0.0
    far: FarSide = FarSide.SOURCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """A mirror's needs for a load."""

    load: Load
    rate: float
    """MB/s, while history and live records are copied together."""
    extras: tuple[tuple[str, float], ...]
    """Additions to the cost of whole batches: name, CPU seconds a GB."""
    near: float
    """MB/s that a task moves without distance."""
    reach: float
    """MB/s that a task moves over the load's distance."""
    cost: float
    """CPU seconds a GB."""
    cores: float
    """Cores that the bytes keep busy."""
    tasks: int
    cpu: float
    """Cores for all processes together, with room to spare."""
    memory_mb: int
    """One process's memory in local mode."""

    @property
    def task_mb_per_s(self) -> float:
        """MB/s that a task carries within its share of a core."""
        return min(self.reach, USED_SHARE * 1000 / self.cost)

    @property
    def partitions_suffice(self) -> bool:
        """True if each task can have a partition; none is ever split."""
        return self.load.partitions >= self.tasks


@dataclass(frozen=True, slots=True)
class Executors:
    """A Spark cluster's executors, all alike."""

    count: int
    cores: int
    heap_mib: int
    overhead_mib: int
    """`spark.executor.memoryOverhead`: Python, and the JVM next to its heap."""


def sized(load: Load) -> Sizing:
    """Return the needs of a load.

    They grow with the rate, the distance and the partitions.
    """
    rate = load.mb_per_s + load.history_gb * 1000 / (load.within_hours * 3600)
    extras = _extras(load)
    cost = MEASURED[Batches.WHOLE].cpu_s_per_gb + sum(extra for _, extra in extras)
    near = _near(load)
    reach = 1 / (1 / near + load.round_trip_ms / 1000 / FAR_MB[load.far])
    cores = rate / 1000 * cost
    tasks = max(1, math.ceil(cores / USED_SHARE), math.ceil(rate / reach), math.ceil(load.partitions / TASK_PARTITIONS))
    return Sizing(
        load=load,
        rate=rate,
        extras=extras,
        near=near,
        reach=reach,
        cost=cost,
        cores=cores,
        tasks=tasks,
        cpu=(cores + PROCESS_CORES) / USED_SHARE,
        memory_mb=PROCESS_MB + TASK_MB * tasks,
    )


def _extras(load: Load) -> tuple[tuple[str, float], ...]:
    whole = MEASURED[Batches.WHOLE].cpu_s_per_gb
    extras = [
        (f"{load.batches} batches", MEASURED[load.batches].cpu_s_per_gb - whole),
        ("TLS", (TLS.cpu_s_per_gb - whole) * load.tls),
        ("another codec", (ANOTHER_CODEC.cpu_s_per_gb - whole) * load.another_codec),
        (f"{load.round_trip_ms:g} ms to the {load.far}", _far_cost(load)),
    ]
    return tuple((name, extra) for name, extra in extras if extra)


def _far_cost(load: Load) -> float:
    if load.far is FarSide.SOURCE:
        return FAR_SOURCE_CPU_S_PER_GB_MS * load.round_trip_ms
    return FAR_TARGET_CPU_S_PER_GB if load.round_trip_ms >= LONG_LINE_MS else 0.0


def _near(load: Load) -> float:
    bounds = [MEASURED[Batches.WHOLE], MEASURED[load.batches]]
    if load.tls:
        bounds.append(TLS)
    if load.another_codec:
        bounds.append(ANOTHER_CODEC)
    return min(measured.mb_per_s for measured in bounds)


def executors(sizing: Sizing, cores: int) -> Executors:
    """Return executors with so many cores that have a slot for each task."""
    return Executors(math.ceil(sizing.tasks / cores), cores, EXECUTOR_HEAP_MB, TASK_MB * cores + EXECUTOR_MB)


# --- what machines cost -------------------------------------------------------------------------------

VCPU_HOUR, GB_HOUR, MONTH_HOURS = 0.04048, 0.004445, 730
"""Fargate's prices in us-east-1 in dollars, Linux on x86, as listed in 2026."""

_SIZES = ((1, 8, 1), (2, 16, 1), (4, 30, 1), (8, 60, 4), (16, 120, 8))
"""Fargate's vCPUs, the most GB for each, and the step in GB.

The least is two GB a vCPU.
"""


@dataclass(frozen=True, slots=True)
class Machines:
    """Machines, all alike: a line in the cost table."""

    name: str
    count: int
    vcpus: float
    gb: float

    @property
    def dollars_a_month(self) -> float:
        """The price for all machines over 730 hours."""
        return self.count * MONTH_HOURS * (self.vcpus * VCPU_HOUR + self.gb * GB_HOUR)


def local_machines(sizing: Sizing) -> Machines | None:
    """Return local mode's two machines; None if no machine suffices."""
    size = _smallest(sizing.cpu, sizing.memory_mb / 1000)
    return size and Machines("local mode: a process, and one that stands by", 2, *size)


def cluster_machines(chosen: Executors) -> tuple[Machines, ...]:
    """Return a standalone cluster's machines.

    There are none if no machine suffices for a worker.
    """
    worker = _smallest(chosen.cores, (chosen.heap_mib + chosen.overhead_mib) * 1.048576 / 1000)
    if worker is None:
        return ()
    return (
        Machines("Spark cluster: a driver, and one that stands by", 2, 1, 2),
        Machines("Spark cluster: master", 1, 0.25, 1),
        Machines("Spark cluster: workers, one executor each", chosen.count, *worker),
    )


def _smallest(cores: float, gb: float) -> tuple[int, int] | None:
    for vcpus, most, step in _SIZES:
        wanted = max(2 * vcpus, math.ceil(gb / step) * step)
        if cores <= vcpus and wanted <= most:
            return vcpus, wanted
    return None
