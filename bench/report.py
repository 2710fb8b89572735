"""What was found: a table for people, and everything as JSON."""

from __future__ import annotations

import json
import platform
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import psutil
from lab.distance import Distance
from rich.console import Console
from rich.table import Table

from bench.arena import BROKER_HEAP_MB, BROKER_SETTINGS, KAFKA_JVM_OPTIONS, SOURCE_SETTINGS, TARGET_SETTINGS
from bench.contenders import CONTENDERS, MIRROR_MAKER_HEAP, Tuning
from bench.copying import CopyResult
from bench.datasets import Dataset
from bench.latency import LatencyResult
from bench.planner import FLOWS, LEADERS, PARTITIONS, TASKS, PlannerResult
from bench.tuning import LatencyTry, Try, describe
from bench.workloads import Workload
from sparkmirror import __version__
from sparkmirror.demo.jars import BROKER_VERSION

Result = CopyResult | LatencyResult


@dataclass(slots=True)
class Entry:
    """One contender's part in a workload; `failures` are rounds without a result."""

    tuning: Tuning
    settings: Mapping[str, str]
    sweep: Sequence[Try | LatencyTry] = ()
    rounds: list[Result] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Chapter:
    """One workload: its data, and what both did with it; `line` is what the far cluster is far by, if one is."""

    workload: Workload
    data: Dataset | None
    entries: dict[str, Entry] = field(default_factory=dict)
    line: Distance | None = None

    @property
    def good(self) -> bool:
        """Whether every round has a result, and every copy was right."""
        return all(
            not entry.failures and all(not result.verdict.difference for result in entry.rounds)
            for entry in self.entries.values()
        )


@dataclass(frozen=True, slots=True)
class _Row:
    title: str
    figure: Callable[[Result], float]
    form: str
    """How it is printed."""
    more_is_better: bool = False
    compared: bool = True
    only_with: str = ""
    """A field of the workload without which the row says nothing."""
    optional: bool = False
    """Left out where nobody has measured it."""


def _of(name: str, scale: float = 1.0) -> Callable[[Result], float]:
    return lambda result: float(getattr(result, name)) * scale


_COPY_ROWS = (
    _Row("throughput, MB/s", _of("mb_per_s"), ".1f", more_is_better=True),
    _Row("records/s", _of("records_per_s"), ",.0f", more_is_better=True),
    _Row("mirror's CPU s per GB", _of("cpu_s_per_gb"), ".2f"),
    _Row("brokers' CPU s per GB", _of("brokers_cpu_s_per_gb"), ".2f"),
    _Row("peak memory, MB", _of("peak_memory_bytes", 1e-6), ".0f"),
    _Row("start to finish, s", _of("total_s"), ".1f"),
    _Row("mirror's CPU s, start to finish", _of("total_cpu_s"), ".1f"),
    _Row("size of the copy, MB", _of("target_bytes", 1e-6), ",.0f"),
    _Row("offset map, kB per GB", _of("map_bytes_per_gb", 1e-3), ",.1f"),
    _Row("verify of the whole copy, start to finish, s", _of("verify_s"), ".1f", compared=False, optional=True),
    _Row("verify's CPU s", _of("verify_cpu_s"), ".1f", compared=False, optional=True),
    _Row("line's CPU s per GB", _of("lines_cpu_s_per_gb"), ".2f", compared=False, optional=True),
    _Row("cores busy with other things", _of("others_cores"), ".2f", compared=False),
)
_LATENCY_ROWS = (
    _Row("latency p50, ms", _of("p50_ms"), ".1f"),
    _Row("latency p99, ms", _of("p99_ms"), ".1f"),
    _Row("latency p99 away from seams, ms", _of("p99_between_seams_ms"), ".1f", only_with="seams"),
    _Row("latency max, ms", _of("max_ms"), ".1f"),
    _Row("mirror's CPU, % of a core", _of("cpu_share", 100), ".1f"),
    _Row("brokers' CPU, % of a core", _of("brokers_cpu_share", 100), ".1f"),
    _Row("peak memory, MB", _of("peak_memory_bytes", 1e-6), ".0f"),
    _Row("start to first record, s", _of("first_record_s"), ".1f"),
    _Row("start to all records of all partitions, s", _of("caught_up_s"), ".1f", only_with="idle_partitions"),
    _Row("offset map, kB per GB", _of("map_bytes_per_gb", 1e-3), ",.1f"),
    _Row("records/s", _of("records_per_s"), ",.0f", compared=False),
    _Row("not yet read by the measurer, most", _of("unread_records"), ",.0f", compared=False),
    _Row("cores busy with other things", _of("others_cores"), ".2f", compared=False),
)


def show(console: Console, chapters: Sequence[Chapter]) -> None:
    """Print a table for each workload: medians of the rounds, the range where there are several."""
    for chapter in chapters:
        console.print(_title(chapter), highlight=False)
        table = Table()
        table.add_column("median (range)")
        for name in chapter.entries:
            table.add_column(name, justify="right")
        table.add_column("times better", justify="right")
        for row in _rows(chapter.workload):
            figures = [[row.figure(result) for result in entry.rounds] for entry in chapter.entries.values()]
            if row.optional and not any(map(any, figures)):
                continue
            table.add_row(row.title, *(_spread(values, row.form) for values in figures), _ratio(row, figures))
        table.add_row("contents", *(_verdict(entry) for entry in chapter.entries.values()), "")
        console.print(table)
        for contender in CONTENDERS:
            if contender.name in chapter.entries:
                entry = chapter.entries[contender.name]
                console.print(f"{contender.name}: {describe(contender, entry.tuning)}", highlight=False)
                for result in entry.rounds[-1:]:
                    console.print(f"  compared: {result.verdict.compared}", highlight=False)
                for wrong in filter(None, (result.verdict.difference for result in entry.rounds)):
                    console.print(f"  [red]different:[/red] {wrong}", highlight=False)
                for failure in entry.failures:
                    console.print(f"  [red]failed:[/red] {failure}", highlight=False)
        console.print()


def _rows(workload: Workload) -> list[_Row]:
    rows = _LATENCY_ROWS if workload.is_paced else _COPY_ROWS
    return [row for row in rows if not row.only_with or getattr(workload, row.only_with)]


def show_planner(console: Console, results: Sequence[PlannerResult]) -> None:
    """Print a table: a row for each kind of plan."""
    console.print(f"planner: {PARTITIONS:,} partitions, {TASKS} tasks, {FLOWS} flows, {LEADERS} source leaders")
    table = Table()
    for title in ("median (range)", "CPU s", "partitions moved", "heaviest task / mean"):
        table.add_column(title, justify="left" if title.startswith("median") else "right")
    for result in results:
        table.add_row(
            result.what,
            _spread(result.cpu_s, ".2f"),
            _spread(result.moved, ",.0f"),
            _spread(result.imbalance, ".2f"),
        )
    console.print(table)


def write(file: Path, chapters: Sequence[Chapter], accounting: str, command: Sequence[str]) -> None:
    """Write everything: environment, settings, data, sweeps, every round."""
    workloads = [_chapter(chapter) for chapter in chapters]
    _write(file, command, {"environment": environment(accounting), "workloads": workloads})


def write_planner(file: Path, results: Sequence[PlannerResult], command: Sequence[str]) -> None:
    """Write every round of the planner's."""
    planner = {
        "partitions": PARTITIONS,
        "tasks": TASKS,
        "flows": FLOWS,
        "leaders": LEADERS,
        "plans": list(map(asdict, results)),
    }
    _write(file, command, {"environment": _machine(), "planner": planner})


def _write(file: Path, command: Sequence[str], what: Mapping[str, object]) -> None:
    at = datetime.now(UTC).isoformat(timespec="seconds")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"at": at, "command": ["python", "-m", "bench", *command], **what}, indent=1))


def environment(accounting: str) -> dict[str, object]:
    """What the figures depend on, other than the settings of both."""
    return {
        **_machine(),
        "kafka": BROKER_VERSION,
        "cpu_seconds_by": accounting,
        "memory_by": "sum of PSS of all processes, sampled each second",
        "brokers": {
            "heap_mb": BROKER_HEAP_MB,
            "jvm": KAFKA_JVM_OPTIONS,
            "source": {**BROKER_SETTINGS, **SOURCE_SETTINGS},
            "target": {**BROKER_SETTINGS, **TARGET_SETTINGS},
        },
        "mirror_maker_jvm": [*MIRROR_MAKER_HEAP, *KAFKA_JVM_OPTIONS],
    }


def _machine() -> dict[str, object]:
    return {
        "cores": psutil.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "processor": _processor(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "sparkmirror": __version__,
    }


def default_file(place: Path) -> Path:
    """A new name for this moment."""
    return place / f"{datetime.now(UTC):%Y-%m-%d-%H%M%S}.json"


def _title(chapter: Chapter) -> str:
    title = f"{chapter.workload.name}: {chapter.workload.what}"
    if chapter.line is not None:
        title = f"{title}; {line_in_words(chapter.line)}"
    if chapter.data is None:
        return title
    data = chapter.data
    return (
        f"{title}; {data.wire_bytes / 1e9:.2f} GB on the wire, {data.records:,} records, {data.partitions} partitions, "
        f"{data.batch_bytes / 1e3:.0f} kB and {data.batch_records:.0f} records a batch"
    )


def line_in_words(line: Distance) -> str:
    """The length and bandwidth of a line."""
    width = f", {line.bytes_per_s / 1e6:.0f} MB/s each way" if line.bytes_per_s else ""
    return f"{line.round_trip_ms:.0f} ms round trip{width}"


def _spread(values: Sequence[float], form: str) -> str:
    if not values:
        return "-"
    middle = format(statistics.median(values), form)
    return middle if len(values) == 1 else f"{middle} ({min(values):{form}}-{max(values):{form}})"


def _ratio(row: _Row, figures: Sequence[Sequence[float]]) -> str:
    if not row.compared or len(figures) < 2 or not all(figures):
        return ""
    theirs, ours = (statistics.median(values) for values in figures)
    above, below = (ours, theirs) if row.more_is_better else (theirs, ours)
    return f"{above / below:.2f}" if below else ""


def _verdict(entry: Entry) -> str:
    wrong = [result.verdict.difference for result in entry.rounds if result.verdict.difference]
    if wrong:
        return "DIFFERENT"
    return "equal" if entry.rounds else "-"


def _chapter(chapter: Chapter) -> dict[str, object]:
    data = chapter.data
    return {
        "name": chapter.workload.name,
        "what": chapter.workload.what,
        "source_producer": {
            "batch.size": chapter.workload.batching.batch_bytes,
            "linger.ms": chapter.workload.batching.linger_ms,
            "acks": "all",
        },
        "data": None
        if data is None
        else {key: value for key, value in asdict(data).items() if key not in {"workload", "topic", "contents"}},
        "line": None if chapter.line is None else asdict(chapter.line),
        "contenders": {name: asdict(entry) for name, entry in chapter.entries.items()},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
