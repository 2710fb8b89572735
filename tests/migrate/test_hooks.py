"""Hooks: what a dry run, a terminal and the evidence get of them, and what they get."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.migrate.planted import SOURCE, TARGET, WORDS, file, seen, the_set, topic, turned

from sparkmirror.migrate import hands, hooks
from sparkmirror.migrate.actions import Open
from sparkmirror.migrate.file import Fence, FenceHooks, Hook, Hooks, MigrationFile
from sparkmirror.migrate.hands import RealHands
from sparkmirror.migrate.hooks import HookRefused, kept, shown
from sparkmirror.migrate.migration import SwitchPlan
from sparkmirror.migrate.observation import Side
from sparkmirror.migrate.switch_plan import SwitchGoal, Who, whole_plan
from sparkmirror.migrate.writers import ClusterWriters, DryWriters

ENDS = {0: 100, 1: 50}
SEEN = seen(here=topic(ENDS), there=topic(ENDS), forth=turned(WORDS["none"]))
PAIR: Any = SimpleNamespace(
    named={side: "User:mirror" for side in Side},
    words={},
    configs={side: SimpleNamespace(alias=alias) for side, alias in ((SOURCE, "A"), (TARGET, "B"))},
    flows={side: SimpleNamespace(name=str(side)) for side in Side},
)


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hands, "PairObserver", lambda *_: None)


def with_commands(place: Path) -> MigrationFile:
    """A file whose commands leave a file."""
    commands = FenceHooks(stop=Hook(run=f"touch {place}/stopped"), start=Hook(run=f"touch {place}/started"))
    return file(Fence.HOOK).model_copy(update={"name": "move", "hooks": Hooks(fence=commands)})


def test_a_dry_run_runs_no_command(tmp_path: Path) -> None:
    moving = with_commands(tmp_path)
    migration: Any = SimpleNamespace(file=moving, pair=PAIR, hands=lambda writing: RealHands(moving, PAIR, writing))
    goal = SwitchGoal(Who.PRODUCERS, TARGET)
    said: list[str] = []
    todo = whole_plan(moving, SEEN, the_set(moving), goal)
    SwitchPlan(migration=migration, set=the_set(moving), goal=goal, seen=SEEN, actions=todo).dry_run(said.append)
    assert list(tmp_path.iterdir()) == []
    assert f"would run `touch {tmp_path}/stopped`" in said
    assert f"would run `touch {tmp_path}/started`" in said


def test_a_dry_run_shows_no_token_of_a_url() -> None:
    said: list[str] = []
    DryWriters(PAIR, said.append).ask(Hook(run="https://me:pass@flags/producers?token=s3cret"), {})
    assert said == ["would post to `https://flags/producers`"]


class Asked(DryWriters):
    """Writers that keep what hooks get."""

    def __init__(self) -> None:
        super().__init__(PAIR, lambda _: None)
        self.got: list[Any] = []

    def ask(self, hook: Hook, told: Any) -> None:
        self.got.append(told)


def test_a_fences_hook_gets_what_others_get_once_for_each_side(tmp_path: Path) -> None:
    """Producers start where the topics arrive: after an undo, at the old side."""
    moving, writes = with_commands(tmp_path), Asked()
    some = RealHands(moving, PAIR, writes)
    for leaving in (SOURCE, SOURCE, TARGET, TARGET):
        # An undo plans without the hook's fence, and starts what its command has stopped all the same.
        some.act(Open(leaving=leaving, names=("orders",), fence=Fence.NONE), SEEN)
    assert [each["to"] for each in writes.got] == ["target", "source"]
    whole = hooks.payload(moving, the_set(moving), who="all", to=TARGET, step="open", when="before")
    assert {*writes.got[0]} == {*whole}
    assert (writes.got[0]["set"], writes.got[0]["step"], writes.got[0]["when"]) == ("shop", "fence", "start")


@pytest.mark.parametrize(
    ("run", "on_terminals", "in_evidence"),
    [
        ("./stop.sh --token s3cret", "./stop.sh --token s3cret", "./stop.sh"),
        ("TOKEN='s3c ret' ./stop.sh", "TOKEN='s3c ret' ./stop.sh", "./stop.sh"),
        ("echo 'no end", "echo 'no end", "a command"),
        ("https://me:s3cret@flags:8443/p?token=s3cret#x", "https://flags:8443/p", "https://flags:8443"),
        ("http://flags", "http://flags", "http://flags"),
        ("http://[flags?s3cret", "http://[flags", "http://[flags"),
    ],
)
def test_what_is_shown_and_kept_of_a_hook(run: str, on_terminals: str, in_evidence: str) -> None:
    assert shown(Hook(run=run)) == on_terminals
    assert kept(Hook(run=run)) == in_evidence


def refusal(hook: Hook) -> HookRefused:
    with pytest.raises(HookRefused) as caught:
        ClusterWriters(PAIR, None).ask(hook, {"step": "arm"})  # type: ignore[arg-type]
    return caught.value


def test_a_commands_answer_goes_to_terminals_alone() -> None:
    refused = refusal(Hook(run="echo the board says no; exit 3"))
    assert "exit code 3: the board says no" in str(refused)
    assert refused.for_evidence == "hook echo: exit code 3"


def without_a_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nonexistent")


def with_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", partial(open, "/dev/full", "r+b"))


def without_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def fork(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(subprocess, "Popen", fork)


@pytest.mark.parametrize(
    ("lacks", "why"),
    [
        (without_a_directory, errno.ENOENT),
        (with_a_full_disk, errno.ENOSPC),
        (without_a_process, errno.EAGAIN),
    ],
)
def test_a_command_that_cant_be_run_is_a_refusal(
    monkeypatch: pytest.MonkeyPatch, lacks: Callable[[pytest.MonkeyPatch], None], why: int
) -> None:
    """A switch is undone then; an error that nobody knows would leave its producers denied."""
    lacks(monkeypatch)
    assert refusal(Hook(run="true")).for_evidence == f"hook true: can't be run: {os.strerror(why)}"


def test_a_command_that_leaves_a_child_running_has_ended(tmp_path: Path) -> None:
    """A daemon holds its starter's output open for as long as it lives."""
    begun = time.monotonic()
    ClusterWriters(PAIR, None).ask(  # type: ignore[arg-type]
        Hook(run=f"cat > {tmp_path}/given; sleep 30 & echo $! > {tmp_path}/child", timeout=10), {"step": "arm"}
    )
    child = int((tmp_path / "child").read_text())
    os.kill(child, signal.SIGTERM)  # it was left alone
    assert time.monotonic() - begun < 9
    assert json.loads((tmp_path / "given").read_text()) == {"step": "arm"}


def test_a_command_without_an_end_is_killed_with_its_children(tmp_path: Path) -> None:
    refused = refusal(Hook(run=f"sleep 60 & echo $! > {tmp_path}/child; wait", timeout=1))
    assert refused.for_evidence.endswith(": no end within 1 s")
    child = Path(f"/proc/{(tmp_path / 'child').read_text().strip()}/stat")
    until = time.monotonic() + 20
    while child.exists() and " Z " not in child.read_text() and time.monotonic() < until:
        time.sleep(0.05)
    assert time.monotonic() < until


@pytest.mark.parametrize("place", ["[flags", "flags:none", "flags/a b", "127.0.0.1:1"])
def test_a_url_that_is_none_is_a_refusal_without_its_secrets(place: str) -> None:
    refused = refusal(Hook(run=f"http://me:s3cret@{place}?s3cret", timeout=2))
    assert "s3cret" not in f"{refused} {refused.for_evidence}"


def test_a_urls_user_goes_into_a_header_and_nowhere_else() -> None:
    got: list[Any] = []

    class Refuses(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            got.append((self.path, self.headers["Authorization"], body))
            self.send_response(403)
            self.end_headers()
            self.wfile.write(b"s3cret is no token")

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Refuses) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place = f"127.0.0.1:{server.server_address[1]}"
        refused = refusal(Hook(run=f"http://me:p%40ss@{place}/flags?token=s3cret"))
        server.shutdown()
    assert got == [("/flags?token=s3cret", "Basic bWU6cEBzcw==", {"step": "arm"})]
    assert str(refused) == f"hook http://{place}/flags: HTTP status 403: s3cret is no token"
    assert refused.for_evidence == f"hook http://{place}: HTTP status 403"
