"""Several brokers on both sides, many partitions, large records, and leaders that move."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from lab import KafkaCluster
from tests.support import mirror_process as mp
from tests.support.started import started

from sparkmirror.demo.proof import compare_topics

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

MANY = 1_000
IDLE_S = 20.0
MEMORY_LIMIT = 256 << 20

Pair = tuple[KafkaCluster, KafkaCluster]


@pytest.fixture(scope="module")
def three_brokers_a_side(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    pair = (
        KafkaCluster(tmp_path_factory.mktemp("source3", numbered=False), brokers=3),
        KafkaCluster(tmp_path_factory.mktemp("target3", numbered=False), brokers=3),
    )
    with started(*pair):
        yield pair


def cpu_seconds(processes: list[psutil.Process]) -> float:
    total = 0.0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def assert_identical(pair: Pair, topic: str, records: int) -> None:
    source, target = pair
    proofs = compare_topics(source.bootstrap_servers, target.bootstrap_servers, {topic: f"A.{topic}"})
    assert {proof.difference for proof in proofs} == {None}
    assert sum(proof.records for proof in proofs) == records


def test_a_thousand_partitions_start_catch_up_and_idle_cheaply(
    three_brokers_a_side: Pair, topic_name: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    source, target = three_brokers_a_side
    mp.create_topic(source.bootstrap_servers, topic_name, MANY)
    mp.produce(source.bootstrap_servers, topic_name, MANY, 20 * MANY)
    properties = mp.write_properties(
        tmp_path / "mm2.properties",
        source.bootstrap_servers,
        target.bootstrap_servers,
        topic_name,
        {"refresh.topics.interval.seconds": "600"},
    )
    with mp.MirrorProcess(properties, tmp_path / "mirror.log") as mirror:
        mp.wait_for(
            lambda: sum(mp.end_offsets(target.bootstrap_servers, f"A.{topic_name}", MANY)) == 20 * MANY,
            120,
            "all copied",
        )
        time.sleep(15)  # the JIT of Spark's JVM comes to rest
        family = mirror.family()
        before = cpu_seconds(family)
        time.sleep(IDLE_S)
        share = (cpu_seconds(family) - before) / IDLE_S
        record_property("idle_share_of_a_core", round(share, 4))
        print(f"idle with {MANY} partitions: {share:.1%} of a core")
        assert share < 0.10
        assert mirror.terminate() == 0
    assert_identical(three_brokers_a_side, topic_name, 20 * MANY)


def test_memory_with_records_of_a_megabyte(
    three_brokers_a_side: Pair, topic_name: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    source, target = three_brokers_a_side
    mp.create_topic(source.bootstrap_servers, topic_name, 6)
    mp.produce(source.bootstrap_servers, topic_name, 6, 600, codec=None, size=1_000_000)
    properties = mp.write_properties(
        tmp_path / "mm2.properties", source.bootstrap_servers, target.bootstrap_servers, topic_name, {"tasks.max": "1"}
    )
    largest = 0
    with mp.MirrorProcess(properties, tmp_path / "mirror.log") as mirror:
        deadline = time.monotonic() + 120
        while sum(mp.end_offsets(target.bootstrap_servers, f"A.{topic_name}", 6)) < 600:
            assert time.monotonic() < deadline
            for worker in mirror.workers():
                with contextlib.suppress(psutil.NoSuchProcess):
                    largest = max(largest, worker.memory_info().rss)
        assert mirror.terminate() == 0
    record_property("largest_pump_bytes", largest)
    print(f"largest pump: {largest / 2**20:.0f} MB")
    assert 0 < largest < MEMORY_LIMIT
    assert_identical(three_brokers_a_side, topic_name, 600)


def test_brokers_restart_and_leaders_move_under_load(
    three_brokers_a_side: Pair, topic_name: str, tmp_path: Path
) -> None:
    source, target = three_brokers_a_side
    for cluster, name in ((source, topic_name), (target, f"A.{topic_name}")):
        mp.create_topic(cluster.bootstrap_servers, name, 6, {"min.insync.replicas": "2"}, replication_factor=3)
    properties = mp.write_properties(
        tmp_path / "mm2.properties",
        source.bootstrap_servers,
        target.bootstrap_servers,
        topic_name,
        {"replication.factor": "3"},
    )
    with (
        mp.load(source.bootstrap_servers, topic_name, 6) as stop,
        mp.MirrorProcess(properties, tmp_path / "mirror.log") as mirror,
    ):
        mp.wait_for(lambda: copied(target, topic_name) > 0, 180, "the first records")
        for cluster in (target, source):
            for broker in cluster.brokers[:2]:
                broker.kill()
                time.sleep(6)
                broker.restart()
                time.sleep(4)
                seen = copied(target, topic_name)
                mp.wait_for(lambda: copied(target, topic_name) > seen, 180, "fresh records")  # noqa: B023
        stop.set()
        mp.wait_for(lambda: copied(target, topic_name) == written(source, topic_name), 180, "caught up")
        assert mirror.terminate() == 0
    assert_identical(three_brokers_a_side, topic_name, written(source, topic_name))


def copied(target: KafkaCluster, topic: str) -> int:
    return sum(mp.end_offsets(target.bootstrap_servers, f"A.{topic}", 6))


def written(source: KafkaCluster, topic: str) -> int:
    return sum(mp.end_offsets(source.bootstrap_servers, topic, 6))
