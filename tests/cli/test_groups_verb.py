"""`sparkmirror groups`: what the table can't show."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.support.snapshot_samples import flow
from typer.testing import CliRunner

from sparkmirror.cli import groups
from sparkmirror.cli.app import app
from sparkmirror.snapshot.status_topic import Status

FILE = "clusters = A, B\nA.bootstrap.servers = a:9092\nB.bootstrap.servers = b:9092\nA->B.enabled = true\n"


@pytest.mark.parametrize(("sinks", "lines"), [(("connect-jdbc", "connect-s3"), 1), ((), 0)])
def test_excluded_groups_of_sink_connectors_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sinks: tuple[str, ...], lines: int
) -> None:
    (tmp_path / "mm2.properties").write_text(FILE)
    now = Status(flow(at_ms=int(time.time() * 1000), excluded_sinks=sinks), 0)
    monkeypatch.setattr(groups, "read_status", lambda _: now)
    words = ["groups", str(tmp_path / "mm2.properties")]
    told = [line for line in CliRunner().invoke(app, words).stdout.splitlines() if "sink connectors" in line]
    assert told == ["A->B: groups.exclude leaves out groups of sink connectors: connect-jdbc, connect-s3"][:lines]
    assert "sink connectors" not in CliRunner().invoke(app, [*words, "-o", "json"]).stdout
