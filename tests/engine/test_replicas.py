"""Replicas: a follower nearby is fetched from (KIP-392), and too few of them in sync stop a partition for a while."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import KafkaCluster
from lab.cluster import Broker
from pyspark.sql import SparkSession
from test_rival_views import SteppedPump, driver_of
from tests.support import mirror_process as mp
from tests.support.loaded_flow import assert_copied
from tests.support.mirror_thread import receipt, run_mirror

from sparkmirror.config import ClusterConfig
from sparkmirror.demo import DemoBroker
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.topic_descriptions import PartitionDescription
from sparkmirror.mirror.engine.mirror import Mirror

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

PARTITIONS = 3


class RackedCluster(KafkaCluster):
    """Three brokers, each in a rack of its own; consumers are sent to the replica in theirs."""

    def _settings(self, broker: DemoBroker) -> dict[str, str]:
        return super()._settings(broker) | {
            "broker.rack": f"rack-{broker.node_id}",
            "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
        }


@pytest.fixture(scope="module")
def racked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    cluster = RackedCluster(tmp_path_factory.mktemp("racked", numbered=False), brokers=3)
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.cleanup(keep_logs=True)


def test_the_nearest_replica_is_fetched_from(
    racked: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    """From the follower in our rack; when it stops, from the leader; when it is back, from it again."""
    nearby = racked.brokers[1]
    mp.create_topic(racked.bootstrap_servers, topic_name, PARTITIONS, replication_factor=3)
    mp.produce(racked.bootstrap_servers, topic_name, PARTITIONS, 300)
    settings = {"A.consumer.client.rack": f"rack-{nearby.node_id}"}
    with driver_of(racked, target_cluster, topic_name, tmp_path, settings) as driver:
        pump = SteppedPump(driver.orders.order(driver.partitions()))

        def fetched_from() -> dict[int, int]:
            """Partition to broker."""
            return {copy.route.partition: connection.lane.broker for copy, connection in pump.fetching.items()}

        def copied() -> int:
            return sum(copy.progress.upstream or 0 for copy in pump.copies)

        def follow(records: int) -> None:
            mp.produce(racked.bootstrap_servers, topic_name, PARTITIONS, 300)
            pump.turn_until(lambda: copied() == records)

        pump.turn_until(lambda: copied() == 300)
        leaders = {copy.route.partition: copy.reading.source_leader for copy in pump.copies if copy.reading}
        assert sorted(leaders.values()) == [1, 2, 3], "one led by each broker, so two are followed by the nearest"
        pump.turn_until(lambda: set(fetched_from().values()) == {nearby.node_id})
        follow(600)
        assert fetched_from() == dict.fromkeys(range(PARTITIONS), nearby.node_id)
        nearby.terminate()
        follow(900)
        assert nearby.node_id not in fetched_from().values()
        kept = {index: leader for index, leader in leaders.items() if leader != nearby.node_id}
        assert kept.items() <= fetched_from().items()
        nearby.start()
        pump.turn_until(lambda: fetched_from() == dict.fromkeys(range(PARTITIONS), nearby.node_id))
        follow(1200)
        pump.close()
    assert_copied(racked, target_cluster, {topic_name: f"A.{topic_name}"}, 1200)


def test_the_follower_is_killed_under_load(
    racked: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    mp.create_topic(racked.bootstrap_servers, topic_name, PARTITIONS, replication_factor=3)
    path = mp.write_properties(
        tmp_path / "mm2.properties",
        racked.bootstrap_servers,
        target_cluster.bootstrap_servers,
        topic_name,
        {"A.consumer.client.rack": "rack-2"},
    )

    def copied() -> int:
        return sum(mp.end_offsets(target_cluster.bootstrap_servers, f"A.{topic_name}", PARTITIONS))

    def written() -> int:
        return sum(mp.end_offsets(racked.bootstrap_servers, topic_name, PARTITIONS))

    with (
        mp.load(racked.bootstrap_servers, topic_name, PARTITIONS, per_s=500) as stop,
        mp.MirrorProcess(path, tmp_path / "mirror.log") as mirror,
    ):
        mp.wait_for(lambda: copied() > 0, 90, "the first records")
        for _ in range(2):
            racked.brokers[1].kill()
            time.sleep(6)
            racked.brokers[1].start()
            seen = copied()
            mp.wait_for(lambda: copied() > seen, 90, "fresh records")  # noqa: B023
        stop.set()
        time.sleep(1)
        mp.wait_for(lambda: copied() == written(), 90, "caught up")
        assert mirror.terminate(60) == 0
    assert_copied(racked, target_cluster, {topic_name: f"A.{topic_name}"}, written())


def only_partition(cluster: KafkaCluster, topic: str) -> PartitionDescription:
    config = ClusterConfig(alias="any", bootstrap_servers=tuple(cluster.bootstrap_servers.split(",")))
    with ClusterAdmin.connect(config, "test") as admin:
        return admin.topics([topic])[topic].partitions[0]


def follower(cluster: KafkaCluster, topic: str) -> Broker:
    """One that does not lead its partition."""
    leader = only_partition(cluster, topic).leader
    return next(broker for broker in cluster.brokers if broker.node_id != leader)


def reason(mirror: Mirror, topic: str) -> str | None:
    """Why a topic's only partition waits; empty: it doesn't. None: nothing was heard of it."""
    newest = receipt(mirror, topic)
    return newest.reason if newest else None


def test_too_few_replicas_in_sync(
    source_cluster: KafkaCluster, racked: KafkaCluster, topic_name: str, tmp_path: Path, spark: SparkSession
) -> None:
    """min.insync.replicas above the live ones: nothing is written there; a topic that needs fewer continues."""
    strict, easy = f"{topic_name}-strict", f"{topic_name}-easy"
    for topic, needed in ((strict, 3), (easy, 2)):
        mp.create_topic(source_cluster.bootstrap_servers, topic, 1)
        mp.produce(source_cluster.bootstrap_servers, topic, 1, 100)
        mp.create_topic(
            racked.bootstrap_servers, f"A.{topic}", 1, {"min.insync.replicas": str(needed)}, replication_factor=3
        )
    path = mp.write_properties(
        tmp_path / "mm2.properties",
        source_cluster.bootstrap_servers,
        racked.bootstrap_servers,
        f"{topic_name}-.*",
        {"replication.factor": "3"},
    )

    def copied(topic: str) -> int:
        return mp.end_offsets(racked.bootstrap_servers, f"A.{topic}", 1)[0]

    with run_mirror(path, spark) as mirror:
        for topic in (strict, easy):
            mp.wait_for(lambda: copied(topic) == 100, 90, f"{topic} copied")  # noqa: B023
        # A new leader's high watermark may be lower, and stays so while too few are in sync: no position can be read
        # then (KIP-207), and nothing is refused that could be told.
        stopped = follower(racked, f"A.{strict}")
        stopped.terminate()
        mp.wait_for(lambda: len(only_partition(racked, f"A.{strict}").in_sync) == 2, 180, "the brokers know")
        mp.produce(source_cluster.bootstrap_servers, easy, 1, 100)
        mp.wait_for(lambda: copied(easy) == 200, 90, "the easy one continues")

        def refused() -> bool:
            """What the leader appends before it has heard of it is in its log and needs no second try: so feed it."""
            mp.produce(source_cluster.bootstrap_servers, strict, 1, 20)
            time.sleep(1)
            return "too few replicas in sync" in (reason(mirror, strict) or "")

        mp.wait_for(refused, 180, "the reason")
        (written,) = mp.end_offsets(source_cluster.bootstrap_servers, strict, 1)
        time.sleep(5)
        assert copied(strict) == 100
        stopped.start()
        mp.wait_for(lambda: copied(strict) == written, 90, "the strict one continues by itself")
        mp.wait_for(lambda: reason(mirror, strict) == "", 180, "no reason any more")
    assert_copied(source_cluster, racked, {topic: f"A.{topic}" for topic in (strict, easy)}, 200 + written)


def test_a_new_leader_that_may_not_tell_its_high_watermark(
    source_cluster: KafkaCluster, racked: KafkaCluster, topic_name: str, tmp_path: Path, spark: SparkSession
) -> None:
    """It is lower than where its round began, and stays so while too few replicas are in sync (KIP-207)."""
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 1, 100)
    copy = f"A.{topic_name}"
    mp.create_topic(racked.bootstrap_servers, copy, 1, {"min.insync.replicas": "3"}, replication_factor=3)
    path = mp.write_properties(
        tmp_path / "mm2.properties",
        source_cluster.bootstrap_servers,
        racked.bootstrap_servers,
        topic_name,
        {"replication.factor": "3"},
    )
    with run_mirror(path, spark) as mirror, mp.load(source_cluster.bootstrap_servers, topic_name, 1, per_s=500) as stop:
        mp.wait_for(lambda: mp.end_offsets(racked.bootstrap_servers, copy, 1)[0] > 500, 90, "copying")
        leader = only_partition(racked, copy).leader
        stopped = next(broker for broker in racked.brokers if broker.node_id == leader)
        stopped.terminate()
        mp.wait_for(lambda: len(only_partition(racked, copy).in_sync) == 2, 180, "the brokers know")

        def told() -> bool:
            """The second one where the followers had happened to hear of the whole log in time."""
            said = reason(mirror, topic_name) or ""
            return "OFFSET_NOT_AVAILABLE" in said or "too few replicas in sync" in said

        mp.wait_for(told, 90, "the reason")
        stopped.start()
        mp.wait_for(lambda: reason(mirror, topic_name) == "", 180, "no reason any more")
        stop.set()
        time.sleep(1)
        (written,) = mp.end_offsets(source_cluster.bootstrap_servers, topic_name, 1)
        mp.wait_for(lambda: mp.end_offsets(racked.bootstrap_servers, copy, 1)[0] == written, 90, "it continues")
    assert_copied(source_cluster, racked, {topic_name: copy}, written)
