"""Remedies of heartbeats that stay away and of a turn that hangs, followed on real clusters: a start."""

from __future__ import annotations

import re
import threading

import pytest
from remedy_case import APART_S, Case, found, wait_for_finding, wait_until_gone
from tests.support import mirror_process as mp
from tests.support.in_process import sparkmirror
from tests.support.mirror_thread import run_mirror

from sparkmirror.look.doctor import clocks, duties
from sparkmirror.mirror.sync import heartbeat_duty

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

BEATS = {
    "heartbeats.topic.replication.factor": "1",
    "emit.heartbeats.enabled": "true",
    "emit.heartbeats.interval.seconds": "1",
}


def test_the_mirror_that_writes_heartbeats_is_started_again(remedy_case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command says that it does not run; what is told with it starts it."""
    monkeypatch.setattr(clocks, "SILENT_S", APART_S - 2)
    mp.create_topic(remedy_case.source.bootstrap_servers, remedy_case.topic, 1)
    remedy_case.write(**{"heartbeats.replication.enabled": "true"})
    upstream = mp.write_properties(
        remedy_case.directory / "upstream.properties",
        remedy_case.target.bootstrap_servers,
        remedy_case.source.bootstrap_servers,
        f"{remedy_case.topic}-none",
        BEATS,
        takes_source=False,
    )
    text = re.sub(r"\bA\b", "C", upstream.read_text())
    upstream.write_text(re.sub(r"\bB\b", "A", text))
    with remedy_case.running() as mirror:

        def beats() -> int:
            return mirror.observer.snapshot().flows[0].heartbeat_latency.total

        with run_mirror(upstream, remedy_case.spark):
            mp.wait_for(lambda: beats() > 0, 90, "heartbeats come")
        finding = wait_for_finding(mirror, "heartbeats-missing")
        status, start, _ = re.findall(r"`sparkmirror (\w+) FILE`", finding.action)
        assert start == "run"
        # By default a status is old after a minute.
        mp.wait_for(
            lambda: "is the mirror running?" in sparkmirror(status, str(upstream), "--stale", "5").stderr,
            60,
            "it is old",
        )
        with run_mirror(upstream, remedy_case.spark):
            wait_until_gone(mirror, "heartbeats-missing")
            before = beats()
            mp.wait_for(lambda: beats() > before, 30, "heartbeats come again")


def test_a_process_with_a_turn_that_hangs_is_started_again(remedy_case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real cluster that hangs makes a turn fail, so this one waits in our own code."""
    monkeypatch.setattr(duties, "GRACE_S", 3.0)
    mp.create_topic(remedy_case.source.bootstrap_servers, remedy_case.topic, 1)
    mp.produce(remedy_case.source.bootstrap_servers, remedy_case.topic, 1, 10)
    remedy_case.write(**BEATS)
    goes_on, turn = threading.Event(), heartbeat_duty.Heartbeats.run

    def hangs(duty: heartbeat_duty.Heartbeats) -> None:
        goes_on.wait()
        turn(duty)

    try:
        with monkeypatch.context() as patched:
            patched.setattr(heartbeat_duty.Heartbeats, "run", hangs)
            with remedy_case.running() as mirror:
                finding = wait_for_finding(mirror, "duty-late")
                assert finding.subject == "heartbeats"
                assert finding.action.startswith("Start the process again")
        mp.produce(remedy_case.source.bootstrap_servers, remedy_case.topic, 1, 10)
        with remedy_case.running() as mirror:
            mp.wait_for(lambda: remedy_case.copied() == 20, 90, "copying continues where it ended")
            mp.wait_for(lambda: found(mirror, "duty-late") is None, 30, "no turn is late")
            (duty,) = (one for one in mirror.observer.snapshot().flows[0].duties if one.duty == "heartbeats")
            assert duty.succeeded_ms is not None
    finally:
        goes_on.set()
