"""What a mirror has lost is known to the process that takes over after a kill, and to operators who acknowledge it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from lab import KafkaCluster
from test_verify import plain, write
from tests.support import loss_tools as lt
from tests.support import mirror_process as mp

from sparkmirror.config import load_mm2_properties
from sparkmirror.demo.ports import free_ports
from sparkmirror.look.doctor.losses import LOSSES
from sparkmirror.look.page.summary import summary
from sparkmirror.snapshot.snapshot import FlowState, Role, Snapshot
from sparkmirror.snapshot.status_topic import read_status

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

RULES = {rule.name for rule in LOSSES}
EXPIRED, FOREIGN, DELETED, AGAIN = "expired", "foreign", "deleted", "again"


class _Told(NamedTuple):
    """What a process says of its losses."""

    tone: str
    lines: str
    verdict: str
    reasons: tuple[str, ...]
    findings: tuple[tuple[str, ...], ...]
    entries: frozenset[str]
    counted: frozenset[str]
    """Series of metrics."""


class _Mirror:
    """Two processes on one file, of a flow of its own ledger."""

    def __init__(self, source: KafkaCluster, target: KafkaCluster, topic: str, directory: Path) -> None:
        self.source, self.target, self.topic, self.directory = source, target, topic, directory
        self.alias = "S" + re.sub(r"\W", "", topic)
        self.ports = free_ports(2)
        self.processes: dict[int, mp.MirrorProcess] = {}
        for port in self.ports:
            settings = {"sparkmirror.metrics.listeners": f"http://127.0.0.1:{port}", "groups": f"{topic}-none"}
            servers = source.bootstrap_servers, target.bootstrap_servers
            file = mp.write_properties(self.file(port), *servers, f"{topic}-.*", settings)
            file.write_text(re.sub(r"\bA\b", self.alias, file.read_text()))

    def file(self, port: int) -> Path:
        return self.directory / f"mm2-{port}.properties"

    def copy_of(self, name: str) -> str:
        return f"{self.alias}.{self.topic}-{name}"

    def start(self, port: int) -> None:
        command = (sys.executable, str(Path(__file__).with_name("hurried.py")), "run")
        self.processes[port] = mp.MirrorProcess(self.file(port), self.directory / f"{port}.log", command=command)

    def snapshot(self, port: int) -> Snapshot | None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/snapshot", timeout=10) as answer:
                return Snapshot.from_json(answer.read())
        except OSError:
            return None

    def has_role(self, port: int, role: Role) -> bool:
        now = self.snapshot(port)
        return now is not None and [flow.role for flow in now.flows] == [role]

    def is_level(self, port: int) -> bool:
        now = self.snapshot(port)
        return now is not None and [(flow.state, flow.lag) for flow in now.flows] == [(FlowState.CAUGHT_UP, 0)]

    def told(self, port: int) -> _Told:
        """By the page and the doctor of a process, and by its metrics."""
        now = self.snapshot(port)
        assert now is not None
        told = summary(now, now_ms=now.at_ms)
        (flow,) = told["flows"]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return _Told(
            flow["tone"],
            re.sub(r"since .+?\.(?= |$)", "", f"{flow['what']} {flow['then']}"),
            flow["cut_over"]["verdict"],
            tuple(words for _, mark, words in flow["cut_over"]["conditions"] if mark != "ok"),
            tuple(tuple(one.values()) for one in told["findings"] if one["rule"] in RULES),
            frozenset(f"{row.number} {row.kind} {row.outcome} {row.words}" for row in now.flows[0].loss_entries),
            frozenset(
                line for line in lines if line.startswith(("sparkmirror_lost", "sparkmirror_losses", "sparkmirror_exp"))
            ),
        )

    def say(self, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
        """What a verb says of the flow, in a process of its own."""
        command = [mp.COMMAND, *verb.split(), str(self.file(self.ports[0])), *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)

    def status(self) -> tuple[int, Any]:
        """Exit code of the health check, and what the status says of losses."""
        done = self.say("status", "--check", "-o", "json")
        (row,) = json.loads(done.stdout)
        return done.returncode, (row["healthy"], row["reason"], row["losses"], row["acknowledged"])

    def published_by(self, port: int) -> bool:
        """Whether the status at the target is that of a process."""
        (flow,) = load_mm2_properties(str(self.file(port))).flows
        now = read_status(flow).flow
        return now is not None and now.leader.endswith(f":{self.processes[port].process.pid}")

    def lost(self) -> list[tuple[str, str, str]]:
        """Kind, topic and outcome of what the verb lists."""
        listed = json.loads(self.say("losses", "-o", "json").stdout)
        return sorted((row["kind"], row["source_topic"].rpartition("-")[2], row["outcome"]) for row in listed)


@pytest.fixture
def mirror(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> Iterator[_Mirror]:
    made = _Mirror(source_cluster, target_cluster, topic_name, tmp_path)
    for name in (EXPIRED, FOREIGN, DELETED, AGAIN):
        mp.create_topic(source_cluster.bootstrap_servers, f"{topic_name}-{name}", 1)
        mp.produce(source_cluster.bootstrap_servers, f"{topic_name}-{name}", 1, 50)
    try:
        yield made
    finally:
        for process in made.processes.values():
            process.kill_all()


def end(mirror: _Mirror, name: str) -> int:
    return mp.end_offsets(mirror.target.bootstrap_servers, mirror.copy_of(name), 1)[0]


def lose(mirror: _Mirror) -> None:
    """Records expire, a stranger writes, a copy is deleted, and a topic whose records are all copied is made again."""
    here, there = mirror.source.bootstrap_servers, mirror.target.bootstrap_servers
    assert mirror.say("pause").returncode == 0
    mp.wait_for(lambda: "paused" in mirror.say("status").stdout, 60, "all is paused")
    mp.produce(here, f"{mirror.topic}-{EXPIRED}", 1, 100)
    lt.delete_records(mirror.source, f"{mirror.topic}-{EXPIRED}", 0, before=77)
    write(mirror.target, mirror.copy_of(FOREIGN), plain(range(5)))
    mp.produce(here, f"{mirror.topic}-{FOREIGN}", 1, 10)
    assert mirror.say("resume").returncode == 0
    mp.wait_for(lambda: end(mirror, EXPIRED) == 123, 90, "what is left is copied")
    lt.delete_topic(mirror.target, mirror.copy_of(DELETED))
    mp.wait_for(lambda: end(mirror, DELETED) == 50, 90, "the deleted copy is made again")
    lt.recreate_topic(mirror.source, f"{mirror.topic}-{AGAIN}", 1)
    mp.produce(here, f"{mirror.topic}-{AGAIN}", 1, 7)
    mp.wait_for(lambda: end(mirror, AGAIN) == 57, 90, "the new topic is copied after the old one")
    assert mp.end_offsets(there, mirror.copy_of(FOREIGN), 1) == [65]


def test_a_takeover_after_a_kill_says_the_same_until_an_operator_says_that_it_is_known(mirror: _Mirror) -> None:
    first, second = mirror.ports
    mirror.start(first)
    mp.wait_for(lambda: mirror.is_level(first) and end(mirror, AGAIN) == 50, 120, "all is copied")
    mirror.start(second)
    mp.wait_for(lambda: mirror.has_role(second, Role.STANDBY), 120, "another process stands by")
    lose(mirror)
    wanted = [
        ("expired", EXPIRED, "lost"),
        ("foreign-writer", FOREIGN, "foreign"),
        ("recreated", AGAIN, "may be lost"),
        ("target-recreated", DELETED, "healed"),
    ]
    mp.wait_for(lambda: mirror.lost() == wanted, 60, "the ledger has all")
    mp.wait_for(lambda: mirror.is_level(first), 60, "all is copied")
    mp.wait_for(lambda: len(mirror.told(first).entries) == 4, 30, "the process knows all")
    before = mirror.told(first)
    assert (before.tone, before.verdict) == ("bad", "not yet")
    assert "27 offsets were lost for good" in before.lines.lower()
    assert "records may be lost (1 entry)" in before.lines.lower()
    assert "another producer has written 5 offsets to copies" in before.lines.lower()
    assert [(rule, severity) for rule, severity, *_ in before.findings] == [
        ("records-lost", "critical"),
        ("records-may-be-lost", "warning"),
        ("foreign-writer", "warning"),
        ("copy-healed", "notice"),
    ]
    alias = f'flow="{mirror.alias}->B"'
    assert {
        f'sparkmirror_lost_records_total{{{alias},kind="expired",outcome="lost"}} 27',
        f'sparkmirror_losses_total{{{alias},kind="recreated",outcome="may be lost"}} 1',
    } <= before.counted
    mp.wait_for(lambda: mirror.status()[1][2] == 2, 30, "the status is published")
    known = mirror.status()
    assert (known[0], known[1][0]) == (1, False)

    mirror.processes.pop(first).kill_all()
    mp.wait_for(lambda: mirror.has_role(second, Role.LEADER) and mirror.is_level(second), 120, "the other one works")
    assert mirror.told(second) == before
    mp.wait_for(lambda: mirror.published_by(second), 30, "it publishes the status")
    assert mirror.status() == known

    said = mirror.say("losses ack", "nobody needs them", "--topics", ".*-(expired|again)")
    assert said.returncode == 0, said.stderr
    mp.wait_for(lambda: mirror.status()[0] == 0, 30, "it is healthy")
    assert mirror.status()[1][2:] == (0, 2)
    now = mirror.told(second)
    assert (now.tone, now.verdict) == ("warning", "ready"), now
    assert [rule for rule, *_ in now.findings] == ["foreign-writer", "copy-healed"]
    assert now.counted == before.counted
    assert mirror.lost() == wanted
    listed = mirror.say("losses").stdout
    assert len(re.findall(r" \(acknowledged .* UTC by .+@.+: nobody needs them\)$", listed, re.MULTILINE)) == 2
    assert mirror.say("losses ack", "so are these").returncode == 0
    mp.wait_for(lambda: mirror.told(second).findings == (), 30, "nothing is left to say")
    assert mirror.told(second).tone == "good"

    mirror.start(first)
    mp.wait_for(lambda: mirror.has_role(first, Role.STANDBY), 120, "another process stands by")
    mirror.processes.pop(second).kill_all()
    mp.wait_for(lambda: mirror.has_role(first, Role.LEADER) and mirror.is_level(first), 120, "the other one works")
    assert (mirror.told(first).tone, mirror.told(first).findings, mirror.status()[0]) == ("good", (), 0)
    assert mirror.say("losses undo", "--topics", ".*-expired").returncode == 0
    mp.wait_for(lambda: mirror.status()[0] == 1, 30, "the loss counts again")
    assert [rule for rule, *_ in mirror.told(first).findings] == ["records-lost"]
