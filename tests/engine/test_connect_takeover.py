"""From connectors that a real Connect worker runs to us under load, and back, whatever they are called."""

from __future__ import annotations

from pathlib import Path

import pytest
from connect_worker import ConnectWorker, source_connector
from lab import KafkaCluster
from pyspark.sql import SparkSession
from tests.support import mirror_process as mp
from tests.support.handover import PARTITIONS, Handover, wait_for_all_taken

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

STRIMZIS_TOPIC = "mirrormaker2-cluster-offsets"


def worker_of(handover: Handover, settings: dict[str, str] | None = None) -> ConnectWorker:
    return ConnectWorker(handover.target, f"connect-{handover.alias}", handover.directory / "connect", settings)


def connector_of(handover: Handover, settings: dict[str, str] | None = None) -> dict[str, str]:
    return source_connector(handover.source, handover.target, handover.alias, handover.topic, settings)


def test_a_stopped_connector_is_taken_over_and_given_back(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path, spark: SparkSession
) -> None:
    """The worker runs all the time, as one does that has other connectors too; nobody touches its offsets."""
    name = "mm2-msc"
    offsets = {"B.offset.storage.topic": f"connect-offsets-connect-S{topic_name[-12:]}"}
    handover = Handover(source_cluster, target_cluster, topic_name, tmp_path, offsets)
    with worker_of(handover) as worker:
        handover.offsets_topic = worker.offsets_topic
        with mp.load(source_cluster.bootstrap_servers, topic_name, PARTITIONS):
            worker.put(name, connector_of(handover))
            handover.wait_for_more(10_000, "the connector")
            worker.stop(name)
            with handover.ours(spark) as mirror:
                wait_for_all_taken(mirror)
                handover.wait_for_more(5_000, "us")
            ends = mp.end_offsets(target_cluster.bootstrap_servers, handover.remote, PARTITIONS)
            copied = {(topic_name, index): end - 1 for index, end in enumerate(ends)}
            assert worker.offsets(name) == copied, "what the worker says after our clean stop"
            worker.resume(name)
            handover.wait_for_more(10_000, "the connector again")
            worker.stop(name)
            with handover.ours(spark) as mirror:
                wait_for_all_taken(mirror)
                handover.wait_for_more(5_000, "us again")
            worker.resume(name)
        handover.wait_for_all()
    print(f"{handover.copied()} records, repeated: {handover.repeated()}")
    assert not any(handover.repeated().values())


@pytest.mark.parametrize("flushed", [True, False], ids=["offsets stored", "nothing stored"])
def test_a_killed_strimzi_worker_is_taken_over_and_given_back(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
    spark: SparkSession,
    flushed: bool,
) -> None:
    """By Strimzi's names for connector and offsets topic; our file says nothing of them.

    A topic that is new while we copy is not copied again by the connector when it comes back.
    """
    handover = Handover(source_cluster, target_cluster, topic_name, tmp_path)
    source, more = source_cluster.bootstrap_servers, f"{topic_name}-more"
    topics = f"{topic_name}, {more}"
    handover.properties.write_text(
        handover.properties.read_text().replace(f"topics = {topic_name}", f"topics = {topics}")
    )
    name = f"{handover.alias}->B.MirrorSourceConnector"
    handover.offsets_topic = STRIMZIS_TOPIC
    storage = {"offset.storage.topic": STRIMZIS_TOPIC, "offset.flush.interval.ms": "5000" if flushed else "600000"}
    with mp.load(source, topic_name, PARTITIONS):
        with worker_of(handover, storage) as worker:
            worker.put(name, connector_of(handover, {"topics": topics}))
            handover.wait_for_more(20_000, "the connector")
            if flushed:
                mp.wait_for(lambda: len(handover.stored(name)) == PARTITIONS, 180, "offsets of every partition")
                handover.wait_for_more(2_000, "the connector")
            handover.wait_for_syncs()
            worker.jvm.kill()
        ends = mp.end_offsets(target_cluster.bootstrap_servers, handover.remote, PARTITIONS)
        stored = handover.stored(name)
        assert len(stored) == (PARTITIONS if flushed else 0)
        behind = [ends[index] - 1 - stored.get(index, -1) for index in range(PARTITIONS)]
        with handover.ours(spark) as mirror:
            wait_for_all_taken(mirror)
            mp.create_topic(source, more, 1)
            mp.produce(source, more, 1, 100)
            remote_more = f"{handover.alias}.{more}"
            mp.wait_for(
                lambda: mp.end_offsets(target_cluster.bootstrap_servers, remote_more, 1) == [100], 180, "the new topic"
            )
            handover.wait_for_more(5_000, "us")
        with worker_of(handover, storage) as worker:  # it remembers its connector
            handover.wait_for_more(10_000, "the connector again")
            mp.produce(source, more, 1, 10)
            mp.wait_for(
                lambda: mp.end_offsets(target_cluster.bootstrap_servers, remote_more, 1)[0] >= 110, 180, "its new ones"
            )
    with handover.ours(spark) as mirror:
        mp.wait_for(
            lambda: mirror.drivers[0].topics.takeover.taken == PARTITIONS + 1, 120, "all partitions are taken over"
        )
        handover.wait_for_all()
    print(f"stored offsets behind by {behind}; {handover.copied()} records, repeated: {handover.repeated()}")
    assert max(behind) > 0
    assert not any(handover.repeated().values())
    assert mp.end_offsets(target_cluster.bootstrap_servers, remote_more, 1) == [110]
