"""A second try for the few tests that only measure time, and for nothing else: least of all for a test of exactness."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests import failed_tests
from tests.second_tries import LISTED, after_second_try, cause_of, last_words

FAILING = """
import pytest

@pytest.fixture
def broken():
    raise OSError

def test_fails():
    assert not 1

def test_passes():
    pass

@pytest.mark.parametrize("word", ["a b", "c"])
def test_has_no_fixture(broken, word):
    pass
"""


def test_failed_tests_are_named_once(tmp_path: Path) -> None:
    (tmp_path / "test_made_up.py").write_text(FAILING)
    file = tmp_path / "failed.txt"
    again = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(tmp_path)]
    environment = {**os.environ, failed_tests.FILE: str(file), "PYTHONPATH": str(Path.cwd())}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for _ in range(2):
        ran = subprocess.run(
            [*again, "-p", failed_tests.__name__, str(tmp_path)], env=environment, cwd=tmp_path, capture_output=True
        )
        assert ran.returncode == pytest.ExitCode.TESTS_FAILED, ran.stdout
    names = failed_tests.failed_tests(file)
    assert names == [
        f"test_made_up.py::{test}" for test in ("test_fails", "test_has_no_fixture[a b]", "test_has_no_fixture[c]")
    ]
    # The names are arguments of pytest.
    once = subprocess.run([*again, *names], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert "1 failed, 2 errors" in once.stdout


SLOW, SLOWER = sorted(LISTED)[:2]
EXACT = "tests/engine/test_kills.py::test_workers_killed_under_load"
NEVER = (
    *("chaos", "durable", "engine", "frames", "messages", "mm2", "position", "pump", "sync", "takeover", "maps"),
    *("upgrade", "versions", "wire"),
)
"""Directories with tests of what was copied where: kills, takeovers, rivals, moves, elections, losses."""


class Again:
    """The second try, whose outcome a test says."""

    def __init__(self, code: int) -> None:
        self.ran: list[Sequence[str]] = []
        self._code = code

    def __call__(self, tests: Sequence[str]) -> int:
        self.ran.append(tests)
        return self._code


def test_no_second_try_hides_a_failure_of_exactness() -> None:
    """Whatever else failed, and however often it would pass: nothing runs again, and the run has failed."""
    other = "tests/pump/test_events_in_any_order.py::test_x"
    for failed in ([EXACT], [EXACT, SLOW], [SLOW, SLOWER, f"{EXACT}[1]"], [other]):
        again = Again(0)
        outcome = after_second_try(failed, [1, 0], again)
        assert again.ran == []
        assert any(outcome.codes)
        assert last_words(outcome) == ["failed"]


def test_no_test_of_exactness_is_listed() -> None:
    assert [test for test in LISTED if test.split("/")[1] in NEVER] == []
    assert cause_of(EXACT) == ""


def test_what_is_listed_is_there_with_its_cause() -> None:
    for test, cause in LISTED.items():
        file, _, name = test.partition("::")
        functions = {
            each.name
            for each in ast.walk(ast.parse(Path(file).read_text("utf-8")))
            if isinstance(each, ast.FunctionDef)
        }
        assert name in functions, test
        assert len(cause.split()) > 3, test


@pytest.mark.parametrize("code", [0, 1])
def test_a_test_that_only_measures_time_is_tried_again_and_named(code: int) -> None:
    again, failed = Again(code), [f"{SLOW}[a]", SLOWER]
    outcome = after_second_try(failed, [0, 1, 0], again)
    assert again.ran == [failed]
    assert any(outcome.codes) is bool(code)
    *named, last = last_words(outcome)
    assert last == ("failed" if code else "all passed, 2 at the second try")
    assert named == [f"failed, and passed at its second try: {test} ({cause_of(test)})" for test in failed if not code]


@pytest.mark.parametrize(
    ("failed", "codes"),
    [
        ([], [0, 0]),
        ([], [1, 0]),
        ([SLOW], [1, pytest.ExitCode.INTERRUPTED]),
        ([SLOW], [1, pytest.ExitCode.NO_TESTS_COLLECTED]),
        ([SLOW], [1, -9]),
    ],
)
def test_nothing_is_tried_again_if_something_else_went_wrong(failed: list[str], codes: list[int]) -> None:
    """Such as a module that can't be imported."""
    again = Again(0)
    outcome = after_second_try(failed, codes, again)
    assert (again.ran, [*outcome.codes], outcome.late) == ([], codes, ())
