"""How cost grows with partitions, tasks and Spark workers: real brokers, each mirror started once for a size.

Each partition has one record. A size is measured from the start of the process until all are copied, and idle
afterwards.
"""

from __future__ import annotations

import http.client
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from bench.accounting import Account
from bench.arena import Arena
from bench.company import create_idle
from bench.contenders import ContenderFailed, RunningMirror, SparkMirror, no_duties
from bench.growth_on_paper import OnPaper, median_plan_s, on_paper, reckoned
from bench.idling import idle_cores
from bench.memory import MemoryWatch
from bench.sizes import PAPER_SIZES, TOPICS, Size
from bench.tuning import Say
from sparkmirror.demo.ports import free_ports
from sparkmirror.demo.spark_cluster import standalone_cluster
from sparkmirror.engine.pack import write_pack

GIGABYTES = 1.0
"""Room that is asked for; the logs hold next to nothing."""
COPIED_S = 180.0
"""Longest wait for the copies of a size."""
ALL_S = 840.0
"""No further size is begun after this."""
SETTLING_S = 10.0
"""After the last record was copied."""
WINDOW_S = 20.0
_SCRAPES = 5
_POLL_S = 0.2
_ANSWER_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Grown:
    """What a size took on real brokers."""

    size: Size
    copied_s: float
    """From the start of the process to the last record."""
    cores: float
    """Idle, all processes of the mirror."""
    brokers_cores: float
    peak_memory_bytes: int
    """Sum of the processes' proportional set sizes, the start and Spark's own daemons included."""
    processes: int
    planned_s: float
    """CPU seconds of the planner alone, for as many partitions, tasks and flows."""
    scrape_bytes: int
    scrape_s: float


@dataclass(slots=True)
class Growth:
    """All that was measured; `failures` are sizes without figures, and why."""

    real: list[Grown] = field(default_factory=list)
    paper: list[OnPaper] = field(default_factory=list)
    failures: list[tuple[Size, str]] = field(default_factory=list)


def measure_growth(arena: Arena, sizes: Sequence[Size], say: Say) -> Growth:
    """Measure each size on the arena's brokers, and those on paper."""
    began = time.monotonic()
    growth = Growth()
    partitions, topics = 0, list[str]()
    with tempfile.TemporaryDirectory(dir=arena.directory) as place:
        for number, size in enumerate(sizes):
            if time.monotonic() - began > ALL_S:
                growth.failures.append((size, f"left out: {ALL_S:.0f} s were over"))
                continue
            say(f"{size}")
            if size.partitions != partitions:
                arena.source.delete_topics(topics)
                partitions = size.partitions
                topics = create_idle(arena.source, f"grown{number}", partitions, 1, topics=TOPICS)
            try:
                grown = _measure(arena, size, f"{number}", topics, Path(place))
            except ContenderFailed as error:
                say(f"  {error}")
                growth.failures.append((size, str(error).partition(";")[0]))
                continue
            growth.real.append(grown)
            say(f"  {grown.copied_s:.1f} s, {grown.cores:.2%} of a core, {grown.peak_memory_bytes / 1e6:.0f} MB")
    say("without brokers")
    growth.paper += map(on_paper, PAPER_SIZES)
    return growth


class _Scraped(SparkMirror):
    """Ours, with its metrics on a port."""

    def __init__(self, port: int) -> None:
        self.port = port

    def command(self, file: Path) -> list[str]:
        return [*super().command(file), "--metrics-port", str(self.port)]


def _measure(arena: Arena, size: Size, label: str, topics: Sequence[str], place: Path) -> Grown:
    contender = _Scraped(*free_ports(1))
    account = arena.accounting.open(f"mirror-{label}")
    directory = arena.directory / f"mirror-{label}"
    try:
        with _spark(size, place / label, place / "sparkmirror.tar.gz", account) as spark:
            arena.settle()
            settings = {**_settings(arena, size, label, topics), **spark}
            with (
                RunningMirror(contender, settings, directory, account) as mirror,
                MemoryWatch(account) as memory,
            ):
                _wait_for_copies(arena, mirror, [f"s{label}.{topic}" for topic in topics], size.partitions)
                copied_s = time.monotonic() - mirror.started
                cores, brokers = idle_cores(arena, mirror, SETTLING_S, WINDOW_S)
                scrapes = [_scrape(contender.port) for _ in range(_SCRAPES)]
                processes = len(account.pids())
    finally:
        arena.target.delete_topics()
    return Grown(
        size=size,
        copied_s=copied_s,
        cores=cores,
        brokers_cores=brokers,
        peak_memory_bytes=memory.peak_bytes,
        processes=processes,
        planned_s=median_plan_s(size),
        scrape_bytes=scrapes[-1][0],
        scrape_s=statistics.median(seconds for _, seconds in scrapes),
    )


@contextmanager
def _spark(size: Size, directory: Path, archive: Path, account: Account) -> Iterator[Mapping[str, str]]:
    """Settings for a standalone cluster of the size, whose daemons count for the mirror; none for local Spark."""
    if not size.workers:
        yield {}
        return
    if not archive.exists():
        write_pack(archive)
    directory.mkdir()
    before = {child.pid for child in psutil.Process().children()}
    with standalone_cluster(directory, archive=archive, workers=size.workers) as settings:
        for child in psutil.Process().children():
            if child.pid not in before:
                account.adopt(child.pid)
        yield settings


def _settings(arena: Arena, size: Size, label: str, topics: Sequence[str]) -> dict[str, str]:
    source, target = f"s{label}", f"t{label}"
    return {
        "clusters": f"{source}, {target}",
        f"{source}.bootstrap.servers": arena.source.servers,
        f"{target}.bootstrap.servers": arena.target.servers,
        f"{source}->{target}.enabled": "true",
        f"{source}->{target}.topics": ", ".join(topics),
        "tasks.max": str(size.tasks),
        **no_duties(target),
    }


def _wait_for_copies(arena: Arena, mirror: RunningMirror, topics: Sequence[str], records: int) -> None:
    """Wait topic by topic: the question should cost the target little."""
    deadline = time.monotonic() + COPIED_S
    copied = 0
    for number, topic in enumerate(topics):
        expected = len(range(number, records, len(topics)))
        while (there := sum(arena.target.end_offsets(topic).values())) < expected:
            mirror.check()
            if time.monotonic() > deadline:
                raise mirror.failure(f"has copied {copied + there} of {records} records within {COPIED_S:.0f} s")
            time.sleep(_POLL_S)
        copied += there


def _scrape(port: int) -> tuple[int, float]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_ANSWER_S)
    try:
        began = time.monotonic()
        connection.request("GET", "/metrics")
        size = len(connection.getresponse().read())
        return size, time.monotonic() - began
    finally:
        connection.close()


def markdown(growth: Growth) -> str:
    """Three tables: real brokers, none, and what follows."""
    lines = [
        "| partitions | `tasks.max` | flows | Spark | start to all copied, s | idle, of a core "
        "| its brokers, of a core | peak memory, MB | processes | a plan, CPU ms | a scrape, kB | a scrape, ms |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in growth.real:
        cells = (
            *_cells(one.size),
            f"{one.copied_s:.1f}",
            f"{one.cores:.1%}",
            f"{one.brokers_cores:.1%}",
            f"{one.peak_memory_bytes / 1e6:,.0f}",
            f"{one.processes}",
            _ms(one.planned_s),
            f"{one.scrape_bytes / 1e3:,.0f}",
            _ms(one.scrape_s),
        )
        lines.append(f"| {' | '.join(cells)} |")
    lines += [f"| {' | '.join(_cells(size))} | {why} | | | | | | | |" for size, why in growth.failures]
    lines += [
        "",
        "| without brokers: partitions | `tasks.max` | flows | a plan, CPU ms | a scrape, kB | a scrape, CPU ms |",
        "|---|---|---|---|---|---|",
    ]
    for other in growth.paper:
        scrape = f"{other.scrape_bytes / 1e3:,.0f}"
        cells = (*_cells(other.size)[:3], _ms(other.planned_s), scrape, _ms(other.scrape_s))
        lines.append(f"| {' | '.join(cells)} |")
    if rows := reckoned(growth.real, growth.paper):
        lines += ["", "| 100,000 partitions and 10 GB/s, on paper | |", "|---|---|"]
        lines += [f"| {what} | {figure} |" for what, figure in rows]
    return "\n".join(lines) + "\n"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:,.1f}" if seconds >= 1e-3 else f"{seconds * 1e3:.2f}"


def _cells(size: Size) -> tuple[str, ...]:
    spark = f"{size.workers} workers" if size.workers > 1 else "1 worker" if size.workers else "local"
    return f"{size.partitions:,}", f"{size.tasks}", f"{size.flows}", spark
