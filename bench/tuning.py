"""The sweep: each contender gets the settings that it is fastest with on this machine.

One setting after the other, each tried with the best of those before: number of tasks for both; for
MirrorMaker 2 then the size of its batches, and how long it lingers over them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bench.arena import Arena
from bench.contenders import Contender, ContenderFailed, Tuning
from bench.copying import copy, warm_records
from bench.datasets import Dataset
from bench.workloads import Workload

TASKS = (1, 2, 4)
BATCH_SIZES = (524_288, 131_072)
LINGERS_MS = (0, 10)
FAR_BATCHINGS = ((524_288, 0), (524_288, 100), (327_680, 100), (1_048_576, 100))
"""MirrorMaker 2's `batch.size` and `linger.ms` over a line: the best of near clusters, the same with the linger that
Strimzi's page on high volumes has, that page's own pair, and larger batches."""
LATENCY_S = 15.0
"""Timed, for each try of a paced workload."""
SWEEP_BYTES = 500e6
"""Copied after the warm-up, for each try."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Try:
    """One setting and how fast it was; 0 MB/s if it failed."""

    tuning: Tuning
    mb_per_s: float


@dataclass(frozen=True, slots=True)
class LatencyTry:
    """One setting and how late its latest one in a hundred records was; infinite if it failed."""

    tuning: Tuning
    p99_ms: float


def default_tuning(contender: Contender) -> Tuning:
    """What is run without a sweep: what was best on two cores."""
    return Tuning(tasks=1 if contender.forwards_batches else 4)


def sweep_far(
    arena: Arena, data: Dataset, contender: Contender, tasks: int, labels: Callable[[], str], say: Say
) -> list[Try]:
    """Try out what a mirror that makes batches can do about a line; the best comes first. None for the other mirror."""
    if contender.forwards_batches:
        return []
    tries: list[Try] = []
    for batch_size, linger_ms in FAR_BATCHINGS:
        tries.append(_try(arena, data, contender, Tuning(tasks, batch_size, linger_ms), labels()))
        say(f"  {contender.name}: {describe(contender, tries[-1].tuning)}: {tries[-1].mb_per_s:.0f} MB/s")
    return sorted(tries, key=lambda done: -done.mb_per_s)


def sweep(arena: Arena, data: Dataset, contender: Contender, labels: Callable[[], str], say: Say) -> list[Try]:
    """Try out; the best comes first."""
    tries: list[Try] = []

    def attempt(candidates: Sequence[Tuning]) -> Tuning:
        for tuning in candidates:
            if all(tuning != done.tuning for done in tries):
                tries.append(_try(arena, data, contender, tuning, labels()))
                say(f"  {contender.name}: {describe(contender, tuning)}: {tries[-1].mb_per_s:.0f} MB/s")
        return max(tries, key=lambda done: done.mb_per_s).tuning

    best = attempt([Tuning(tasks=tasks) for tasks in TASKS])
    if not contender.forwards_batches:
        best = attempt([replace(best, batch_size=size) for size in BATCH_SIZES])
        attempt([replace(best, linger_ms=linger) for linger in LINGERS_MS])
    return sorted(tries, key=lambda done: -done.mb_per_s)


def sweep_linger(
    workload: Workload, contender: Contender, best: Tuning, p99_ms: Callable[[Tuning], float], say: Say
) -> list[LatencyTry]:
    """Without linger, or with that of the source's producer: a mirror that makes batches may gain. The best first."""
    tries: list[LatencyTry] = []
    for linger_ms in sorted({0, workload.batching.linger_ms}):
        tuning = best.with_linger(linger_ms)
        try:
            tries.append(LatencyTry(tuning, p99_ms(tuning)))
        except ContenderFailed:
            tries.append(LatencyTry(tuning, math.inf))
        say(f"  {contender.name}: {describe(contender, tuning)}: p99 {tries[-1].p99_ms:.1f} ms")
    return sorted(tries, key=lambda done: done.p99_ms)


def describe(contender: Contender, tuning: Tuning) -> str:
    """The tuning in words."""
    if contender.forwards_batches:
        return f"tasks.max {tuning.tasks}"
    return f"tasks.max {tuning.tasks}, batch.size {tuning.batch_size}, linger.ms {tuning.linger_ms}"


def _try(arena: Arena, data: Dataset, contender: Contender, tuning: Tuning, label: str) -> Try:
    enough = warm_records(data) + int(SWEEP_BYTES / data.bytes_per_record)
    try:
        return Try(tuning, copy(arena, data, contender, tuning, label, records=enough).mb_per_s)
    except ContenderFailed:
        return Try(tuning, 0.0)
