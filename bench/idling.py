"""The cost of an idle mirror: CPU and memory of all its processes, with nothing left to copy.

Each partition has one record, which is copied at the start. Duties and settings are those of the other workloads.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench.arena import Arena
from bench.company import create_idle
from bench.contenders import Contender, Route, RunningMirror
from bench.latency import wait_for_records
from bench.memory import MemoryWatch
from bench.tuning import Say, default_tuning, describe
from bench.workloads import WORKLOADS, Workload

SETTLING_S = 30.0
"""After the last record was copied: what a start brings with it is over."""
WINDOW_S = 60.0
_BATCH_BYTES = 16_384
"""Kafka's default `batch.size`.

With 4,000 partitions the best size of the sweep takes more than MirrorMaker 2's heap.
"""
_RECORDS = 1
_POLL_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Idleness:
    """One mirror with so many partitions."""

    mirror: str
    partitions: int
    copied_s: float
    """From the start of the process to the last record."""
    cores: float
    brokers_cores: float
    peak_memory_bytes: int
    """Sum of the processes' proportional set sizes, the start included."""


def measure_idleness(arena: Arena, contenders: Sequence[Contender], sizes: Sequence[int], say: Say) -> list[Idleness]:
    """Let each mirror be idle with each number of partitions. Raises `ContenderFailed` if it ends or stalls."""
    results: list[Idleness] = []
    for partitions in sizes:
        name = f"idle{partitions}"
        workload = Workload(name, "nothing", "none", WORKLOADS["latency"].line, idle_partitions=partitions)
        say(f"making {partitions:,} partitions")
        topics = create_idle(arena.source, name, partitions, _RECORDS)
        results += [_measure(arena, contender, workload, topics, say) for contender in contenders]
    return results


def _measure(arena: Arena, contender: Contender, workload: Workload, topics: Sequence[str], say: Say) -> Idleness:
    partitions = workload.idle_partitions
    route = Route.through(
        arena, workload, workload.name, f"{workload.name}{'ours' if contender.forwards_batches else ''}"
    )
    tuning = replace(default_tuning(contender), batch_size=_BATCH_BYTES)
    account = arena.accounting.open(f"mirror-{route.label}")
    arena.settle()
    directory = arena.directory / f"mirror-{route.label}"
    try:
        with (
            RunningMirror(contender, contender.settings(route, tuning), directory, account) as mirror,
            MemoryWatch(account) as memory,
        ):
            say(f"{contender.name}, {describe(contender, tuning)}, {partitions:,} partitions")
            wait_for_records(arena, mirror, [route.remote(topic) for topic in topics], partitions * _RECORDS, _POLL_S)
            copied_s = time.monotonic() - mirror.started
            cores, brokers = idle_cores(arena, mirror, SETTLING_S, WINDOW_S)
    finally:
        arena.target.delete_topics()
    say(f"  {cores:.2%} of a core, {memory.peak_bytes / 1e6:.0f} MB")
    return Idleness(
        mirror=contender.name,
        partitions=partitions,
        copied_s=copied_s,
        cores=cores,
        brokers_cores=brokers,
        peak_memory_bytes=memory.peak_bytes,
    )


def idle_cores(arena: Arena, mirror: RunningMirror, settling_s: float, window_s: float) -> tuple[float, float]:
    """Cores that the mirror and its brokers use over a window, after `settling_s`."""
    time.sleep(settling_s)
    began, cpu_s, brokers_s = time.monotonic(), mirror.cpu_s(), arena.brokers_cpu_s()
    time.sleep(window_s)
    mirror.check()
    seconds = time.monotonic() - began
    return (mirror.cpu_s() - cpu_s) / seconds, (arena.brokers_cpu_s() - brokers_s) / seconds


def markdown(results: Sequence[Idleness]) -> str:
    """A table."""
    lines = [
        "| partitions | mirror | start to all copied, s | idle, of a core | its brokers, of a core | peak memory, MB |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.partitions:,} | {one.mirror} | {one.copied_s:.1f} | {one.cores:.2%} | {one.brokers_cores:.2%} | "
        f"{one.peak_memory_bytes / 1e6:,.0f} |"
        for one in results
    ]
    return "\n".join(lines) + "\n"
