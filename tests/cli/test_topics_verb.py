"""`sparkmirror topics done` and `undo` of several flows, over stand-ins for what is written down."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sparkmirror.cli import topics as verb
from sparkmirror.cli.app import app
from sparkmirror.config import FlowConfig
from sparkmirror.errors import ClusterUnreachable, ConfigError
from sparkmirror.mirror.sync.moved_writers import Moved

FILE = (
    "clusters = A, B\nA.bootstrap.servers = 127.0.0.1:1\nB.bootstrap.servers = 127.0.0.1:1\n"
    "A->B.enabled = true\nB->A.enabled = true\n"
)
TURNS = (
    "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
    "A->B.sparkmirror.turn = first\nB->A.sparkmirror.turn = second\n"
)
BOTH = pytest.mark.parametrize("said", ["done", "undo"])


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The flows that were told; each takes all words but for `B->A`, whose clusters don't answer."""
    names: list[str] = []

    def say(flow: FlowConfig, _: Callable[[str], bool]) -> None:
        if flow.name == "B->A":
            raise ClusterUnreachable("no broker answers")
        names.append(flow.name)

    def say_moved(flow: FlowConfig, chosen: Callable[[str], bool]) -> list[Moved]:
        say(flow, chosen)
        return [Moved("orders", {0: 7}, 0)]

    def take_back(flow: FlowConfig, chosen: Callable[[str], bool]) -> list[str]:
        say(flow, chosen)
        return ["orders"]

    monkeypatch.setattr(verb, "say_moved", say_moved)
    monkeypatch.setattr(verb, "take_back", take_back)
    return names


def file_of(tmp_path: Path, content: str) -> str:
    file = tmp_path / "mm2.properties"
    file.write_text(content)
    return str(file)


@BOTH
def test_flows_that_take_turns_are_named(told: list[str], tmp_path: Path, said: str) -> None:
    file = file_of(tmp_path, FILE + TURNS)
    refused = CliRunner().invoke(app, ["topics", said, file, "--topics", "orders"])
    assert isinstance(refused.exception, ConfigError)
    assert str(refused.exception) == f"--flow: {file} has several flows: A->B, B->A; choose one"
    assert told == []
    named = CliRunner().invoke(app, ["topics", said, file, "--topics", "orders", "--flow", "A->B"])
    assert (named.exit_code, told) == (0, ["A->B"]), named.output


@BOTH
def test_what_was_told_before_an_error_is_printed(told: list[str], tmp_path: Path, said: str) -> None:
    command = ["topics", said, file_of(tmp_path, FILE), "--topics", "orders"]
    failed = CliRunner().invoke(app, command)
    assert isinstance(failed.exception, ClusterUnreachable)
    assert failed.stdout.startswith("A->B: orders is copied ")
    rows = json.loads(CliRunner().invoke(app, [*command, "-o", "json"]).stdout)
    assert [(row["flow"], row["topic"]) for row in rows] == [("A->B", "orders")]
    assert told == ["A->B", "A->B"]
