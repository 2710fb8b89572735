"""Many tests in some rows at once: for `make test`, and with `--full` for `make test-full`.

Most of the engine's come to the terminal: mirrors at work, some under time limits. Beside them go the other
directories'; what these print comes at the end. Both rows mostly wait for brokers and Spark. The last row begins with
tests that wait for nothing and measure no time: they get what the others leave of the machine. `--full` has the long
tests too, but for those of versions and of the deployment, and the flow tests once more on a Spark standalone cluster;
the engine's are then in three rows. Tests of how soon or how fluidly something happens, marked `alone`, come when all
rows have ended. Other arguments go to all.

What fails has failed, but for the few tests that `second_tries` lists, each with its cause: of these the last lines
name those that passed only at their second try, alone.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from tests import failed_tests, second_tries

TESTS = Path(__file__).parent
ENGINE = TESTS / "engine"
CALM = sorted(
    str(ENGINE / f"test_{name}.py")
    for name in ("secrets", "kerberos", "secure_flows", "sign_in", "strimzi_examples", "verify")
)
"""Of the engine's, those that measure no time and are long if all their tests run."""

FIRST_HALF = sorted(str(test) for test in ENGINE.glob("test_[a-m]*.py") if str(test) not in CALM)
"""Of the engine's others, about half of the long ones' time: mirrors mostly wait, so that two rows save time."""

STANDALONE = ("tests/engine/test_mirror.py", "--standalone")
REAL = "broker or spark"
"""Tests that wait for brokers or Spark; the others need a core as long as they run."""

ALONE = "alone"
"""The mark of tests whose measured times other tests would falsify."""

TIMELESS = sorted(
    str(TESTS / name)
    for name in (
        *(
            "api",
            "arrow",
            "bench",
            "config",
            "doctor",
            "durable",
            "formats",
            "frames",
            "house",
            "lint",
            "messages",
            "metrics",
            "mm2",
        ),
        *(
            "policy",
            "position",
            "pump",
            "queries",
            "schemas",
            "sink",
            "source",
            "takeover",
            "transforms",
            "maps",
            "upgrade",
            "wire",
        ),
    )
)
"""Directories whose other tests measure no time, but for those of `TIMED`."""

TIMED = sorted(
    str(TESTS / directory / f"test_{name}.py")
    for directory, names in {
        "frames": ("empty_answers",),
        "maps": ("offset_map",),
        "pump": (
            "claim_writer",
            "connections",
            "dialer",
            "handing_over",
            "hostile_broker",
            "long_line",
            "long_line_to_target",
            "loop",
            "readings",
            "refused_fetches",
            "slow_connections",
        ),
        "wire": ("array_walk", "garbled", "rpc", "splice", "tls_channel"),
    }.items()
    for name in names
)

CACHE = Path(".cache")
FAILED = CACHE / "failed-tests.txt"
PYTEST = (sys.executable, "-m", "pytest", "-p", failed_tests.__name__)
BESIDE = (*PYTEST, "-p", "no:cacheprovider")
QUIETLY = ("nice", "-n", "10")
LEFT_OVER = ("chrt", "--idle", "0")
"""Only when nobody else wants the core (SCHED_IDLE)."""


class Row:
    """Commands one after the other in the background, into a log."""

    def __init__(self, log: Path, *commands: list[str]) -> None:
        self.log = log
        self.codes: list[int] = []
        self.took_s = 0.0
        self._commands = commands
        self._running: subprocess.Popen[bytes] | None = None
        self._ending = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        began = time.monotonic()
        with self.log.open("w") as log:
            for command in self._commands:
                if not self._ending:
                    self._running = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
                    self.codes.append(self._running.wait())
        self.took_s = time.monotonic() - began

    def wait(self) -> None:
        self._thread.join()

    def end(self) -> None:
        """Whatever still runs."""
        self._ending = True
        if self._running is not None:
            self._running.terminate()
        self.wait()


class Part(NamedTuple):
    """A command of a row: pytest with these arguments, and what is put before it."""

    arguments: list[str]
    way: tuple[str, ...] = QUIETLY


def rows(*, full: bool) -> list[list[Part]]:
    """The parts of each row; the first row is the terminal's.

    Without `full`, tests with Spark share a row, so that they share a session.
    """
    engine, near = str(ENGINE), [str(ENGINE), str(TESTS / "connect")]
    directories = _directories(full=full)
    shared = f" and not {ALONE}" if full else ""
    real, unreal, either = ("-m", f"({REAL}){shared}"), ("-m", f"not ({REAL}){shared}"), ("-m", f"not {ALONE}")
    patient = Part([*TIMELESS, *(f"--ignore={name}" for name in TIMED), *unreal], LEFT_OVER)
    timed = [name for name in directories if name not in (engine, *TIMELESS)]
    if full:
        others = [name for name in directories if name != engine]
        return [
            [Part([*FIRST_HALF, *either], ())],
            [Part([*others, *real]), Part([*CALM, *either]), Part(list(STANDALONE))],
            [Part([engine, *(f"--ignore={name}" for name in (*CALM, *FIRST_HALF)), *either], ())],
            [patient, Part([*timed, *TIMED, *unreal])],
        ]
    others = [name for name in directories if name not in near]
    return [
        [Part([*near, *real], ())],
        [Part([*others, *real]), Part([*timed, *TIMED, *unreal])],
        [patient, Part([engine, *unreal])],
    ]


def alone() -> list[str]:
    """pytest's arguments for when all rows of `make test-full` have ended."""
    return [*_directories(full=True), "-m", ALONE]


def _directories(*, full: bool) -> list[str]:
    left_out = {str(TESTS / "versions"), str(TESTS / "deploy")} if full else set[str]()
    return sorted({str(test.parent) for test in TESTS.glob("*/test_*.py")} - left_out)


def main(arguments: list[str]) -> int:
    """The exit code: 0 if all passed, those that `second_tries` lists if need be at the second try."""
    began, full = time.monotonic(), "--full" in arguments
    terminals, *parallel = all_rows = rows(full=full)
    CACHE.mkdir(exist_ok=True)
    FAILED.write_text("")
    os.environ[failed_tests.FILE] = str(FAILED.resolve())
    # The rows share the cores, with others perhaps: what takes long here is not wrong.
    os.environ.setdefault("SPARKMIRROR_TEST_PATIENCE", "3")
    others = [
        Row(CACHE / f"test-row-{number}.log", *([*part.way, *BESIDE, *part.arguments, *arguments] for part in parts))
        for number, parts in enumerate(parallel, 2)
    ]
    try:
        codes = [subprocess.call([*PYTEST, *part.arguments, *arguments]) for part in terminals]
        took_s = [time.monotonic() - began]
        for row in others:
            row.wait()
            took_s.append(row.took_s)
    finally:
        for row in others:
            row.end()
    for row in others:
        print(row.log.read_text())
    codes += [code for row in others for code in row.codes]
    if len(codes) < sum(map(len, all_rows)):  # one could not be started
        codes.append(pytest.ExitCode.INTERNAL_ERROR)
    if full:
        codes.append(subprocess.call([*PYTEST, *alone(), *arguments]))
    outcome = second_tries.after_second_try(
        failed_tests.failed_tests(FAILED), codes, lambda failed: subprocess.call([*PYTEST, *failed, *arguments])
    )
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = f"{(time.monotonic() - began) / 60:.1f} min, {(used.ru_utime + used.ru_stime) / 60:.1f} CPU min"
    print(*second_tries.last_words(outcome), sep="\n", end="")
    print(f": {took}; rows: {', '.join(f'{s / 60:.1f}' for s in took_s)} min")
    return int(any(outcome.codes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
