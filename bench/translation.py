"""Offset translation: every upstream offset against the truth, next to the real MirrorMaker 2 on the same topics.

The truth is read from both logs: the nth record of the source became the nth of the target, so whoever would read an
upstream offset next continues at the copy of the first record at or after it, and behind the last one at the log's end.

MirrorMaker 2 is asked through its own checkpoints: consumer groups are committed at offsets spread over each topic,
some before it starts and others when it has caught up, and what its MirrorCheckpointTask writes into
`<source>.checkpoints.internal` is its answer. That topic is all that `RemoteClusterUtils.translateOffsets` reads.
"""

from __future__ import annotations

import random
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from lab import KafkaCluster

from bench.offset_topics import CASES, Case, bounds, make, read, remote
from bench.translators import (
    EARLY,
    LATE,
    OURS_LATE,
    Checkpoints,
    TranslationFailed,
    copy_ours,
    group_offsets,
    our_answers,
    our_map,
    their_answers,
)
from sparkmirror.exact.maps.offset_map import OffsetMap

RECORDS = 50_000
LOOKUPS = 20_000


@dataclass(frozen=True, slots=True)
class Score:
    """How a number of translations compare with the truth."""

    asked: int
    exact: int
    unknown: int
    """No answer: the group begins where `auto.offset.reset` says."""
    read_twice: int
    """Records, by all groups together, of those that have an answer."""
    skipped: int
    """Records that an answer past the truth would lose."""

    def __add__(self, other: Score) -> Score:
        return Score(
            self.asked + other.asked,
            self.exact + other.exact,
            self.unknown + other.unknown,
            self.read_twice + other.read_twice,
            self.skipped + other.skipped,
        )


@dataclass(frozen=True, slots=True)
class MapFigures:
    """Our map of one partition."""

    runs: int
    bytes: int
    """What it holds of memory, by tracemalloc."""
    lookup_us: float
    """For one upstream offset, drawn at random."""


@dataclass(frozen=True, slots=True)
class TranslationResult:
    """One case."""

    case: Case
    ours: Score
    """Every upstream offset from the log's start to its end."""
    our_groups: Score
    """Where the groups of both times stand at the target, as `sync.group.offsets.enabled` has set them."""
    theirs: Mapping[str, Score]
    """By EARLY and LATE."""
    map: MapFigures


class Truth:
    """Where each upstream offset of a partition went, from the records of both logs. Raises TranslationFailed."""

    def __init__(self, source: KafkaCluster, target: KafkaCluster, case: Case, alias: str) -> None:
        theirs = read(source.bootstrap_servers, case.topic.name, committed=case.committed)
        copies = read(target.bootstrap_servers, remote(case, alias))
        for one, copy in zip(theirs, copies, strict=False):
            if (one.key, one.value, one.timestamp) != (copy.key, copy.value, copy.timestamp):
                raise TranslationFailed(f"{case.title}: offset {one.offset} differs from its copy at {copy.offset}")
        if len(theirs) != len(copies):
            raise TranslationFailed(f"{case.title}: {len(theirs)} records, {len(copies)} copied by {alias}")
        self._upstream = [one.offset for one in theirs]
        self.downstream = [one.offset for one in copies]
        self._end = bounds(target.bootstrap_servers, remote(case, alias))[1]

    def of(self, upstream: int) -> int:
        index = bisect_left(self._upstream, upstream)
        return self.downstream[index] if index < len(self.downstream) else self._end

    def score(self, answers: Iterable[tuple[int, int | None]]) -> Score:
        """Of (upstream, downstream) pairs; None: no answer."""
        total = Score(0, 0, 0, 0, 0)
        for upstream, answer in answers:
            total += self._score(upstream, answer)
        return total

    def _score(self, upstream: int, answer: int | None) -> Score:
        if answer is None:
            return Score(1, 0, 1, 0, 0)
        truth = self.of(upstream)
        between = bisect_left(self.downstream, truth) - bisect_left(self.downstream, answer)
        return Score(1, answer == truth, 0, max(between, 0), max(-between, 0))


def measure_translation(directory: Path, records: int, say: Callable[[str], None]) -> list[TranslationResult]:
    """Make the topics in clusters of our own, have both mirrors copy them, and ask both.

    Raises TranslationFailed if a copy is not right.
    """
    source, target = KafkaCluster(directory / "source"), KafkaCluster(directory / "target")
    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(KafkaCluster.start, (source, target)))
        topics = {case.topic.name: case.topic for case in CASES}
        for name, topic in topics.items():
            say(f"writing {name}")
            make(source.bootstrap_servers, topic, records)
        say("sparkmirror copies")
        copy_ours(source, target, directory)
        maps = [our_map(target, case) for case in CASES]
        say("MirrorMaker 2 copies")
        answers = their_answers(source, target, directory, say)
        return [_result(source, target, case, *ours, answers) for case, ours in zip(CASES, maps, strict=True)]
    finally:
        for cluster in (source, target):
            cluster.cleanup(keep_logs=True)


def _result(
    source: KafkaCluster,
    target: KafkaCluster,
    case: Case,
    offsets: OffsetMap,
    held: int,
    answers: Checkpoints,
) -> TranslationResult:
    start, end = bounds(source.bootstrap_servers, case.topic.name)
    truth = Truth(source, target, case, case.ours)
    with offsets:
        ours = truth.score((upstream, offsets.downstream(upstream)) for upstream in range(start, end + 1))
        figures = MapFigures(len(offsets), held, _lookup_us(offsets, start, end))
    stands = group_offsets(start, end)
    groups = (zip(stands, our_answers(target, case, when), strict=True) for when in (EARLY, OURS_LATE))
    our_groups = truth.score(chain.from_iterable(groups))
    truth = Truth(source, target, case, case.theirs)
    theirs = {}
    for when in (EARLY, LATE):
        found = []
        for number, upstream in enumerate(stands):
            answer = answers.get((case.theirs, f"{when}-{number}", remote(case, case.theirs)))
            found.append((upstream, answer[1] if answer is not None and answer[0] == upstream else None))
        theirs[when] = truth.score(found)
    return TranslationResult(case, ours, our_groups, theirs, figures)


def _lookup_us(offsets: OffsetMap, start: int, end: int) -> float:
    drawn = random.Random(0)
    asked = [drawn.randrange(start, end + 1) for _ in range(LOOKUPS)]
    began = time.process_time()
    for upstream in asked:
        offsets.downstream(upstream)
    return (time.process_time() - began) / LOOKUPS * 1e6


def markdown(results: Sequence[TranslationResult]) -> str:
    """Two tables: how right both are, and what our map costs."""
    lines = [
        "| topic | sparkmirror: offsets, exact | groups, exact | read twice | skipped "
        "| MirrorMaker 2: groups, committed | exact | no answer | read twice | skipped |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        groups = result.our_groups
        ours = (
            f"{result.ours.asked:,}, {_share(result.ours)} | {groups.asked}, {_share(groups)} "
            f"| {groups.read_twice:,} | {groups.skipped:,}"
        )
        for when, score in result.theirs.items():
            place = "before the copying" if when == EARLY else "after it"
            lines.append(
                f"| {result.case.title} | {ours} | {score.asked}, {place} | {_share(score)} | {score.unknown} "
                f"| {score.read_twice:,} | {score.skipped:,} |"
            )
    lines += ["", "| sparkmirror's map of | runs | memory, kB | µs for a lookup |", "|---|---|---|---|"]
    lines += [
        f"| {result.case.title} | {result.map.runs:,} | {result.map.bytes / 1e3:,.1f} | {result.map.lookup_us:.1f} |"
        for result in results
    ]
    return "\n".join(lines) + "\n"


def _share(score: Score) -> str:
    return f"{score.exact / score.asked:.1%}" if score.exact < score.asked else "100 %"
