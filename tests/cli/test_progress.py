"""What `run`, `legacy` and `serve` show while they go on, where there is no terminal."""

from __future__ import annotations

import io
import json
import re

import pytest

from sparkmirror.cli.logs import console
from sparkmirror.cli.output import Format
from sparkmirror.cli.progress import ProgressView
from sparkmirror.engine.progress import FlowProgress

Captured = pytest.CaptureFixture[str]


def progress(records: int, state: str = "copying") -> FlowProgress:
    return FlowProgress(flow="A->B", state=state, records=records, latency_ms=(3.0, 9.5), losses=("[4] expired",))


def test_json_is_one_line_a_flow(capsys: Captured) -> None:
    with ProgressView(Format.JSON) as view:
        view.show([progress(1), progress(2)])
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["flow"], first["state"], first["records"], second["records"]) == ("A->B", "copying", 1, 2)
    assert (first["latency_ms"], first["losses"], first["parked"]) == ([3.0, 9.5], ["[4] expired"], [])
    assert first["time_ms"] > 1_700_000_000_000


@pytest.mark.parametrize("output", Format)
def test_each_new_state_is_said_and_so_is_the_last_word(output: Format, capsys: Captured) -> None:
    """What comes between two lines of the same state is left out, but not at the end."""
    with ProgressView(output) as view:
        for number in range(5):
            view.show([progress(number)])
        view.show([progress(7, "ending")])
        view.show([progress(8, "ending")])
        view.show([progress(9, "ending")])
    said = capsys.readouterr()
    lines, nothing = (said.out, said.err) if output is Format.JSON else (said.err, said.out)
    assert re.findall(r'"records": (\d)|(\d) records', lines) == [
        (number, "") if output is Format.JSON else ("", number) for number in "079"
    ]
    assert not nothing


def test_nothing_more_is_said_where_all_was(capsys: Captured) -> None:
    with ProgressView(Format.JSON) as view:
        view.show([progress(1)])
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_a_flow_that_is_taken_away_has_its_last_word(capsys: Captured) -> None:
    with ProgressView(Format.JSON) as view:
        view.show([progress(1)])
        view.show([progress(2)])
        view.show([])
    assert [json.loads(line)["records"] for line in capsys.readouterr().out.splitlines()] == [1, 2]


@pytest.mark.parametrize("output", Format)
def test_copying_goes_on_where_nobody_reads(output: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(io.StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(console, "quiet", False)  # rich would stay so
    monkeypatch.setattr("sys.stdout", Broken())
    monkeypatch.setattr("sys.stderr", Broken())
    with ProgressView(output) as view:
        view.show([progress(1)])
        view.show([progress(2, "ending")])
