"""Clusters that are far apart: which lines are played, and the table of what both mirrors bring over them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from lab.distance import Distance

from bench.copying import CopyResult
from bench.report import Chapter, Entry

ROUND_TRIPS_MS = (0.0, 40.0, 100.0, 250.0)
"""The first is the same way without any distance: what the others are compared with."""
NARROW = Distance(round_trip_ms=100.0, bytes_per_s=50e6)
TASKS = (1, 4)


def distances(round_trips_ms: Sequence[float], lines_mb_per_s: Sequence[float]) -> list[Distance]:
    """Every length with every bandwidth (0: no limit); if nothing is asked for, all lengths and `NARROW`."""
    if not round_trips_ms and not lines_mb_per_s:
        return [*map(Distance, ROUND_TRIPS_MS), NARROW]
    return [
        Distance(round_trip_ms, bytes_per_s=mb_per_s * 1e6)
        for mb_per_s in lines_mb_per_s or (0.0,)
        for round_trip_ms in round_trips_ms or (NARROW.round_trip_ms,)
    ]


def markdown(chapters: Sequence[Chapter]) -> str:
    """A table of all chapters that have a line; empty if none has."""
    far = [chapter for chapter in chapters if chapter.line is not None]
    if not far:
        return ""
    lines = [
        "| | round trip, ms | line, MB/s | `tasks.max` | throughput, MB/s | times better | of its own without distance "
        "| mirror's CPU s/GB | peak memory, MB | line's CPU s/GB | other things, cores | contents |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [_row(chapter, far) for chapter in far]
    return "\n".join(lines) + "\n"


def _row(chapter: Chapter, chapters: Sequence[Chapter]) -> str:
    line = chapter.line or Distance()
    entries = list(chapter.entries.values())
    near = next((other for other in chapters if _is_near(other, chapter)), None)
    rates = [_rate(entry) for entry in entries]
    near_rates = [_rate(near.entries[name]) for name in chapter.entries] if near else [None] * len(rates)
    shares = [
        "-" if not (rate and other) else f"{rate / other:.0%}" for rate, other in zip(rates, near_rates, strict=True)
    ]
    cells = (
        f"`{chapter.workload.name}`",
        f"{line.round_trip_ms:.0f}",
        f"{line.bytes_per_s / 1e6:.0f}" if line.bytes_per_s else "",
        str(entries[0].tuning.tasks),
        _both(rates, ".1f"),
        _ratio(rates),
        " / ".join(shares) if near is not None and near is not chapter else "",
        _both([_median(entry, lambda result: result.cpu_s_per_gb) for entry in entries], ".2f"),
        _both([_median(entry, lambda result: result.peak_memory_bytes / 1e6) for entry in entries], ",.0f"),
        _both([_median(entry, lambda result: result.lines_cpu_s_per_gb) for entry in entries], ".2f"),
        _both([_median(entry, lambda result: result.others_cores) for entry in entries], ".2f"),
        " / ".join(map(_contents, entries)),
    )
    return f"| {' | '.join(cells)} |"


def _is_near(other: Chapter, chapter: Chapter) -> bool:
    """Whether it is the same without any distance."""
    return other.line == Distance() and other.workload == chapter.workload and _tasks(other) == _tasks(chapter)


def _tasks(chapter: Chapter) -> list[int]:
    return [entry.tuning.tasks for entry in chapter.entries.values()]


def _rate(entry: Entry) -> float | None:
    return _median(entry, lambda result: result.mb_per_s)


def _ratio(rates: Sequence[float | None]) -> str:
    """The second rate over the first, if both are there."""
    there = [rate for rate in rates if rate]
    return f"{there[1] / there[0]:.1f}" if len(there) == 2 else ""


def _median(entry: Entry, figure: Callable[[CopyResult], float]) -> float | None:
    figures = [figure(result) for result in entry.rounds if isinstance(result, CopyResult)]
    return statistics.median(figures) if figures else None


def _both(figures: Sequence[float | None], form: str) -> str:
    return " / ".join("failed" if figure is None else format(figure, form) for figure in figures)


def _contents(entry: Entry) -> str:
    results = [result.verdict for result in entry.rounds]
    if any(verdict.difference for verdict in results):
        return "DIFFERENT"
    if not results:
        return "-"
    return "broken off" if any(verdict.compared.startswith("nothing") for verdict in results) else "equal"
