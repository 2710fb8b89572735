"""`sparkmirror doctor`: its lines, its JSON, its exit codes, and that it looks twice."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.snapshot_samples import flow, partition, topic
from typer.testing import CliRunner

from sparkmirror.cli import doctor as verb
from sparkmirror.cli.app import app
from sparkmirror.errors import SparkMirrorError
from sparkmirror.snapshot.snapshot import Cause, ClusterFigures, Flow, PartitionState
from sparkmirror.snapshot.status_topic import Status

FILE = "clusters = A, B\nA.bootstrap.servers = 127.0.0.1:1\nB.bootstrap.servers = 127.0.0.1:1\nA->B.enabled = true\n"
PARKED = partition(3, state=PartitionState.PARKED, cause=Cause.TOO_LARGE, reason="20 MB\x1b[31m at offset 7")


def well(**changes: object) -> Flow:
    """A flow of just now with nothing wrong."""
    return flow(**{"at_ms": int(time.time() * 1000), "duties": (), "groups": (), "pumps": (), **changes})


def run(patch: pytest.MonkeyPatch, path: Path, seen: Sequence[Status], *arguments: str) -> tuple[int, str]:
    """The verb, where the target holds one status after the other."""
    (path / "mm2.properties").write_text(FILE)
    left = list(seen)
    patch.setattr(verb, "read_status", lambda _: left.pop(0))  # stands for a target that holds this
    done = CliRunner().invoke(app, ["doctor", str(path / "mm2.properties"), "--flow", "A->B", *arguments])
    if isinstance(done.exception, SparkMirrorError):
        return done.exception.exit_code, str(done.exception)
    assert not left or done.exit_code == 3
    return done.exit_code, done.stdout


def test_nothing_is_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert run(monkeypatch, tmp_path, [Status(well(), 0)], "--wait", "0") == (0, "nothing is wrong with A->B\n")


@pytest.mark.parametrize("wait", ["inf", "1e300"])
def test_a_time_that_never_ends_is_refused(wait: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, words = run(monkeypatch, tmp_path, [], "--wait", wait)
    assert (code, words) == (2, f"--wait: {float(wait)}: must be a number of seconds that can pass")
    assert run(monkeypatch, tmp_path, [], "--wait", "nan")[0] == 2


def test_a_notice_is_no_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, text = run(monkeypatch, tmp_path, [Status(well(processes=1), 0)], "--wait", "0")
    assert code == 0
    assert text.startswith("notice [no-standby] A->B: No process takes over if this process ends (1 process)\n  why: ")


def test_what_is_wrong_has_figures_cause_and_action(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    now = Status(well(topics=(topic("orders", PARKED),), processes=1), 0)
    code, text = run(monkeypatch, tmp_path, [now], "--wait", "0")
    first, why, do, second, *_ = text.splitlines()
    assert code == 1
    assert first == (
        "critical [parked-too-large] A->B: orders-3: A batch is larger than the target takes (1 partition parked)"
    )
    assert why == r"  why: 20 MB\x1b[31m at offset 7"
    assert "max.message.bytes" in do
    assert second.startswith("notice [no-standby]")


def test_it_looks_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A quota shows only over time."""
    now_ms = int(time.time() * 1000)
    looks = [
        Status(well(at_ms=now_ms - 6_000, target=ClusterFigures(alias="B")), 0),
        Status(well(at_ms=now_ms, target=ClusterFigures(alias="B", throttle_s=5.0)), 0),
    ]
    code, text = run(monkeypatch, tmp_path, looks, "--wait", "0.01", "-o", "json")
    (finding,) = json.loads(text)
    assert (code, finding["rule"], finding["severity"], finding["subject"]) == (1, "throttled-target", "warning", "B")


def test_nothing_published_or_too_old(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, words = run(monkeypatch, tmp_path, [Status(None, 0)])
    assert (code, "is the mirror running?" in words) == (3, True)
    old = Status(well(at_ms=int(time.time() * 1000) - 90_000), 0)
    code, words = run(monkeypatch, tmp_path, [old])
    assert (code, "90 s old" in words) == (3, True)
    code, words = run(monkeypatch, tmp_path, [], "--flow", "B->C")
    assert code == 2
