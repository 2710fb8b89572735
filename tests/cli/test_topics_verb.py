"""`sparkmirror topics done` and `undo` of several flows, over stand-ins for what is written down."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
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
    """The flows that were told; `A->B` takes all words, `B->A` one, and then its clusters don't answer."""
    names: list[str] = []

    def say(flow: FlowConfig) -> Iterator[str]:
        names.append(flow.name)
        yield "orders"
        if flow.name == "B->A":
            raise ClusterUnreachable("no broker answers")
        yield "payments"

    def say_moved(flow: FlowConfig, chosen: Callable[[str], bool]) -> Iterator[Moved]:
        return (Moved(topic, {0: 7}, 0, {}) for topic in say(flow))

    def take_back(flow: FlowConfig, chosen: Callable[[str], bool]) -> Iterator[str]:
        return say(flow)

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
    assert [line.split(" is copied ")[0] for line in failed.stdout.splitlines()] == [
        "A->B: orders",
        "A->B: payments",
        "B->A: orders",
    ]
    rows = json.loads(CliRunner().invoke(app, [*command, "-o", "json"]).stdout)
    assert [(row["flow"], row["topic"]) for row in rows] == [
        ("A->B", "orders"),
        ("A->B", "payments"),
        ("B->A", "orders"),
    ]
    assert told == ["A->B", "B->A"] * 2


def test_late_records_that_stay_at_the_source_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    said = Moved("orders", {0: 7}, 0, {0: 9}), Moved("payments", {0: 7}, 0, {}, recreated=True)
    monkeypatch.setattr(verb, "say_moved", lambda *_: iter(said))
    told = CliRunner().invoke(app, ["topics", "done", file_of(tmp_path, FILE), "--topics", ".*", "--flow", "A->B"])
    assert told.stdout.splitlines() == [
        "A->B: orders is copied up to its end, then left alone (partition: offset 0: 7)",
        "A->B: orders: what came later up to here stays at the source (partition: offset 0: 9)",
        "A->B: payments was created again at the source, so nothing is accepted: topics undo copies it",
    ]


def test_undo_is_no_advice_after_a_flows_turn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It would be refused."""
    said = (Moved("orders", {0: 7}, 0, {}, recreated=True),)
    monkeypatch.setattr(verb, "say_moved", lambda *_: iter(said))
    command = ["topics", "done", file_of(tmp_path, FILE + TURNS), "--topics", ".*", "--flow", "A->B"]
    assert CliRunner().invoke(app, command).stdout.splitlines() == [
        "A->B: orders was created again at the source, so nothing is accepted; nor is it copied, as it is not the"
        " flow's turn",
    ]
