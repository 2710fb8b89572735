"""`sparkmirror demo` as a new user runs it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from tests.support import mirror_process as mp

pytestmark = pytest.mark.broker

COMMAND = (sys.executable, "-c", "from sparkmirror.cli import main; main()", "demo")
MARK = "SPARKMIRROR_DEMO_TEST"
PARTITIONS = 17


@contextmanager
def _demo(directory: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """The command under way, in a session of its own, with a mark that all its children inherit."""
    environment = {**os.environ, MARK: str(directory)}
    with (directory.parent / "story.txt").open("w") as story:
        running = subprocess.Popen(
            [*COMMAND, "--directory", str(directory), *options],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=story,
            text=True,
            start_new_session=True,
        )
    try:
        yield running
    finally:
        running.kill()
        running.communicate()


def _story(directory: Path) -> str:
    return (directory.parent / "story.txt").read_text()


def _wait_for(what: str, directory: Path, running: subprocess.Popen[str], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while what not in _story(directory):
        assert running.poll() is None, _story(directory)
        assert time.monotonic() < deadline, _story(directory)
        time.sleep(0.1)


def _left_behind(directory: Path, within_s: float = 60.0) -> list[str]:
    """Commands that still run with our mark; Spark's JVM needs a moment after its parent."""
    deadline = time.monotonic() + within_s
    while (left := list(_marked(str(directory)))) and time.monotonic() < deadline:
        time.sleep(0.2)
    return left


def _marked(mark: str) -> Iterator[str]:
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark:
                yield " ".join(process.cmdline())
        except psutil.Error:
            continue


def _assert_all_identical(proof: str) -> None:
    assert len(re.findall(r"✓", proof)) == PARTITIONS, proof
    assert "✗" not in proof
    assert f"All {PARTITIONS} partitions are identical" in proof


def test_all_partitions_are_proved_identical(tmp_path: Path) -> None:
    directory = tmp_path / "demo"
    with _demo(directory, "--records", "5000", "--live", "0.5") as running:
        proof, _ = running.communicate(timeout=1200)
    assert running.returncode == 0, _story(directory)
    _assert_all_identical(proof)
    assert max(len(line) for line in proof.splitlines()) <= 100
    assert (directory / "mm2.properties").exists()
    assert (directory / "shop" / "broker-1" / "server.log").exists()
    assert not (directory / "shop" / "broker-1" / "data").exists()
    assert _left_behind(directory) == []


def test_a_directory_with_something_in_it_is_refused(tmp_path: Path) -> None:
    precious = tmp_path / "demo" / "precious"
    precious.parent.mkdir()
    precious.touch()
    with _demo(precious.parent) as running:
        running.communicate(timeout=120)
    assert running.returncode == 2
    assert "it must be new or empty" in _story(precious.parent)
    assert precious.exists()


@pytest.mark.full
def test_kept_running_until_interrupted(tmp_path: Path) -> None:
    directory = tmp_path / "demo"
    with _demo(directory, "--records", "20000", "--live", "0", "--keep") as running:
        _wait_for("Ctrl-C ends it", directory, running, timeout_s=180)
        time.sleep(3)
        assert running.poll() is None
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does it
        proof, _ = running.communicate(timeout=120)
    assert running.returncode == 0, _story(directory)
    _assert_all_identical(proof)
    assert f"sparkmirror throttle {directory}/mm2.properties" in _story(directory)
    assert _left_behind(directory) == []


@pytest.mark.full
@pytest.mark.parametrize("moment", ["", "Clusters", "Events", "Mirror", "copying"])
def test_an_interruption_leaves_nothing_behind(tmp_path: Path, moment: str) -> None:
    directory = tmp_path / "demo"
    with _demo(directory, "--records", "20000", "--live", "60") as running:
        mp.wait_for(directory.exists, 180, "it has begun")
        _wait_for(moment, directory, running, timeout_s=180)
        time.sleep(1.5)  # into the step that follows
        os.killpg(running.pid, signal.SIGINT)
        running.communicate(timeout=120)
    assert running.returncode == 130, _story(directory)
    assert _left_behind(directory) == []


@pytest.mark.full
def test_a_shop_moves_and_comes_back(tmp_path: Path) -> None:
    directory = tmp_path / "demo"
    with _demo(directory, "--migration", "--records", "5000", "--live", "2") as running:
        proof, _ = running.communicate(timeout=1200)
    story = _story(directory)
    assert running.returncode == 0, story
    _assert_all_identical(proof)
    for verb in ("check", "switch consumers", "switch producers", "reverse"):
        assert f"sparkmirror migration {verb} {directory}/migration.yaml" in re.sub(r"\s+", " ", story)
    ((read, written),) = re.findall(r"billing has read ([\d,]+) of ([\d,]+) records", story)
    assert read == written
    assert _left_behind(directory) == []
