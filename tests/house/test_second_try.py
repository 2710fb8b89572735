"""A second try for a few failed tests, and for nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests import failed_tests
from tests.rows import may_run_again

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


@pytest.mark.parametrize(
    ("failed", "codes", "may"),
    [
        (["a"], [0, 1, 0, 0], True),
        (["a", "b", "c"], [1, 1], True),
        (["a", "b", "c", "d"], [1, 0], False),
        ([], [0, 0], False),
        ([], [1, 0], False),
        (["a"], [1, pytest.ExitCode.INTERRUPTED], False),
        (["a"], [1, -9], False),
    ],
)
def test_a_few_failed_tests_run_again(failed: list[str], codes: list[int], may: bool) -> None:
    assert may_run_again(failed, codes) is may


@pytest.mark.parametrize(("count", "may"), [(8, True), (9, False)])
def test_some_more_may_run_again_of_all(count: int, may: bool) -> None:
    assert may_run_again(["test"] * count, [1, 0], full=True) is may
