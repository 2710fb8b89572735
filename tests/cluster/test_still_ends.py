"""Ends that may be published: of logs at rest, with all records replicated and no transaction open (M4)."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer
from lab import KafkaCluster
from tests.support import mirror_process as mp

from sparkmirror.config import ClusterConfig, load_mm2_properties
from sparkmirror.errors import NotAtRest
from sparkmirror.kafka.cluster import still_ends as module
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.list_offsets import CONSUMER, offsets_by_leader
from sparkmirror.kafka.cluster.still_ends import StillEnds, still_ends
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.sync.moved_writers import say_moved

pytestmark = pytest.mark.broker


def ends(cluster: KafkaCluster, topic: str) -> StillEnds:
    config = ClusterConfig(alias="A", bootstrap_servers=tuple(cluster.bootstrap_servers.split(",")))
    with closing(ClusterClient(config, "test")) as client:
        return still_ends(client, [(topic, 0), (topic, 1)], 0.3)


def test_a_log_at_rest_has_an_end(source_cluster: KafkaCluster, topic_name: str) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 2)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 2, 9)
    assert ends(source_cluster, topic_name) == StillEnds({(topic_name, 0): 5, (topic_name, 1): 4}, {})


def test_a_log_that_grows_has_none(source_cluster: KafkaCluster, topic_name: str) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 2)
    producer = KafkaProducer(bootstrap_servers=source_cluster.bootstrap_servers, linger_ms=0)
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            producer.send(topic_name, b"more", partition=0).get(10)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        mp.wait_for(lambda: mp.end_offsets(source_cluster.bootstrap_servers, topic_name, 2)[0] > 0, 30, "it grows")
        found = ends(source_cluster, topic_name)
    finally:
        stop.set()
        writer.join()
        producer.close()
    assert found.moving[topic_name, 0].startswith("a producer still writes to it (offset ")
    assert found.ends == {(topic_name, 1): 0}


def test_what_replicas_lack_is_no_end(
    source_cluster: KafkaCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leader's records above the high watermark may become readable yet, or vanish."""
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 2)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 2, 9)

    def lagging(*arguments: Any, replica_id: int = CONSUMER, **settings: Any) -> dict[TopicPartition, int]:
        """Stands for a follower that lacks the last record of partition 1."""
        offsets = offsets_by_leader(*arguments, replica_id=replica_id, **settings)
        return offsets if replica_id != CONSUMER else offsets | {(topic_name, 1): 3}

    monkeypatch.setattr(module, "offsets_by_leader", lagging)
    words = "replicas have only confirmed offset 3 of 4"
    assert ends(source_cluster, topic_name) == StillEnds({(topic_name, 0): 5}, {(topic_name, 1): words})


def test_an_open_transaction_leaves_no_end(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its marker, and perhaps more records, are still to come: a turn has no end there, and the partition is named."""
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 2)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 2, 9)
    file = mp.write_properties(
        tmp_path / "mm2.properties",
        source_cluster.bootstrap_servers,
        target_cluster.bootstrap_servers,
        topic_name,
        {"sparkmirror.turn": "first"},
    )
    (flow,) = load_mm2_properties(str(file)).flows
    monkeypatch.setattr(module, "PATIENCE_S", 0.3)
    producer = KafkaProducer(bootstrap_servers=source_cluster.bootstrap_servers, transactional_id=topic_name)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic_name, b"perhaps", partition=1)
    producer.flush()
    words = "a transaction is open from offset 4 on"
    assert ends(source_cluster, topic_name) == StillEnds({(topic_name, 0): 5}, {(topic_name, 1): words})
    with pytest.raises(NotAtRest, match=f"not at rest: {topic_name}-1: {words}; stop the topics' producers first"):
        list(say_moved(flow, {topic_name}.__contains__))
    producer.commit_transaction()
    producer.close()
    mp.wait_for(lambda: ends(source_cluster, topic_name).ends.get((topic_name, 1)) == 6, 30, "the marker is there")
