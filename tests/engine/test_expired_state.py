"""Idle for longer than the target keeps producer state: then no state guards what comes next.

The target forgets a producer five seconds after its last record, not a day.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from lab import KafkaCluster
from tests.support import mirror_process as mp
from tests.support.loaded_flow import PARTITIONS, LoadedFlow, running
from tests.support.loss_tools import delete_records, records

from sparkmirror.config import ClusterConfig
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.producers import describe_producers

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

EXPIRY = {"producer.id.expiration.ms": "5000", "producer.id.expiration.check.interval.ms": "1000"}


@pytest.fixture(scope="module")
def forgetful_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    cluster = KafkaCluster(tmp_path_factory.mktemp("idle", numbered=False), properties=EXPIRY)
    with running(cluster):
        yield cluster


@pytest.fixture
def flow(source_cluster: KafkaCluster, forgetful_target: KafkaCluster, topic_name: str, tmp_path: Path) -> LoadedFlow:
    return LoadedFlow(source_cluster, forgetful_target, topic_name, tmp_path)


def load_for_a_while(flow: LoadedFlow) -> None:
    with flow.load():
        flow.wait_for_progress(90)
        time.sleep(2)


def wait_until_copied(flow: LoadedFlow) -> None:
    mp.wait_for(lambda: ends(flow.target, f"A.{flow.topic}") == ends(flow.source, flow.topic), 90, "all copied")


def ends(cluster: KafkaCluster, topic: str) -> list[int]:
    return mp.end_offsets(cluster.bootstrap_servers, topic, PARTITIONS)


def wait_until_forgotten(flow: LoadedFlow) -> None:
    """Wait until the target knows no producer of any partition, and find that it knew some."""
    client = ClusterClient(ClusterConfig(alias="B", bootstrap_servers=(flow.target.bootstrap_servers,)), "test")
    remote = f"A.{flow.topic}"

    def known() -> int:
        found = describe_producers(client, 1, {remote: range(PARTITIONS)})
        assert not any(one.error for one in found.values())
        return sum(len(one.producers) for one in found.values())

    try:
        client.metadata([remote])
        mp.wait_for(lambda: known() == 0, 180, "producer state expired")
    finally:
        client.close()


def test_the_same_pump_continues(flow: LoadedFlow) -> None:
    with flow.start() as mirror:
        for _ in range(2):
            load_for_a_while(flow)
            wait_until_copied(flow)
            wait_until_forgotten(flow)
        assert mirror.terminate(60) == 0
    flow.finish()


def test_successors_continue(flow: LoadedFlow) -> None:
    """Each was killed under load, so that each next one starts without state and an unclean round before it."""
    for _ in range(2):
        with flow.load(), flow.start() as mirror:
            flow.wait_for_progress(90)
            time.sleep(1)
            mirror.kill_all()
        wait_until_forgotten(flow)
    flow.finish()


@pytest.mark.parametrize("running", [True, False])
def test_the_log_is_empty_too(flow: LoadedFlow, running: bool) -> None:
    """Retention has deleted all that was copied and the broker was restarted: segments and log end tell (R9c)."""
    with contextlib.ExitStack() as stack:
        mirror = stack.enter_context(flow.start())
        load_for_a_while(flow)
        wait_until_copied(flow)
        if not running:
            mirror.kill_all()
        wait_until_forgotten(flow)
        cuts = ends(flow.target, f"A.{flow.topic}")
        for partition, cut in enumerate(cuts):
            delete_records(flow.target, f"A.{flow.topic}", partition, before=cut)
        (broker,) = flow.target.brokers
        broker.restart()
        wait_until_forgotten(flow)
        if not running:
            mirror = stack.enter_context(flow.start(log="successor"))
        load_for_a_while(flow)
        wait_until_copied(flow)
        assert mirror.terminate(60) == 0
    for partition, cut in enumerate(cuts):
        theirs = records(flow.source, flow.topic, partition)
        rest = {offset: one for offset, one in theirs.items() if offset >= cut}
        assert rest
        assert records(flow.target, f"A.{flow.topic}", partition) == rest


def send(processes: list[psutil.Process], what: signal.Signals) -> None:
    for one in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.send_signal(what)


def test_a_pump_that_was_stopped_past_the_expiry_writes_no_more(flow: LoadedFlow) -> None:
    """Stopped under load; another takes over and copies all; then the state expires, and the first one wakes.

    First the pumps alone: no driver tells them that their time is over.
    """
    with contextlib.ExitStack() as stack:
        present = stack.enter_context(flow.start(log="mirror-0"))
        for number in range(1, 3):
            with flow.load():
                flow.wait_for_progress(90)
                time.sleep(1 + number / 7)
                sleepers, drivers = present.workers(), present.family()
                assert sleepers
                send(drivers, signal.SIGSTOP)
                successor = stack.enter_context(flow.start(log=f"mirror-{number}"))
                mp.wait_for(lambda: bool(successor.workers()), 90, "the successor's pumps")  # noqa: B023
                flow.wait_for_progress(90)
            wait_until_copied(flow)
            wait_until_forgotten(flow)
            copied = ends(flow.target, f"A.{flow.topic}")
            send(sleepers, signal.SIGCONT)
            time.sleep(6)
            assert ends(flow.target, f"A.{flow.topic}") == copied
            send(drivers, signal.SIGCONT)
            time.sleep(4)
            assert ends(flow.target, f"A.{flow.topic}") == copied
            present.kill_all()
            present = successor
        assert present.terminate(60) == 0
    flow.finish()
