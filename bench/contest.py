"""The course of a workload: data, sweep, and rounds in which both take turns."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from lab.distance import Distance

from bench.arena import Arena
from bench.contenders import Contender, ContenderFailed, Route, Tuning
from bench.copying import copy
from bench.datasets import Dataset, dataset
from bench.latency import LatencyResult, measure_latency
from bench.report import Chapter, Entry, Result, line_in_words
from bench.tuning import LATENCY_S, LatencyTry, Say, Try, default_tuning, sweep, sweep_far, sweep_linger
from bench.workloads import Workload


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of it all."""

    contenders: Sequence[Contender]
    gigabytes: float
    rounds: int
    partitions: int
    latency_s: float | None
    """None: as long as the workload says."""
    sweep: bool
    verify: bool
    """Whether our own verb is measured on our copies."""
    distances: Sequence[Distance]
    far_tasks: Sequence[int]
    """Over a line: `tasks.max` of both, one after the other."""


class Contest:
    """Runs workloads in one arena; remembers each contender's best tuning of the first sweep for the paced ones."""

    def __init__(self, arena: Arena, plan: Plan, say: Say) -> None:
        self._arena = arena
        self._plan = plan
        self._say = say
        self._numbers = itertools.count(1)
        self._best: dict[str, Tuning] = {}

    def run(self, workload: Workload) -> Iterator[Chapter]:
        """All rounds of one workload; over lines a chapter for each line and number of tasks."""
        if workload.is_paced:
            yield self._run_paced(workload)
        elif workload.far_side:
            yield from self._run_far(workload)
        else:
            yield self._run_near(workload)

    @contextmanager
    def _data(self, workload: Workload) -> Iterator[Dataset]:
        self._say(f"{workload.name}: making the data")
        with dataset(self._arena, workload, self._plan.gigabytes, self._plan.partitions) as data:
            rate = data.wire_bytes / 1e6 / data.produced_in_s
            self._say(f"  {data.wire_bytes / 1e9:.2f} GB, {data.records:,} records, at {rate:.0f} MB/s")
            yield data

    def _run_near(self, workload: Workload) -> Chapter:
        with self._data(workload) as data:
            chapter = Chapter(workload, data)
            for contender in self._plan.contenders:
                tries = sweep(self._arena, data, contender, self._label, self._say) if self._plan.sweep else []
                tuning = tries[0].tuning if tries else default_tuning(contender)
                if tries:
                    self._best.setdefault(contender.name, tuning)
                chapter.entries[contender.name] = Entry(tuning, self._settings(contender, tuning, workload), tries)
            self._play(chapter, lambda contender, tuning: self._copy(data, contender, tuning))
        return chapter

    def _run_far(self, workload: Workload) -> Iterator[Chapter]:
        """With the batches that were best over the first line, for a mirror that makes its own."""
        side = self._arena.source if workload.far_side == "source" else self._arena.target
        sweeps: dict[str, list[Try]] = {}
        with self._data(workload) as data:
            for distance, tasks in itertools.product(self._plan.distances, self._plan.far_tasks):
                side.line.become(distance)
                chapter = Chapter(workload, data, line=distance)
                self._say(f"{workload.name}: {line_in_words(distance)}, tasks.max {tasks}")
                for contender in self._plan.contenders:
                    if self._plan.sweep and contender.name not in sweeps and distance.round_trip_ms:
                        sweeps[contender.name] = self._sweep_far(data, contender)
                    tries = sweeps.get(contender.name, [])
                    tuning = replace(tries[0].tuning if tries else Tuning(tasks), tasks=tasks)
                    chapter.entries[contender.name] = Entry(tuning, self._settings(contender, tuning, workload), tries)
                self._play(chapter, lambda contender, tuning: self._copy(data, contender, tuning))
                yield chapter

    def _sweep_far(self, data: Dataset, contender: Contender) -> list[Try]:
        return sweep_far(self._arena, data, contender, max(self._plan.far_tasks), self._label, self._say)

    def _run_paced(self, workload: Workload) -> Chapter:
        """With what was fastest in the first sweep, but no linger, unless one is better."""
        chapter = Chapter(workload, None)
        for contender in self._plan.contenders:
            tries = self._sweep_linger(workload, contender)
            tuning = tries[0].tuning if tries else self._best_of(contender).with_linger(0)
            chapter.entries[contender.name] = Entry(tuning, self._settings(contender, tuning, workload), tries)
        self._play(chapter, lambda contender, tuning: self._time(workload, contender, tuning))
        return chapter

    def _play(self, chapter: Chapter, measure: Callable[[Contender, Tuning], Result]) -> None:
        """A B, B A, A B ...: neither always has the clusters as the other left them."""
        for number in range(self._plan.rounds):
            order = self._plan.contenders if number % 2 == 0 else tuple(reversed(self._plan.contenders))
            for contender in order:
                self._say(f"{chapter.workload.name}: round {number + 1} of {self._plan.rounds}, {contender.name}")
                entry = chapter.entries[contender.name]
                try:
                    entry.rounds.append(measure(contender, entry.tuning))
                except ContenderFailed as failure:
                    self._say(f"  {failure}")
                    entry.failures.append(str(failure))

    def _copy(self, data: Dataset, contender: Contender, tuning: Tuning) -> Result:
        verified = self._plan.verify and contender.forwards_batches
        result = copy(self._arena, data, contender, tuning, self._label(), verified=verified)
        self._say(
            f"  {result.mb_per_s:.0f} MB/s, {result.cpu_s_per_gb:.2f} CPU s/GB, "
            f"{result.total_s:.1f} s in all; {result.verdict.difference or result.verdict.compared}"
        )
        return result

    def _sweep_linger(self, workload: Workload, contender: Contender) -> list[LatencyTry]:
        if not self._plan.sweep or contender.forwards_batches or not workload.batching.linger_ms:
            return []
        calm = replace(workload, seams=0)
        return sweep_linger(
            workload,
            contender,
            self._best_of(contender),
            lambda tuning: self._measure_latency(calm, contender, tuning, LATENCY_S).p99_ms,
            self._say,
        )

    def _time(self, workload: Workload, contender: Contender, tuning: Tuning) -> LatencyResult:
        seconds = self._plan.latency_s or workload.seconds
        result = self._measure_latency(workload, contender, tuning, seconds)
        self._say(
            f"  p50 {result.p50_ms:.1f} ms, p99 {result.p99_ms:.1f} ms; {result.records} records; "
            f"{result.verdict.difference or result.verdict.compared}"
        )
        return result

    def _measure_latency(
        self, workload: Workload, contender: Contender, tuning: Tuning, seconds: float
    ) -> LatencyResult:
        partitions = self._plan.partitions
        return measure_latency(self._arena, workload, partitions, contender, tuning, self._label(), seconds)

    def _best_of(self, contender: Contender) -> Tuning:
        return self._best.get(contender.name, default_tuning(contender))

    def _label(self) -> str:
        return str(next(self._numbers))

    def _settings(self, contender: Contender, tuning: Tuning, workload: Workload) -> dict[str, str]:
        return contender.settings(Route.through(self._arena, workload, workload.name, ""), tuning)
