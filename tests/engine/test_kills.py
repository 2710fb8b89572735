"""Crash-only: whatever is killed, the target's log is byte for byte the source's."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import mirror_process as mp
import psutil
import pytest

from sparkmirror.demo import KafkaCluster
from sparkmirror.demo.proof import compare_topics

pytestmark = [pytest.mark.broker, pytest.mark.spark]

PARTITIONS = 4


def finish(properties: Path, log: Path) -> None:
    """Copy the rest; fails the test where that is not possible."""
    with mp.MirrorProcess(properties, log, "--once") as mirror:
        assert mirror.process.wait(90) == 0, log.read_text()[-3000:]


def assert_identical(source: KafkaCluster, target: KafkaCluster, topic: str) -> None:
    proofs = compare_topics(source.bootstrap_servers, target.bootstrap_servers, {topic: f"A.{topic}"})
    assert [proof.difference for proof in proofs] == [None] * PARTITIONS
    assert sum(proof.records for proof in proofs) > 0


class Progress:
    """Waits until the target has more than it had the last time."""

    def __init__(self, target: KafkaCluster, topic: str) -> None:
        self._target = target
        self._topic = topic
        self._seen = 0

    def wait(self, timeout_s: float = 60.0) -> None:
        mp.wait_for(self._moved, timeout_s, f"fresh records in A.{self._topic}")

    def moved_in(self, seconds: float) -> bool:
        """Whether anything was added in that time."""
        time.sleep(seconds)
        return self._moved()

    def _moved(self) -> bool:
        total = sum(mp.end_offsets(self._target.bootstrap_servers, f"A.{self._topic}", PARTITIONS))
        moved, self._seen = total > self._seen, max(total, self._seen)
        return moved


def run_killed(
    source: KafkaCluster, target: KafkaCluster, topic: str, tmp_path: Path, kills: int, *, age_ms: int = 0
) -> None:
    mp.create_topic(source.bootstrap_servers, topic, PARTITIONS)
    properties = mp.write_properties(
        tmp_path / "mm2.properties", source.bootstrap_servers, target.bootstrap_servers, topic
    )
    log = tmp_path / "mirror.log"
    progress = Progress(target, topic)
    pauses = random.Random(kills)
    with mp.load(source.bootstrap_servers, topic, PARTITIONS, age_ms=age_ms):
        for _ in range(kills):
            with mp.MirrorProcess(properties, log) as mirror:
                progress.wait()
                time.sleep(pauses.random())
                mirror.kill_all()
    finish(properties, log)
    assert_identical(source, target, topic)


def test_driver_and_all_it_started_killed(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    run_killed(source_cluster, target_cluster, topic_name, tmp_path, kills=2)


@pytest.mark.full
def test_driver_killed_twenty_times(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    run_killed(source_cluster, target_cluster, topic_name, tmp_path, kills=20)


@pytest.mark.full
def test_workers_killed_under_load(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, PARTITIONS)
    properties = mp.write_properties(
        tmp_path / "mm2.properties", source_cluster.bootstrap_servers, target_cluster.bootstrap_servers, topic_name
    )
    log = tmp_path / "mirror.log"
    progress = Progress(target_cluster, topic_name)
    with (
        mp.load(source_cluster.bootstrap_servers, topic_name, PARTITIONS),
        mp.MirrorProcess(properties, log) as mirror,
    ):
        for _ in range(6):
            progress.wait()
            workers = mirror.workers()
            assert workers, "no Python worker is running"
            random.choice(workers).send_signal(signal.SIGKILL)
            time.sleep(1.0)
        progress.wait()
        assert mirror.terminate() == 0
    finish(properties, log)
    assert_identical(source_cluster, target_cluster, topic_name)


@pytest.mark.full
def test_two_drivers_on_one_file(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    """One works, the other stands by, and takes over when the first is killed."""
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, PARTITIONS)
    properties = mp.write_properties(
        tmp_path / "mm2.properties", source_cluster.bootstrap_servers, target_cluster.bootstrap_servers, topic_name
    )
    progress = Progress(target_cluster, topic_name)
    with (
        mp.load(source_cluster.bootstrap_servers, topic_name, PARTITIONS),
        mp.MirrorProcess(properties, tmp_path / "first.log") as first,
    ):
        progress.wait()
        with mp.MirrorProcess(properties, tmp_path / "second.log") as second:
            time.sleep(8)
            assert not second.workers(), "the second works though the first lives"
            progress.wait()
            first.kill_all()
            progress.wait()
            mp.wait_for(lambda: bool(second.workers()), 30, "the second takes over")
            progress.wait()
            assert second.terminate() == 0
    finish(properties, tmp_path / "last.log")
    assert_identical(source_cluster, target_cluster, topic_name)


@pytest.mark.full
def test_rivals_without_a_lease(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    """Two processes append to the same partitions at the same time; the leader lets one in each time."""
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, PARTITIONS)
    mp.produce(source_cluster.bootstrap_servers, topic_name, PARTITIONS, 50_000)
    properties = mp.write_properties(
        tmp_path / "mm2.properties", source_cluster.bootstrap_servers, target_cluster.bootstrap_servers, topic_name
    )
    with (
        mp.load(source_cluster.bootstrap_servers, topic_name, PARTITIONS),
        mp.MirrorProcess(properties, tmp_path / "first.log", "--no-lease") as first,
        mp.MirrorProcess(properties, tmp_path / "second.log", "--no-lease") as second,
    ):
        mp.wait_for(lambda: bool(first.workers() and second.workers()), 40, "both work")
        time.sleep(20)
        assert all(isinstance(one, psutil.Process) for one in (*first.workers(), *second.workers()))
        assert first.workers()
        assert second.workers()
    finish(properties, tmp_path / "last.log")
    assert_identical(source_cluster, target_cluster, topic_name)


@pytest.mark.full
def test_a_driver_that_was_suspended_goes_on(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    """Its pumps hear nothing and end; when it wakes it has lost the lease, gets it again, and plans anew."""
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, PARTITIONS)
    properties = mp.write_properties(
        tmp_path / "mm2.properties", source_cluster.bootstrap_servers, target_cluster.bootstrap_servers, topic_name
    )
    log = tmp_path / "mirror.log"
    progress = Progress(target_cluster, topic_name)
    with (
        mp.load(source_cluster.bootstrap_servers, topic_name, PARTITIONS),
        mp.MirrorProcess(properties, log) as mirror,
    ):
        progress.wait()
        mirror.process.send_signal(signal.SIGSTOP)
        time.sleep(12)
        progress.wait(1)
        assert not progress.moved_in(3), "the pumps of a driver that is stopped still write"
        mirror.process.send_signal(signal.SIGCONT)
        progress.wait()
        assert mirror.terminate() == 0
    assert "no word from the driver" in log.read_text()
    finish(properties, log)
    assert_identical(source_cluster, target_cluster, topic_name)
