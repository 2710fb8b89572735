"""One copy of a dataset by one contender, measured.

The rate is taken between two marks: from the moment when a first part is at the target (`warm_records`) to
the end. Start-up and warming up lie before the first mark; the totals have them.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from bench.accounting import machine_cpu_s
from bench.arena import Arena
from bench.contenders import Contender, Route, RunningMirror, Tuning
from bench.contents import Verdict, compare_batches, compare_contents, compare_records
from bench.datasets import Dataset
from bench.memory import MemoryWatch
from bench.records import TopicReader
from bench.verifying import VerifyResult, verify

POLL_S = 0.05
CHECKS_EVERY = 20
START_TIMEOUT_S = 240.0
STALL_TIMEOUT_S = 60.0
FAR_WARM_S, FAR_MEASURED_S = 10.0, 20.0
"""Over a line: longest time for the first part, from the first record on, and for the rest."""
WARM_SHARE, WARM_BYTES, WARM_MOST = 0.15, 300e6, 0.5


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment of a copy: monotonic seconds, records at the target, CPU seconds so far (`machine`: of all)."""

    at_s: float
    records: int
    mirror_cpu_s: float
    brokers_cpu_s: float
    lines_cpu_s: float
    machine_cpu_s: float


@dataclass(frozen=True, slots=True)
class CopyResult:
    """What one copy took. GB are 10^9 bytes of the source's record batches as stored."""

    mb_per_s: float
    records_per_s: float
    cpu_s_per_gb: float
    brokers_cpu_s_per_gb: float
    peak_memory_bytes: int
    total_s: float
    """From the start of the process to the last record."""
    total_cpu_s: float
    measured_s: float
    target_bytes: int
    map_bytes_per_gb: float
    """Of the topic that says which offset became which."""
    others_cores: float
    """Cores that everybody else kept busy meanwhile, the measurer included: figures are good if it is near 0."""
    verdict: Verdict
    verify_s: float = 0.0
    """What `sparkmirror verify` took for the whole copy, from its process' start on; 0: it was not asked."""
    verify_cpu_s: float = 0.0
    lines_cpu_s_per_gb: float = 0.0
    """Of playing a line, by a process that is neither mirror nor broker; 0: there was no line."""


def warm_records(data: Dataset) -> int:
    """How many records are copied before the clock starts: 15 %, at least 300 MB, at most half."""
    share = min(max(WARM_SHARE, WARM_BYTES / data.wire_bytes), WARM_MOST)
    return int(data.records * share)


def copy(
    arena: Arena,
    data: Dataset,
    contender: Contender,
    tuning: Tuning,
    label: str,
    *,
    records: int | None = None,
    verified: bool = False,
) -> CopyResult:
    """Let `contender` copy `data` to a new target topic; then compare, and delete what it left.

    `label` must be new. With `records` the copy is broken off there and not compared, over a line after
    `FAR_MEASURED_S`; with `verified` our own verb is measured on it, too. Raises ContenderFailed if it ends or stalls.
    """
    route = Route.through(arena, data.workload, data.topic, label)
    account = arena.accounting.open(f"mirror-{label}")
    arena.settle()
    mirror = RunningMirror(contender, contender.settings(route, tuning), arena.directory / f"mirror-{label}", account)
    checked = VerifyResult(0.0, 0.0)
    try:
        with mirror, MemoryWatch(account) as memory:
            watch = _Watch(arena, mirror, route.target_topic)
            is_far = bool(data.workload.far_side)
            warm = watch.wait_for(warm_records(data), FAR_WARM_S if is_far else math.inf)
            end = watch.wait_for(min(records or data.records, data.records), FAR_MEASURED_S if is_far else math.inf)
        target_bytes = arena.target.log_bytes(route.target_topic)
        map_bytes = contender.map_bytes(route, arena.source, arena.target)
        is_broken_off = bool(records) or end.records < data.records
        verdict = Verdict(_broken_off(end, data)) if is_broken_off else _compare(arena, data, contender, route)
        if verified:
            checked = verify(arena, mirror.file, label)
    finally:
        arena.target.delete_topics()
        arena.source.delete_topics([f"mm2-offset-syncs.t{label}.internal"])
    seconds, copied = end.at_s - warm.at_s, end.records - warm.records
    gigabytes = copied * data.bytes_per_record / 1e9
    mirror_cpu_s = end.mirror_cpu_s - warm.mirror_cpu_s
    brokers_cpu_s = end.brokers_cpu_s - warm.brokers_cpu_s
    lines_cpu_s = end.lines_cpu_s - warm.lines_cpu_s
    return CopyResult(
        mb_per_s=gigabytes * 1e3 / seconds,
        records_per_s=copied / seconds,
        cpu_s_per_gb=mirror_cpu_s / gigabytes,
        brokers_cpu_s_per_gb=brokers_cpu_s / gigabytes,
        peak_memory_bytes=memory.peak_bytes,
        total_s=end.at_s - mirror.started,
        total_cpu_s=end.mirror_cpu_s,
        measured_s=seconds,
        target_bytes=target_bytes,
        map_bytes_per_gb=map_bytes / (data.wire_bytes / 1e9),
        others_cores=(end.machine_cpu_s - warm.machine_cpu_s - mirror_cpu_s - brokers_cpu_s - lines_cpu_s) / seconds,
        verdict=verdict,
        verify_s=checked.seconds,
        verify_cpu_s=checked.cpu_s,
        lines_cpu_s_per_gb=lines_cpu_s / gigabytes,
    )


class _Watch:
    """Follows the target topic's log ends."""

    def __init__(self, arena: Arena, mirror: RunningMirror, topic: str) -> None:
        self._arena = arena
        self._mirror = mirror
        self._topic = topic
        self._polls = 0
        self._records = 0

    def wait_for(self, records: int, longest_s: float) -> Mark:
        """The moment when the target has so many records; or fewer, `longest_s` after some were there."""
        moved = time.monotonic()
        first_s = math.inf
        while True:
            now = sum(self._arena.target.end_offsets(self._topic).values())
            at_s = time.monotonic()
            first_s = min(first_s, at_s) if now else first_s
            if now >= records or at_s - first_s > longest_s:
                return self._mark(at_s, now)
            if now > self._records:
                self._records, moved = now, at_s
            elif at_s - moved > (STALL_TIMEOUT_S if now else START_TIMEOUT_S):
                raise self._mirror.failure(f"has copied {now} of {records} records and no more for a while")
            self._polls += 1
            if self._polls % CHECKS_EVERY == 0:
                self._mirror.check()
            time.sleep(POLL_S)

    def _mark(self, at_s: float, records: int) -> Mark:
        arena = self._arena
        return Mark(at_s, records, self._mirror.cpu_s(), arena.brokers_cpu_s(), arena.lines_cpu_s(), machine_cpu_s())


def _broken_off(end: Mark, data: Dataset) -> str:
    return f"nothing, as it was broken off at {end.records:,} of {data.records:,} records"


def _compare(arena: Arena, data: Dataset, contender: Contender, route: Route) -> Verdict:
    if data.contents is not None:
        source = TopicReader(arena.source.servers, route.topic, data.workload.read_committed)
        target = TopicReader(arena.target.servers, route.target_topic)
        return compare_contents(data.contents, source, target, data.workload.copied_codec)
    is_whole = contender.forwards_batches and data.workload.far_side != "target"  # a long line may join small batches
    compare = compare_batches if is_whole else compare_records
    return compare(arena, route.topic, route.target_topic)
