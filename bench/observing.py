"""What it costs to be watched: metrics scraped every 5 s and a page open, next to the same mirror with nobody looking.

Both take turns in one run of one mirror: at full load, and idle with a thousand partitions. The driver process alone
does what is asked for; its own CPU seconds are told next to those of the whole mirror, which scatter more.
"""

from __future__ import annotations

import http.client
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import psutil

from bench.arena import Arena
from bench.company import IDLE_RECORDS, create_idle
from bench.contenders import Route, RunningMirror, SparkMirror, Tuning
from bench.datasets import Dataset, dataset
from bench.latency import wait_for_records
from bench.tuning import Say, default_tuning
from bench.workloads import WORKLOADS, Workload
from sparkmirror.demo.ports import free_ports
from sparkmirror.look.metrics.profile import Profile

SCRAPE_EVERY_S = 5.0
LOAD_WINDOW_S = 5.0
IDLE_WINDOW_S = 20.0
IDLE_PARTITIONS = 1_000
IDLE_WINDOWS = 12
SETTLING_S = 30.0
"""After the last idle record was copied: what a start brings with it is over."""
WARM_SHARE = 0.1
_ANSWER_S = 30.0
_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Span:
    """One window: seconds, 10^9 bytes copied, CPU seconds of the whole mirror and of its driver process."""

    watched: bool
    seconds: float
    gigabytes: float
    cpu_s: float
    driver_cpu_s: float


@dataclass(slots=True)
class Course:
    """All windows of one kind; `scrapes` are the bytes of each answer to Prometheus."""

    what: str
    spans: list[Span] = field(default_factory=list)
    scrapes: list[int] = field(default_factory=list)
    events_bytes: int = 0

    def median(self, of: Callable[[Span], float], *, watched: bool) -> float:
        """Of all windows of that kind."""
        return statistics.median(of(span) for span in self.spans if span.watched is watched)

    @property
    def driver_cores(self) -> float:
        """What watching adds to the driver process, in cores."""
        return self.median(_driver_cores, watched=True) - self.median(_driver_cores, watched=False)

    @property
    def share(self) -> float:
        """What watching adds to the driver process, of all that the mirror takes when nobody looks."""
        return self.driver_cores / self.median(_cores, watched=False)


def _cores(span: Span) -> float:
    return span.cpu_s / span.seconds


def _driver_cores(span: Span) -> float:
    return span.driver_cpu_s / span.seconds


def _per_gb(span: Span) -> float:
    return span.cpu_s / span.gigabytes


class _Watched(SparkMirror):
    """Ours, with all names there are on a port."""

    def __init__(self, port: int) -> None:
        self.port = port

    def command(self, file: Path) -> list[str]:
        profiles = [part for profile in Profile for part in ("--metrics-profile", profile.value)]
        return [*super().command(file), "--metrics-port", str(self.port), *profiles]


def measure_observing(arena: Arena, gigabytes: float, rounds: int, partitions: int, say: Say) -> list[Course]:
    """Watch and look away in turns. Raises `ContenderFailed` if the mirror ends or stalls."""
    return [_under_load(arena, gigabytes, rounds, partitions, say), _idle(arena, say)]


def _under_load(arena: Arena, gigabytes: float, rounds: int, partitions: int, say: Say) -> Course:
    workload = WORKLOADS["json-lz4"]
    course = Course(f"full load, {workload.what}, {partitions} partitions")
    say(f"making {gigabytes:g} GB")
    with dataset(arena, workload, gigabytes, partitions) as data:
        for number in range(rounds):
            say(f"full load, round {number + 1} of {rounds}")
            _copy_once(arena, data, f"load{number}", course, first_watched=number % 2 == 0)
    return course


def _copy_once(arena: Arena, data: Dataset, label: str, course: Course, *, first_watched: bool) -> None:
    route = Route.through(arena, data.workload, data.topic, label)

    def copied() -> int:
        return sum(arena.target.end_offsets(route.target_topic).values())

    with _running(arena, route, default_tuning(SparkMirror())) as (mirror, watcher):
        wait_for_records(arena, mirror, [route.target_topic], int(data.records * WARM_SHARE), _POLL_S)
        watched = first_watched
        while True:
            span = _span(mirror, watcher, copied, data.bytes_per_record, LOAD_WINDOW_S, watched=watched)
            if copied() >= data.records:  # its window was not at full load to the end
                break
            course.spans.append(span)
            watched = not watched
    course.scrapes += watcher.scrapes
    course.events_bytes += watcher.events_bytes


def _idle(arena: Arena, say: Say) -> Course:
    course = Course(f"idle, {IDLE_PARTITIONS:,} partitions")
    workload = Workload("observed", "nothing", "none", WORKLOADS["latency"].line, idle_partitions=IDLE_PARTITIONS)
    names = create_idle(arena.source, workload.name, IDLE_PARTITIONS)
    route = Route.through(arena, workload, workload.name, "idle")

    with _running(arena, route, default_tuning(SparkMirror())) as (mirror, watcher):
        say(f"copying to {IDLE_PARTITIONS:,} partitions")
        topics = [route.remote(name) for name in names]
        wait_for_records(arena, mirror, topics, IDLE_PARTITIONS * IDLE_RECORDS, _POLL_S)
        time.sleep(SETTLING_S)
        for number in range(IDLE_WINDOWS):
            say(f"idle, window {number + 1} of {IDLE_WINDOWS}")
            course.spans.append(_span(mirror, watcher, lambda: 0, 0, IDLE_WINDOW_S, watched=number % 2 == 0))
    course.scrapes += watcher.scrapes
    course.events_bytes += watcher.events_bytes
    return course


def _span(
    mirror: RunningMirror,
    watcher: _Watcher,
    copied: Callable[[], int],
    record_bytes: float,
    seconds: float,
    *,
    watched: bool,
) -> Span:
    driver = psutil.Process(mirror.pid)

    def driver_cpu_s() -> float:
        times = driver.cpu_times()
        return float(times.user + times.system)

    began, records, cpu, of_driver = time.monotonic(), copied(), mirror.cpu_s(), driver_cpu_s()
    if watched:
        watcher.watch(seconds)
    else:
        time.sleep(seconds)
    mirror.check()
    return Span(
        watched=watched,
        seconds=time.monotonic() - began,
        cpu_s=mirror.cpu_s() - cpu,
        driver_cpu_s=driver_cpu_s() - of_driver,
        gigabytes=(copied() - records) * record_bytes / 1e9,
    )


@contextmanager
def _running(arena: Arena, route: Route, tuning: Tuning) -> Iterator[tuple[RunningMirror, _Watcher]]:
    """A mirror at work and who can watch it; afterwards nothing of it is left at the target."""
    contender = _Watched(*free_ports(1))
    account = arena.accounting.open(f"mirror-{route.label}")
    arena.settle()
    directory = arena.directory / f"mirror-{route.label}"
    try:
        with RunningMirror(contender, contender.settings(route, tuning), directory, account) as mirror:
            yield mirror, _Watcher(contender.port, f"{route.source_alias}->{route.target_alias}")
    finally:
        arena.target.delete_topics()


class _Watcher:
    """A Prometheus that scrapes, and a browser with the table of all partitions open."""

    def __init__(self, port: int, flow: str) -> None:
        self.scrapes: list[int] = []
        self.events_bytes = 0
        self._port = port
        self._events = "/events?" + urlencode({"kind": "partitions", "flow": flow})

    def watch(self, seconds: float) -> None:
        """Return when the seconds are over and nobody looks any more."""
        began = time.monotonic()
        page = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_ANSWER_S)
        page.request("GET", self._events)
        answer = page.getresponse()
        reading = threading.Thread(target=self._read, args=(answer,), name="page", daemon=True)
        reading.start()
        try:
            while (left := began + seconds - time.monotonic()) > 0:
                self.scrapes.append(self._scrape())
                time.sleep(max(min(SCRAPE_EVERY_S, left) - 0.01, 0))
        finally:
            with suppress(OSError, AttributeError):
                page.sock.shutdown(socket.SHUT_RDWR)
            reading.join()
            page.close()

    def _read(self, answer: http.client.HTTPResponse) -> None:
        with suppress(OSError, http.client.HTTPException, ValueError):
            while part := answer.read1(1 << 16):
                self.events_bytes += len(part)

    def _scrape(self) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_ANSWER_S)
        try:
            connection.request("GET", "/metrics", headers={"Accept": "application/openmetrics-text"})
            return len(connection.getresponse().read())
        finally:
            connection.close()


def markdown(courses: Sequence[Course]) -> str:
    """A table."""
    lines = [
        "| | windows | mirror, unwatched / watched | its driver process, cores | watching adds | a scrape, kB "
        "| page, kB/s |",
        "|---|---|---|---|---|---|---|",
    ]
    for course in courses:
        watched_s = sum(span.seconds for span in course.spans if span.watched)
        of, unit = (_per_gb, "CPU s/GB") if any(span.gigabytes for span in course.spans) else (_cores, "cores")
        lines.append(
            f"| {course.what} | {len(course.spans)} | {course.median(of, watched=False):.3f} / "
            f"{course.median(of, watched=True):.3f} {unit} | {course.median(_driver_cores, watched=False):.3f} / "
            f"{course.median(_driver_cores, watched=True):.3f} | {course.driver_cores:.2%} of a core, "
            f"{course.share:.1%} of the mirror | {statistics.median(course.scrapes) / 1e3:.0f} | "
            f"{course.events_bytes / watched_s / 1e3:.1f} |"
        )
    return "\n".join(lines) + "\n"
