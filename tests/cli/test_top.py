"""`sparkmirror top`: its keys, its tables, and a screen on a real pseudo-terminal."""

from __future__ import annotations

import io
import json
import os
import pty
import select
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from rich.console import Console
from tests.support.snapshot_samples import flow, partition, topic
from typer.testing import CliRunner

from sparkmirror.cli import top as verb
from sparkmirror.cli.app import app
from sparkmirror.cli.keys import parsed
from sparkmirror.cli.top import Shown, Sort, View, drawn, tasks, worst_partitions
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.snapshot.snapshot import PartitionState, Pump
from sparkmirror.snapshot.status_topic import Status

PARKED = partition(3, state=PartitionState.PARKED, reason="too large", lag=5, task=1)
BUSY = partition(0, records_per_s=90.0, lag=70, lag_s=4.0, task=0)
NOW = flow(
    topics=(topic("orders", BUSY), topic("bills", PARKED), topic("quiet")),
    pumps=(
        Pump(task=0, host="host-1", partitions=2, records=0, bytes=0, memory_bytes=0, in_flight=12, fetch_ms=7.0),
        Pump(task=1, host="host-2", partitions=1, records=0, bytes=0, memory_bytes=0),
        Pump(task=2, host="host-3", partitions=0, records=0, bytes=0, memory_bytes=0),
    ),
)
SHOWN = [Shown("A->B", NOW, 2.0)]
FILE = (
    "clusters = A, B\nA.bootstrap.servers = 127.0.0.1:1\nB.bootstrap.servers = 127.0.0.1:1\n"
    "A->B.enabled = true\nB->A.enabled = true\n"
)
TROUBLE = "flow B->A: its status is not known: no mirror has published it; is the mirror running?"


def screen(shown: list[Shown], view: View, height: int = 40, width: int = 200) -> list[str]:
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    with console.capture() as captured:
        console.print(drawn(shown, view, height))
    return captured.get().splitlines()


def test_topics_are_sorted_as_asked() -> None:
    firsts = {}
    for sort in Sort:
        lines = screen(SHOWN, View(sort))
        heads = next(n for n, line in enumerate(lines) if line.startswith("FLOW  TOPIC"))
        firsts[sort] = [line.split()[1] for line in lines[heads + 1 : heads + 4]]
    assert firsts == {
        Sort.LAG: ["orders", "bills", "quiet"],
        Sort.RATE: ["orders", "bills", "quiet"],
        Sort.STATE: ["bills", "orders", "quiet"],
        Sort.NAME: ["bills", "orders", "quiet"],
    }


def test_keys_move_sort_and_end() -> None:
    view = View()
    for key in ("down", "down", "down", "down"):
        view.press(key, 3)
    assert view.first == 2
    view.press("left", 3)
    assert view.first == 0
    view.press("right", 30)
    assert view.first == 10
    seen = [view.sort]
    for _ in Sort:
        view.press("s", 3)
        seen.append(view.sort)
    assert (seen, view.first) == ([*Sort, Sort.LAG], 0)
    view.press("x", 3)
    assert not view.ended
    view.press("q", 3)
    assert view.ended


def test_keys_are_taken_apart() -> None:
    assert parsed("\x1b[A\x1bOBqs\x1b[C\x1b[D\x1b[5~\x1b") == ["up", "down", "q", "s", "right", "left"]


def test_parked_partitions_come_first_and_those_that_caught_up_are_left_out() -> None:
    assert [row["partition"] for row in worst_partitions(SHOWN)] == ["bills-3", "orders-0"]


def test_tasks_show_their_share() -> None:
    assert [(row["task"], row["share"], row["lag"]) for row in tasks(SHOWN)] == [(0, 3.0, 70), (1, 0.0, 5), (2, 0.0, 0)]


def test_it_fits_the_screen_and_scrolls() -> None:
    many = flow(topics=tuple(topic(f"t{n:03}", partition(lag=n)) for n in range(500)))
    for height in (24, 40, 80):
        assert len(screen([Shown("A->B", many, 1.0)], View(), height)) <= height
    assert any("t499" in line for line in screen([Shown("A->B", many, 1.0)], View()))
    lines = screen([Shown("A->B", many, 1.0)], View(first=200))
    heads = next(n for n, line in enumerate(lines) if line.startswith("FLOW  TOPIC"))
    assert lines[heads + 1].split()[1] == "t299"
    assert screen(SHOWN, View(), width=40)


def test_a_flow_that_can_not_be_read_says_why() -> None:
    lines = screen([Shown("A->B", None, trouble="its last status is 90 s old"), Shown("C->B", NOW, 1.0)], View())
    assert any("A->B" in line and "not known" in line and "90 s old" in line for line in lines)


@pytest.mark.parametrize("arguments", [(), ("-o", "json")])
def test_without_a_terminal_the_other_flows_are_shown_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(FILE)
    now = Status(flow(at_ms=int(time.time() * 1000)), 0)
    monkeypatch.setattr(verb, "read_status", lambda each: now if each.name == "A->B" else Status(None, 0))
    done = CliRunner().invoke(app, ["top", str(file), *arguments])
    assert isinstance(done.exception, ClusterUnreachable)
    assert (done.exception.exit_code, str(done.exception)) == (3, TROUBLE)
    if arguments:
        one, other = json.loads(done.stdout)
        assert (one["flow"], one["state"]) == ("A->B", "caught up")
        assert other == {"flow": "B->A", "trouble": TROUBLE}
    else:
        assert "caught up" in done.stdout
        assert TROUBLE in done.stdout


MADE_UP = """
from test_top import SHOWN
from sparkmirror.cli import top
from sparkmirror.cli.keys import pressed_keys
top._read = lambda *_: SHOWN[0]
with pressed_keys() as keys:
    top.watch([None], 60.0, keys)
print("ended")
"""


def test_a_terminal_is_drawn_on_and_is_as_before_afterwards() -> None:
    """In a process with a terminal of its own, whose status is made up."""
    ours, its = pty.openpty()
    before = termios.tcgetattr(its)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm"}
    process = subprocess.Popen([sys.executable, "-c", MADE_UP], stdin=its, stdout=its, stderr=its, env=environment)
    said, keys = b"", [(b"topics by lag", b"s"), (b"topics by rate", b"\x1b[Bq")]
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and b"ended" not in said:
        if select.select([ours], [], [], 1.0)[0]:
            said += os.read(ours, 65536)
        if keys and keys[0][0] in said:
            os.write(ours, keys.pop(0)[1])
    assert process.wait(20) == 0, said
    assert termios.tcgetattr(its) == before
    os.close(its)
    os.close(ours)
    assert b"bills-3" in said
    assert said.index(b"\x1b[?1049h") < said.index(b"\x1b[?1049l") < said.index(b"ended")
