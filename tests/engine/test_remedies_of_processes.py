"""Remedies of pumps that stand still, followed on real workers: one is stopped, or all of them."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest
from remedy_case import Case, wait_for_finding, wait_until_gone
from tests.support import mirror_process as mp

from sparkmirror.look.doctor import case as doctors_case
from sparkmirror.look.doctor import lag, pumps
from sparkmirror.look.doctor.finding import Severity
from sparkmirror.mirror.engine.mirror import Mirror
from sparkmirror.snapshot.snapshot import FlowState

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

SOON_S = 4.0


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said after half a minute or a minute is said between two looks."""
    monkeypatch.setattr(pumps, "SILENT_S", SOON_S)
    for module in (doctors_case, lag):
        monkeypatch.setattr(module, "STILL_S", SOON_S)


def run_there(told: str, command: str) -> str:
    """What a command of the text prints on the pump's host, which is this one."""
    (words,) = re.findall(f"`({command} [^`]+)`", told)
    return subprocess.run(shlex.split(words), capture_output=True, text=True, timeout=30, check=False).stdout


@contextmanager
def stopped(mirror: Mirror, tasks: set[int]) -> Iterator[list[int]]:
    """The pumps of these tasks stand still, as after a SIGSTOP or with a frozen container."""
    (flow,) = mirror.observer.snapshot().flows
    pids = [pump.pid for pump in flow.pumps if pump.task in tasks]
    assert len(pids) == len(tasks)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield pids
    finally:
        for pid in pids:
            if psutil.pid_exists(pid):
                os.kill(pid, signal.SIGCONT)


def begin(case: Case, mirror: Mirror) -> None:
    """Two pumps are at work, and have reported each partition's position."""
    mp.wait_for(lambda: case.copied(partitions=2) > 0, 90, "the first records are copied")

    def is_known() -> bool:
        (flow,) = mirror.observer.snapshot().flows
        return len(flow.pumps) == 2 and flow.state in (FlowState.COPYING, FlowState.CAUGHT_UP)

    mp.wait_for(is_known, 60, "both report")


def assert_all_copied(case: Case) -> None:
    """Nobody writes any more."""
    ends = mp.end_offsets(case.source.bootstrap_servers, case.topic, 2)
    there = f"A.{case.topic}"
    mp.wait_for(lambda: mp.end_offsets(case.target.bootstrap_servers, there, 2) == ends, 120, "all is copied")


@pytest.mark.parametrize("way", ["CONT", "KILL"])
def test_a_silent_pump_continues_or_is_ended(way: str, remedy_case: Case) -> None:
    """`ps` says that it is stopped; the other one's partition moves meanwhile."""
    mp.create_topic(remedy_case.source.bootstrap_servers, remedy_case.topic, 2)
    remedy_case.write()
    with remedy_case.running() as mirror:
        with mp.load(remedy_case.source.bootstrap_servers, remedy_case.topic, 2):
            begin(remedy_case, mirror)
            with stopped(mirror, {0}) as (pid,):
                finding = wait_for_finding(mirror, "pumps-silent")
                assert finding.severity is Severity.WARNING
                assert finding.evidence.startswith("1 of 2 pumps")
                assert re.search(rf"^ *{pid} +T", run_there(finding.action, "ps"), re.MULTILINE), "it is stopped"
                run_there(finding.action, f"kill -{way}")
                wait_until_gone(mirror, "pumps-silent")
        assert_all_copied(remedy_case)


def test_a_partition_that_stands_still_moves_once_its_task_is_ended(remedy_case: Case) -> None:
    """Its leader is there, and the process of its task is stopped."""
    mp.create_topic(remedy_case.source.bootstrap_servers, remedy_case.topic, 2)
    remedy_case.write()
    with remedy_case.running() as mirror:
        with mp.load(remedy_case.source.bootstrap_servers, remedy_case.topic, 2):
            begin(remedy_case, mirror)
            with stopped(mirror, {1}) as (pid,):
                finding = wait_for_finding(mirror, "partitions-stuck")
                remedy_case.run(finding.action)
                assert re.search(rf"^ *{pid} +T", run_there(finding.action, "ps"), re.MULTILINE), "it is stopped"
                run_there(finding.action, "kill -KILL")
                wait_until_gone(mirror, "partitions-stuck")
        assert_all_copied(remedy_case)


def test_nothing_moves_until_the_finding_above_is_followed(remedy_case: Case) -> None:
    """All pumps are stopped: that they are silent is said first, and ends it."""
    mp.create_topic(remedy_case.source.bootstrap_servers, remedy_case.topic, 2)
    remedy_case.write()
    with remedy_case.running() as mirror:
        with mp.load(remedy_case.source.bootstrap_servers, remedy_case.topic, 2):
            begin(remedy_case, mirror)
            with stopped(mirror, {0, 1}):
                wait_for_finding(mirror, "no-progress")
                above = wait_for_finding(mirror, "pumps-silent")
                assert above.severity is Severity.CRITICAL
                assert "no-progress" in above.explains
                run_there(above.action, "kill -CONT")
                wait_until_gone(mirror, "no-progress")
                wait_until_gone(mirror, "pumps-silent")
        assert_all_copied(remedy_case)
