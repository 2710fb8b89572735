"""Crash-only: whatever is killed, the target's log is byte for byte the source's."""

from __future__ import annotations

import random
import signal
import time

import pytest
from tests.support import mirror_process as mp
from tests.support.loaded_flow import PARTITIONS, LoadedFlow

pytestmark = [pytest.mark.broker, pytest.mark.spark]


def run_killed(flow: LoadedFlow, kills: int, *, age_ms: int = 0) -> None:
    pauses = random.Random(kills)
    with flow.load(age_ms=age_ms):
        for _ in range(kills):
            with flow.start() as mirror:
                flow.wait_for_progress()
                time.sleep(pauses.random())
                mirror.kill_all()
    flow.finish()


@pytest.mark.full
def test_driver_and_all_it_started_killed(flow: LoadedFlow) -> None:
    run_killed(flow, kills=2)


@pytest.mark.full
def test_driver_killed_twenty_times(flow: LoadedFlow) -> None:
    run_killed(flow, kills=20)


@pytest.mark.full
def test_workers_killed_under_load(flow: LoadedFlow) -> None:
    with flow.load(), flow.start() as mirror:
        for _ in range(6):
            flow.wait_for_progress()
            workers = mirror.workers()
            assert workers, "no Python worker is running"
            random.choice(workers).send_signal(signal.SIGKILL)
            time.sleep(1.0)
        flow.wait_for_progress()
        assert mirror.terminate() == 0
    flow.finish()


@pytest.mark.full
def test_rivals_without_a_lease(flow: LoadedFlow) -> None:
    """Two processes append to the same partitions at the same time; the leader lets one in each time."""
    mp.produce(flow.source.bootstrap_servers, flow.topic, PARTITIONS, 50_000)
    with (
        flow.load(),
        flow.start("--no-lease", log="first") as first,
        flow.start("--no-lease", log="second") as second,
    ):
        mp.wait_for(lambda: bool(first.workers() and second.workers()), 180, "both work")
        time.sleep(20)
        assert first.workers()
        assert second.workers()
    flow.finish()


@pytest.mark.full
def test_a_driver_that_was_suspended_continues(flow: LoadedFlow) -> None:
    """Its pumps hear nothing and end; when it wakes it has lost the lease, gets it again, and plans again."""
    with flow.load(), flow.start() as mirror:
        flow.wait_for_progress()
        mirror.process.send_signal(signal.SIGSTOP)
        time.sleep(12)
        assert not flow.moved_in(3), "the pumps of a driver that is stopped still write"
        mirror.process.send_signal(signal.SIGCONT)
        flow.wait_for_progress()
        assert mirror.terminate() == 0
        assert "no word from the driver" in mirror.log.read_text()
    flow.finish()
