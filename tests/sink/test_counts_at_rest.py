"""Records of earlier attempts are counted once no election can take them away."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pyarrow as pa
import pytest
from kafka.admin import KafkaAdminClient, NewTopic
from lab import KafkaCluster

from sparkmirror.config import ClusterConfig
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.wire.codecs import Codec
from sparkmirror.sink.agreement import CONTROL_TOPIC, MicroBatch, SinkAgreement, create_control_topic
from sparkmirror.sink.appender import TaskAppender
from sparkmirror.sink.audit import counts
from sparkmirror.sink.order import AppendOrder
from sparkmirror.sink.writing import BatchWriter

pytestmark = [pytest.mark.broker, pytest.mark.full]


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """Three brokers, whose replicas stay in sync for a minute without a sign of life."""
    settings = {"broker.session.timeout.ms": "60000", "replica.lag.time.max.ms": "60000"}
    with KafkaCluster(tmp_path_factory.mktemp("three"), brokers=3, heap_mb=256, properties=settings) as made:
        yield made


def led(config: ClusterConfig, topic: str) -> int:
    """Wait until the topic has a leader, and return it."""
    until = time.monotonic() + 30
    with closing(ClusterClient(config, "test-sink")) as client:
        while not (led := client.metadata([topic])[topic].partitions) or led[0].leader < 0:
            assert time.monotonic() < until
            time.sleep(0.1)
    return led[0].leader


def append(order: AppendOrder) -> None:
    with closing(TaskAppender(order)) as attempt:
        attempt.take(pa.RecordBatch.from_pydict({"value": pa.array([b"0"]), "partition": pa.array([0], pa.int32())}))
        attempt.finish()


def test_records_that_only_the_leader_has_are_waited_for(cluster: KafkaCluster, topic_name: str) -> None:
    """Told as copied, they would be missing after an election."""
    batch, servers = MicroBatch(topic_name, 3), cluster.bootstrap_servers.split(",")
    everywhere = ClusterConfig(alias="B", bootstrap_servers=tuple(servers))
    with ClusterAdmin.connect(everywhere, "test-sink", 30) as admin:
        create_control_topic(admin)
    leader = led(everywhere, CONTROL_TOPIC)
    follower = next(broker for broker in cluster.brokers if broker.node_id != leader)
    assigner = KafkaAdminClient(bootstrap_servers=servers)
    assigner.create_topics([NewTopic(topic_name, -1, -1, replica_assignments={0: [leader, follower.node_id]})])
    assigner.close()
    assert led(everywhere, topic_name) == leader
    config = ClusterConfig(alias="B", bootstrap_servers=(servers[leader - 1],))
    with closing(ClusterClient(config, "test-sink")) as client, ThreadPoolExecutor(2) as pool:
        writer = BatchWriter(config, topic_name, Codec(0), is_gathered=False)
        assert not writer.is_fenced(batch), "it has asked all brokers what they remember"
        producer = SinkAgreement(client, batch.query, 0).producer()
        order = AppendOrder(config, batch, producer.producer_id, Codec(0), topic_name, first_attempt_ms=1 << 60)
        follower.pause()
        try:
            pool.submit(append, order)
            while not counts(client, order, [topic_name], {}, in_logs=False):
                time.sleep(0.1)
            counted = pool.submit(writer.take_up, batch)
            time.sleep(14)
            assert not counted.done()
        finally:
            follower.resume()
        assert counted.result() == {(topic_name, 0): 1}
