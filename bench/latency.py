"""How long a record is on its way: from the producer's create time to the moment it is read at the target.

Producer, mirror and reader share a machine, so they share a clock. The create time has milliseconds, cut
off, so every figure is up to 1 ms too high, for both sides alike. The reader waits in a Fetch at the target
broker, which answers as soon as there is a byte.
"""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.accounting import machine_cpu_s
from bench.arena import Arena
from bench.company import IDLE_RECORDS, Seams, create_idle
from bench.contenders import Contender, Route, RunningMirror, Tuning
from bench.contents import Verdict, compare_contents, compare_records
from bench.memory import MemoryWatch
from bench.producing import Producer
from bench.reading import Tail
from bench.records import TopicReader, timestamps
from bench.workloads import Workload

FIRST_RECORDS = 1000
"""There before the mirror starts; the producer's pace begins when they are at the target, so there is no backlog."""
WARM_S = 30.0
QUIET_S = 1.5
"""When so long after the last record that was due nothing more has come, nothing more is coming."""
START_TIMEOUT_S = 240.0
STALL_TIMEOUT_S = 60.0
_FIRST_POLL_S, _IDLE_POLL_S = 0.05, 0.5


@dataclass(frozen=True, slots=True)
class LatencyResult:
    """Milliseconds over all records of the measured time; `cpu_share` is of one core, in that time."""

    p50_ms: float
    p99_ms: float
    max_ms: float
    p99_between_seams_ms: float
    """Without the records that were made just before or after a seam."""
    records: int
    records_per_s: float
    """Less than the workload's pace if the producer could not keep it."""
    unread_records: int
    """The most that was at the target while the measurer read something older: figures are good if it is near 0."""
    cpu_share: float
    brokers_cpu_share: float
    peak_memory_bytes: int
    first_record_s: float
    """From the start of the process until a first record of the paced topic is at the target."""
    caught_up_s: float
    """From the start of the process until all records that were there are at the target."""
    map_bytes_per_gb: float
    """Of the topic that says which offset became which."""
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
    idle = create_idle(arena.source, topic, workload.idle_partitions) if workload.idle_partitions else []
    producer = Producer(arena.directory, workload, arena.source.servers)
    producer.start(topic, FIRST_RECORDS).wait(START_TIMEOUT_S)
    seams = Seams(arena.source, topic, workload.seams)
    route = Route.through(arena, workload, topic, label)
    account = arena.accounting.open(f"mirror-{label}")
    arena.settle()
    mirror = RunningMirror(contender, contender.settings(route, tuning), arena.directory / f"mirror-{label}", account)
    try:
        with mirror, MemoryWatch(account) as memory:
            start = _wait_for_start(arena, mirror, route, idle)
            tail = Tail(arena.target, route.target_topic, arena.target.end_offsets(route.target_topic))
            producing = producer.start_paced(topic, WARM_S + seconds)
            try:
                expected = int(workload.records_per_s * (WARM_S + seconds))
                timed = _time_records(arena, mirror, tail, seams, expected, seconds)
                producing.wait(START_TIMEOUT_S)
            finally:
                producing.kill()
                seams.close()
                tail.close()
            map_bytes = contender.map_bytes(route, arena.source, arena.target)
        copied_bytes = sum(arena.source.log_bytes(name) for name in (topic, *idle))
        verdict = _verdict(arena, route, idle, seams.topics)
    finally:
        arena.target.delete_topics()
        arena.source.delete_topics()
    ordered = sorted(timed.all_ms)
    return LatencyResult(
        p50_ms=_quantile(ordered, 0.5),
        p99_ms=_quantile(ordered, 0.99),
        max_ms=ordered[-1],
        p99_between_seams_ms=_quantile(sorted(timed.between_seams_ms), 0.99),
        records=len(ordered),
        records_per_s=len(ordered) / timed.elapsed_s,
        unread_records=timed.unread_records,
        cpu_share=timed.mirror_cpu_s / timed.elapsed_s,
        brokers_cpu_share=timed.brokers_cpu_s / timed.elapsed_s,
        peak_memory_bytes=memory.peak_bytes,
        first_record_s=start.first_record_s,
        caught_up_s=start.caught_up_s,
        map_bytes_per_gb=map_bytes / (copied_bytes / 1e9),
        others_cores=(timed.machine_cpu_s - timed.mirror_cpu_s - timed.brokers_cpu_s) / timed.elapsed_s,
        verdict=verdict,
    )


@dataclass(frozen=True, slots=True)
class _Start:
    first_record_s: float
    caught_up_s: float


@dataclass(slots=True)
class _Timed:
    """Latencies, and the CPU seconds between the first and the last of them."""

    all_ms: array[float] = field(default_factory=lambda: array("d"))
    between_seams_ms: array[float] = field(default_factory=lambda: array("d"))
    unread_records: int = 0
    elapsed_s: float = 0.0
    mirror_cpu_s: float = 0.0
    brokers_cpu_s: float = 0.0
    machine_cpu_s: float = 0.0


def _wait_for_start(arena: Arena, mirror: RunningMirror, route: Route, idle: Sequence[str]) -> _Start:
    """Until the mirror has copied all there was; the many idle topics are looked at last, and less often."""
    wait_for_records(arena, mirror, [route.target_topic], 1, _FIRST_POLL_S)
    first_record_s = time.monotonic() - mirror.started
    wait_for_records(arena, mirror, [route.target_topic], FIRST_RECORDS, _FIRST_POLL_S)
    if idle:
        records = route.workload.idle_partitions * IDLE_RECORDS
        wait_for_records(arena, mirror, [route.remote(topic) for topic in idle], records, _IDLE_POLL_S)
    return _Start(first_record_s, time.monotonic() - mirror.started)


def wait_for_records(arena: Arena, mirror: RunningMirror, topics: Sequence[str], records: int, every_s: float) -> None:
    """Until the target's `topics` have so many in all. Raises ContenderFailed if they have not in time."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while (copied := sum(sum(arena.target.end_offsets(topic).values()) for topic in topics)) < records:
        mirror.check()
        if time.monotonic() > deadline:
            raise mirror.failure(f"has copied {copied} of {records} records within {START_TIMEOUT_S:.0f} s")
        time.sleep(every_s)


def _time_records(
    arena: Arena, mirror: RunningMirror, tail: Tail, seams: Seams, expected: int, seconds: float
) -> _Timed:
    """Read `expected` records, or more if some come twice; time those made `WARM_S` after the first one, or later."""
    timed = _Timed()
    counted_from: float | None = None
    seen = 0
    started = cpu_before = brokers_before = machine_before = 0.0
    last_news = time.monotonic()
    while seen < expected or time.monotonic() - last_news < QUIET_S:
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
                seams.start(WARM_S, seconds)
            if header.max_timestamp < counted_from:
                continue
            if not timed.all_ms:
                started, machine_before = last_news, machine_cpu_s()
                cpu_before, brokers_before = mirror.cpu_s(), arena.brokers_cpu_s()
            late = [now_ms - made for made in timestamps(header, batch) if made >= counted_from]
            timed.all_ms.extend(late)
            if not seams.is_near(header.max_timestamp):
                timed.between_seams_ms.extend(late)
        if timed.all_ms:
            timed.unread_records = max(timed.unread_records, tail.behind)
        if seen >= expected and not timed.elapsed_s:
            timed.elapsed_s = last_news - started
            timed.mirror_cpu_s = mirror.cpu_s() - cpu_before
            timed.brokers_cpu_s = arena.brokers_cpu_s() - brokers_before
            timed.machine_cpu_s = machine_cpu_s() - machine_before
    return timed


def _verdict(arena: Arena, route: Route, idle: Sequence[str], seams: Sequence[str]) -> Verdict:
    """The paced topic; then all idle ones; and every topic that appeared must have been taken on."""
    if route.workload.has_gaps or idle:
        verdict = _compare_all(arena, route, [route.topic, *idle])
    else:
        verdict = compare_records(arena, route.topic, route.target_topic)
    for topic in seams:
        if not verdict.difference and not arena.target.end_offsets(route.remote(topic)):
            return Verdict(verdict.compared, f"{topic} appeared and was not mirrored: there was no seam")
    return verdict


def _compare_all(arena: Arena, route: Route, topics: Sequence[str]) -> Verdict:
    verdicts = []
    for topic in topics:
        source = TopicReader(arena.source.servers, topic)
        target = TopicReader(arena.target.servers, route.remote(topic))
        verdicts.append(compare_contents(source.contents(), source, target, route.workload.copied_codec))
    difference = next((verdict.difference for verdict in verdicts if verdict.difference), "")
    return Verdict("; ".join(dict.fromkeys(verdict.compared for verdict in verdicts)), difference)


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else math.nan
