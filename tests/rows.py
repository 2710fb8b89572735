"""Many tests in two rows at once, as they mostly wait: for `make test`, and with `--full` for `make test-full`.

The engine's come to the terminal, with those of directories near it: mirrors at work, some under time limits. Beside
them go the other directories', with what these leave of the machine; what they print comes at the end. Each row of
`make test` ends with half of the tests without brokers and Spark, of all directories. `--full` has the long tests too,
but for those of versions and of the deployment, and the flow tests once more on a Spark standalone cluster. Other
arguments go to all.

What fails in `make test` runs once more, alone, as Kafka's own build does: on a machine that others starve, a test with
a time limit may fail. A line near the end names such a test.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests import failed_tests

TESTS = Path(__file__).parent
ENGINE = TESTS / "engine"
CALM = sorted(
    str(ENGINE / f"test_{name}.py")
    for name in ("secrets", "kerberos", "secure_flows", "sign_in", "strimzi_examples", "verify")
)
"""Of the engine's, those that measure no time and are long if all their tests run."""

STANDALONE = ("tests/engine/test_mirror.py", "--standalone")
REAL = "broker or spark"
"""Tests that wait for brokers or Spark; the others need a core as long as they run."""

CACHE = Path(".cache")
FAILED = CACHE / "failed-tests.txt"
PYTEST = (sys.executable, "-m", "pytest", "-p", failed_tests.__name__)
QUIETLY = ("nice", "-n", "10", *PYTEST, "-p", "no:cacheprovider")
MOST_AGAIN = 3
"""Failed tests that run once more; if there are others, the code is at fault and not the machine."""
PASSED, SOME_FAILED = pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED


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


def rows(*, full: bool) -> list[list[list[str]]]:
    """The arguments of pytest for each command of each row, of about one length; the first row is the terminal's.

    Tests with Spark share a row, so that they share a session.
    """
    near = [ENGINE] if full else [ENGINE, TESTS / "sync", TESTS / "connect"]
    apart = {*near, TESTS / "versions", TESTS / "deploy"} if full else {*near}
    directories = {test.parent for test in TESTS.glob("*/test_*.py")}
    first, others = [str(one) for one in near], sorted(str(one) for one in directories - apart)
    if full:
        left_out = [f"--ignore={one}" for one in CALM]
        return [[[*first, *left_out]], [others, CALM, list(STANDALONE)]]
    halves = [sorted(str(one) for one in directories)[half::2] for half in (0, 1)]
    return [
        [[*real, "-m", REAL], [*half, "-m", f"not ({REAL})"]]
        for real, half in zip((first, others), halves, strict=True)
    ]


def may_run_again(failed: Sequence[str], codes: Sequence[int]) -> bool:
    """True if a few tests failed and nothing else went wrong, such as a module that can't be imported."""
    return {*codes} <= {PASSED, SOME_FAILED} and 0 < len(failed) <= MOST_AGAIN


def main(arguments: list[str]) -> int:
    """The exit code: 0 if all passed, if need be alone."""
    began = time.monotonic()
    terminals, *beside = rows(full="--full" in arguments)
    CACHE.mkdir(exist_ok=True)
    FAILED.write_text("")
    os.environ[failed_tests.FILE] = str(FAILED.resolve())
    others = [
        Row(CACHE / f"test-row-{number}.log", *([*QUIETLY, *command, *arguments] for command in commands))
        for number, commands in enumerate(beside, 2)
    ]
    try:
        codes = [subprocess.call([*PYTEST, *command, *arguments]) for command in terminals]
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
    failed, flaky = failed_tests.failed_tests(FAILED), list[str]()
    if "--full" not in arguments and may_run_again(failed, codes):
        print(f"once more, alone: {' '.join(failed)}", flush=True)
        codes = [subprocess.call([*PYTEST, *failed, *arguments])]
        flaky = [] if any(codes) else failed
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = f"{(time.monotonic() - began) / 60:.1f} min, {(used.ru_utime + used.ru_stime) / 60:.1f} CPU min"
    for test in flaky:
        print(f"failed beside other tests, passed alone: {test}")
    print(f"{'failed' if any(codes) else 'all passed'}: {took}; rows: {', '.join(f'{s / 60:.1f}' for s in took_s)} min")
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
