"""How long a record is on its way: from the producer's create time to the moment it is read at the target.

Producer, mirror and reader share a machine, so they share a clock. The create time has milliseconds, cut
off, so every figure is up to 1 ms too high, for both sides alike. The reader waits in a Fetch at the target
broker, which answers as soon as there is a byte.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from bench.accounting import machine_cpu_s
from bench.arena import Arena
from bench.contenders import Contender, Route, RunningMirror, Tuning
from bench.contents import Verdict, compare_records
from bench.memory import MemoryWatch
from bench.producing import Producer
from bench.reading import Tail, records_of
from bench.workloads import Workload

FIRST_RECORDS = 1000
"""Written at first; the producer's pace begins when they are at the target, so there is no backlog."""
WARM_S = 15.0
START_TIMEOUT_S = 120.0
STALL_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class LatencyResult:
    """Milliseconds over all records of the measured time; `cpu_share` is of one core, in that time."""

    p50_ms: float
    p99_ms: float
    max_ms: float
    records: int
    cpu_share: float
    brokers_cpu_share: float
    peak_memory_bytes: int
    others_cores: float
    """Cores that everybody else kept busy meanwhile, producer and measurer included."""
    verdict: Verdict


def measure_latency(
    arena: Arena, workload: Workload, partitions: int, contender: Contender, tuning: Tuning, label: str, seconds: float
) -> LatencyResult:
    """Run `contender` on a new topic, write to it at the workload's pace, and time every record.

    The pace begins when the mirror is at work, and records of the first `WARM_S` seconds are not counted.
    Raises ContenderFailed if it ends or stalls.
    """
    topic = f"{workload.name}-{label}"
    arena.source.create_topic(topic, partitions)
    route = Route(arena.source.servers, arena.target.servers, f"s{label}", f"t{label}", topic, workload.codec)
    account = arena.accounting.open(f"mirror-{label}")
    producer = Producer(arena.directory, workload, arena.source.servers)
    arena.settle()
    mirror = RunningMirror(contender, contender.settings(route, tuning), arena.directory / f"mirror-{label}", account)
    try:
        with mirror, MemoryWatch(account) as memory:
            producer.start(topic, FIRST_RECORDS).wait(START_TIMEOUT_S)
            ends = _wait_for_records(arena, mirror, route.target_topic, FIRST_RECORDS)
            tail = Tail(arena.target, route.target_topic, ends)
            producing = producer.start_paced(topic, WARM_S + seconds)
            try:
                timed = _time_records(arena, mirror, tail, int(workload.records_per_s * (WARM_S + seconds)))
                producing.wait(START_TIMEOUT_S)
            finally:
                producing.kill()
                tail.close()
        verdict = compare_records(arena, topic, route.target_topic)
    finally:
        arena.target.delete_topics()
        arena.source.delete_topics([topic, f"mm2-offset-syncs.t{label}.internal"])
    ordered = sorted(timed.latencies_ms)
    return LatencyResult(
        p50_ms=_quantile(ordered, 0.5),
        p99_ms=_quantile(ordered, 0.99),
        max_ms=ordered[-1],
        records=len(ordered),
        cpu_share=timed.mirror_cpu_s / timed.elapsed_s,
        brokers_cpu_share=timed.brokers_cpu_s / timed.elapsed_s,
        peak_memory_bytes=memory.peak_bytes,
        others_cores=(timed.machine_cpu_s - timed.mirror_cpu_s - timed.brokers_cpu_s) / timed.elapsed_s,
        verdict=verdict,
    )


@dataclass(frozen=True, slots=True)
class _Timed:
    latencies_ms: list[float]
    elapsed_s: float
    mirror_cpu_s: float
    brokers_cpu_s: float
    machine_cpu_s: float


def _wait_for_records(arena: Arena, mirror: RunningMirror, topic: str, records: int) -> dict[int, int]:
    """The target's log ends when the mirror is at work: it has copied all there was."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while sum((ends := arena.target.end_offsets(topic)).values()) < records:
        mirror.check()
        if time.monotonic() > deadline:
            raise mirror.failure(f"has copied nothing within {START_TIMEOUT_S:.0f} s")
        time.sleep(0.2)
    return ends


def _time_records(arena: Arena, mirror: RunningMirror, tail: Tail, expected: int) -> _Timed:
    """Read `expected` records; time those that were made `WARM_S` after the first one, or later."""
    latencies_ms: list[float] = []
    counted_from: float | None = None
    seen = 0
    started = cpu_before = brokers_before = machine_before = 0.0
    last_news = time.monotonic()
    while seen < expected:
        batches = tail.poll()
        now_ms = time.time() * 1e3
        if not batches:
            mirror.check()
            if time.monotonic() - last_news > STALL_TIMEOUT_S:
                raise mirror.failure(f"has copied {seen} of {expected} records and no more for a while")
            continue
        last_news = time.monotonic()
        for _, header, batch in batches:
            seen += header.records
            if counted_from is None:
                counted_from = header.base_timestamp + WARM_S * 1e3
            if header.max_timestamp < counted_from:
                continue
            if not latencies_ms:
                started, machine_before = last_news, machine_cpu_s()
                cpu_before, brokers_before = mirror.cpu_s(), arena.brokers_cpu_s()
            latencies_ms += [
                now_ms - record.timestamp for record in records_of(batch) if record.timestamp >= counted_from
            ]
    return _Timed(
        latencies_ms,
        time.monotonic() - started,
        mirror.cpu_s() - cpu_before,
        arena.brokers_cpu_s() - brokers_before,
        machine_cpu_s() - machine_before,
    )


def _quantile(ordered: list[float], share: float) -> float:
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]
