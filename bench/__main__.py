"""`python -m bench`: the options, and the course of a run."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from bench import far, groups, idling, observing, report, rows, walking
from bench.accounting import find_accounting
from bench.arena import Arena
from bench.contenders import CONTENDERS, Contender, ContenderFailed
from bench.contest import Contest, Plan
from bench.planner import PARTITIONS, TASKS, measure_planner
from bench.producing import TOOLS, ProducingFailed
from bench.report import Chapter
from bench.translation import RECORDS, markdown, measure_translation
from bench.workloads import WORKLOADS
from sparkmirror.demo.jars import MIRROR_MAKER, class_path
from sparkmirror.errors import SparkMirrorError

PRINTED_WIDTH = 120
PLACE = Path(__file__).resolve().parent.parent / ".cache" / "bench"


def main() -> int:
    """Run what is asked for. 0: all measured, all copies right; 1: not so; 3: this machine lacks something."""
    options = _options()
    if options.planner:
        return _plan_alone(options)
    if options.groups:
        return _tabulate(options, lambda place, say: (groups.markdown(groups.measure_groups(place, say)), True))
    if options.observing:
        return _observe(options)
    if options.idle:
        return _idle(options)
    if options.rows:
        return _read_rows(options)
    if options.walk:
        return _tabulate(options, lambda _, say: (walking.table(*walking.measure_walking(say)), True))
    return _translate(options) if options.offsets else _compete(options)


def _plan_alone(options: argparse.Namespace) -> int:
    results = measure_planner(options.rounds)
    report.show_planner(Console(), results)
    report.write_planner(options.json or report.default_file(PLACE), results, sys.argv[1:])
    return 0


def _translate(options: argparse.Namespace) -> int:
    def measure(place: Path, say: Callable[[str], None]) -> tuple[str, bool]:
        results = measure_translation(place, options.records, say)
        return markdown(results), all(result.ours.exact == result.ours.asked for result in results)

    return _tabulate(options, measure)


def _observe(options: argparse.Namespace) -> int:
    def measure(place: Path, say: Callable[[str], None]) -> tuple[str, bool]:
        accounting = find_accounting()
        say(f"CPU seconds by {accounting.kind}")
        class_path(TOOLS)
        with Arena(place, accounting, options.gb, options.patience) as arena:
            courses = observing.measure_observing(arena, options.gb, options.rounds, options.partitions, say)
        return observing.markdown(courses), True

    return _tabulate(options, measure)


def _idle(options: argparse.Namespace) -> int:
    def measure(place: Path, say: Callable[[str], None]) -> tuple[str, bool]:
        accounting = find_accounting()
        say(f"CPU seconds by {accounting.kind}")
        class_path(MIRROR_MAKER)
        with Arena(place, accounting, options.gb, options.patience) as arena:
            return idling.markdown(idling.measure_idleness(arena, _contenders(options), options.idle, say)), True

    return _tabulate(options, measure)


def _read_rows(options: argparse.Namespace) -> int:
    def measure(place: Path, say: Callable[[str], None]) -> tuple[str, bool]:
        accounting = find_accounting()
        say(f"CPU seconds by {accounting.kind}")
        class_path(TOOLS)
        with Arena(place, accounting, options.rows * 1.1e-6, options.patience) as arena:
            return rows.markdown(rows.measure_rows(arena, options.rows, options.partitions, say)), True

    return _tabulate(options, measure)


def _tabulate(options: argparse.Namespace, measure: Callable[[Path, Callable[[str], None]], tuple[str, bool]]) -> int:
    """Measure in a directory that is gone afterwards; print the table that is found, and keep it."""
    console = Console(stderr=True, soft_wrap=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    say = _sayer(console)
    options.directory.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=options.directory) as directory:
            table, right = measure(Path(directory), say)
    except (SparkMirrorError, ProducingFailed, ContenderFailed) as error:
        console.print(f"bench: {error}", style="red", highlight=False)
        return getattr(error, "exit_code", 1)
    file = report.default_file(PLACE).with_suffix(".md")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(table)
    sys.stdout.write(table)
    say(f"the table is in {file}")
    return 0 if right else 1


def _sayer(console: Console) -> Callable[[str], None]:
    """Lines with the seconds since now in front."""
    began = time.monotonic()
    return lambda line: console.print(f"[dim]{time.monotonic() - began:6.0f} s[/dim]  {line}", highlight=False)


def _compete(options: argparse.Namespace) -> int:
    console = Console(stderr=True, soft_wrap=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    say = _sayer(console)
    accounting = find_accounting()
    say(f"CPU seconds by {accounting.kind}")
    chapters: list[Chapter] = []
    try:
        for coordinates in (MIRROR_MAKER, TOOLS):
            class_path(coordinates)
        workloads = [WORKLOADS[name] for name in options.workload]
        has_lines = any(workload.far_side for workload in workloads)
        with Arena(options.directory, accounting, options.gb, options.patience, has_lines=has_lines) as arena:
            contest = Contest(arena, _plan(options), say)
            for workload in workloads:
                for chapter in contest.run(workload):
                    chapters.append(chapter)  # noqa: PERF402 - so that what was measured is kept if a later one fails
    except (SparkMirrorError, ProducingFailed) as error:
        console.print(f"bench: {error}", style="red", highlight=False)
        return getattr(error, "exit_code", 1)
    finally:
        if chapters:
            file = options.json or report.default_file(PLACE)
            report.write(file, chapters, accounting.kind, sys.argv[1:])
            report.show(Console(width=None if sys.stdout.isatty() else PRINTED_WIDTH), chapters)
            sys.stdout.write(far.markdown(chapters))
            say(f"everything is in {file}")
    return 0 if all(chapter.good for chapter in chapters) else 1


def _plan(options: argparse.Namespace) -> Plan:
    return Plan(
        contenders=_contenders(options),
        gigabytes=options.gb,
        rounds=options.rounds,
        partitions=options.partitions,
        latency_s=options.seconds,
        sweep=options.sweep,
        verify=options.verify,
        distances=far.distances(options.round_trip or (), options.line or ()),
        far_tasks=options.tasks or far.TASKS,
    )


def _contenders(options: argparse.Namespace) -> list[Contender]:
    return [one for one in CONTENDERS if options.only in (None, one.name)]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure sparkmirror against the real MirrorMaker 2 on this machine."
    )
    parser.add_argument(
        "--workload", action="append", choices=WORKLOADS, help="one of these, can be repeated (all of them)"
    )
    parser.add_argument("--gb", type=float, help="10^9 bytes of record batches to copy in a round (4)")
    parser.add_argument("--rounds", type=int, help="how often each of the two runs (3)")
    parser.add_argument("--seconds", type=float, help="how long latency is measured (45 to 90, by workload)")
    parser.add_argument(
        "--round-trip",
        type=float,
        action="append",
        metavar="MS",
        help="of the line of far-source and far-target, can be repeated (0, 40, 100, 250)",
    )
    parser.add_argument(
        "--line", type=float, action="append", metavar="MB/S", help="its bandwidth, 0: no limit (0, and 50 at 100 ms)"
    )
    parser.add_argument(
        "--tasks", type=int, action="append", help="tasks.max of both over the line, can be repeated (1, 4)"
    )
    parser.add_argument("--partitions", type=int, default=8, help="of each topic (8)")
    parser.add_argument(
        "--sweep", action=argparse.BooleanOptionalAction, help="look for each one's best settings first (yes)"
    )
    parser.add_argument(
        "--verify", action="store_true", help="measure `sparkmirror verify`, too, on each of our copies"
    )
    parser.add_argument("--quick", action="store_true", help="0.5 GB, one round, 15 s, no sweep: to try it out")
    parser.add_argument(
        "--planner",
        action="store_true",
        help=f"measure nothing but the planner, {PARTITIONS:,} partitions on {TASKS} tasks",
    )
    parser.add_argument(
        "--offsets", action="store_true", help="measure nothing but the translation of offsets, of both mirrors"
    )
    parser.add_argument(
        "--groups",
        action="store_true",
        help=f"measure nothing but what {groups.GROUPS:,} consumer groups cost",
    )
    parser.add_argument(
        "--observing",
        action="store_true",
        help="measure nothing but what it costs to be watched, at full load and idle",
    )
    parser.add_argument(
        "--idle",
        type=int,
        action="append",
        metavar="PARTITIONS",
        help="measure nothing but idle mirrors with so many partitions, can be repeated",
    )
    parser.add_argument(
        "--walk", action="store_true", help="measure nothing but the compiled walk over records next to Python's"
    )
    parser.add_argument(
        "--rows",
        type=int,
        nargs="?",
        const=rows.RECORDS,
        metavar="RECORDS",
        help=f"measure nothing but topics read as tables, next to Spark's own source ({rows.RECORDS:,})",
    )
    parser.add_argument("--records", type=int, default=RECORDS, help=f"of each topic with --offsets ({RECORDS:,})")
    parser.add_argument("--only", choices=[one.name for one in CONTENDERS], help="measure one of the two")
    parser.add_argument(
        "--patience", type=float, default=20.0, metavar="S", help="before each round, wait for a quiet machine (20)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help=f"where results go ({PLACE.name}/<time>.json)")
    parser.add_argument("--directory", type=Path, default=PLACE, help="where the clusters' logs are kept meanwhile")
    options = parser.parse_args()
    for name, usual, quick in (("gb", 4.0, 0.5), ("rounds", 3, 1), ("seconds", None, 15.0), ("sweep", True, False)):
        if getattr(options, name) is None:
            setattr(options, name, quick if options.quick else usual)
    options.workload = options.workload or list(WORKLOADS)
    return options


if __name__ == "__main__":
    sys.exit(main())
