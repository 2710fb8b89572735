"""What `run`, `legacy` and `serve` show while they run, where there is no terminal."""

from __future__ import annotations

import dataclasses
import io
import json
import re

import pytest
from tests.support.snapshot_samples import flow, snapshot

from sparkmirror.cli import flow_lines
from sparkmirror.cli.logs import console
from sparkmirror.cli.output import Format
from sparkmirror.cli.progress import ProgressView
from sparkmirror.exact.durable.loss_kinds import LossOutcome
from sparkmirror.snapshot.group_standing import GroupState
from sparkmirror.snapshot.snapshot import FlowState, Group, LossCount, Snapshot

Captured = pytest.CaptureFixture[str]


def progress(*records: int, state: FlowState = FlowState.COPYING) -> Snapshot:
    """A snapshot with a flow for each count."""
    loss = LossCount(kind="expired", outcome=LossOutcome.LOST, entries=1, offsets=4, newest_ms=1, words="[4] expired")
    flows = (flow(records=count, state=state, recent_latency_ms=(3.0, 9.5), losses=(loss,)) for count in records)
    return snapshot(*flows)


def test_json_is_one_line_a_flow(capsys: Captured) -> None:
    with ProgressView(Format.JSON) as view:
        view.show(progress(1, 2))
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["flow"], first["state"], first["records"], second["records"]) == ("A->B", "copying", 1, 2)
    assert (first["latency_ms"], first["losses"], first["parked"]) == ([3.0, 9.5], ["1 expired (4 offsets)"], [])
    assert first["time_ms"] > 1_700_000_000_000


@pytest.mark.parametrize("output", Format)
def test_each_new_state_is_said_and_so_is_the_last_word(output: Format, capsys: Captured) -> None:
    """What comes between two lines of the same state is left out, but not at the end."""
    with ProgressView(output) as view:
        for number in range(5):
            view.show(progress(number))
        view.show(progress(7, state=FlowState.ENDING))
        view.show(progress(8, state=FlowState.ENDING))
        view.show(progress(9, state=FlowState.ENDING))
    said = capsys.readouterr()
    lines, nothing = (said.out, said.err) if output is Format.JSON else (said.err, said.out)
    assert re.findall(r'"records": (\d)|(\d) records', lines) == [
        (number, "") if output is Format.JSON else ("", number) for number in "079"
    ]
    assert not nothing


def test_nothing_more_is_said_where_all_was(capsys: Captured) -> None:
    with ProgressView(Format.JSON) as view:
        view.show(progress(1))
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_a_flow_that_is_taken_away_has_its_last_word(capsys: Captured) -> None:
    with ProgressView(Format.JSON) as view:
        view.show(progress(1))
        view.show(progress(2))
        view.show(dataclasses.replace(progress(1), flows=()))
    assert [json.loads(line)["records"] for line in capsys.readouterr().out.splitlines()] == [1, 2]


@pytest.mark.parametrize("output", Format)
def test_copying_continues_where_nobody_reads(output: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(io.StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(console, "quiet", False)  # rich would stay so
    monkeypatch.setattr("sys.stdout", Broken())
    monkeypatch.setattr("sys.stderr", Broken())
    with ProgressView(output) as view:
        view.show(progress(1))
        view.show(progress(2, state=FlowState.ENDING))


def test_all_in_a_few_words() -> None:
    groups = [
        Group(group="c", state=GroupState.NOT_SYNCED, reason="t-0: no such partition"),
        Group(group="b", state=GroupState.NOT_SYNCED, reason="t-1: it has members"),
        Group(group="a", state=GroupState.SYNCED),
        Group(group="d", state=GroupState.CATCHING_UP),
        Group(group="e", state=GroupState.BEYOND_END),
        *(Group(group=f"x{number}", state=GroupState.SYNCED) for number in range(1200)),
    ]
    assert flow_lines.groups(groups) == [
        "1,201 synced",
        "1 catching up",
        "1 beyond the end",
        "2 can't be synced, first: b: t-1: it has members",
    ]
    assert flow_lines.groups([]) == []
