"""Every version that the other tests need runs here: it starts, takes a produce and a fetch, and stops."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster_of import KRAFT, ZOOKEEPER, cluster_of
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from lab import KafkaCluster
from rolling import roll

pytestmark = [pytest.mark.broker, pytest.mark.full]

RECORDS = 20


def write_and_read(cluster: KafkaCluster, topic: str) -> list[bytes]:
    """Write some records, and return the values of all that are there."""
    servers = cluster.bootstrap_servers
    producer = KafkaProducer(bootstrap_servers=servers, compression_type="lz4")
    for number in range(RECORDS):
        producer.send(topic, b"%d" % number, partition=0)
    producer.close()
    consumer = KafkaConsumer(bootstrap_servers=servers, enable_auto_commit=False)
    try:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        end = consumer.end_offsets([partition])[partition]
        values: list[bytes] = []
        while consumer.position(partition) < end:
            values += [record.value for records in consumer.poll(200).values() for record in records]
        return values
    finally:
        consumer.close()


def create(cluster: KafkaCluster, topic: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    try:
        admin.create_topics([NewTopic(topic, 1, len(cluster.brokers))])
        admin.wait_for_topics([topic], timeout_ms=30_000)
    finally:
        admin.close()


@pytest.mark.parametrize("name", [*ZOOKEEPER, *KRAFT])
def test_a_version_serves(name: str, tmp_path: Path) -> None:
    wanted = [b"%d" % number for number in range(RECORDS)]
    cluster = cluster_of(name, tmp_path)
    with cluster:
        create(cluster, "topic")
        assert write_and_read(cluster, "topic") == wanted
    assert not any(broker.running for broker in cluster.brokers)
    with cluster:
        assert write_and_read(cluster, "topic") == wanted * 2, "records are gone after a restart"
    cluster.cleanup()


@pytest.mark.parametrize(
    ("old", "new", "properties"),
    [
        ("2.7.2", "2.8.2", {"inter.broker.protocol.version": "2.7"}),
        ("2.8.2", "2.7.2", {}),
        ("2.8.2", "3.9.1", {}),
        ("3.9.1 KRaft", "4.4.0", {}),
    ],
)
def test_rolling_upgrade(old: str, new: str, properties: dict[str, str], tmp_path: Path) -> None:
    """One broker after the other: so for a while brokers of two versions are one cluster."""
    wanted = [b"%d" % number for number in range(RECORDS)]
    begin = {"inter.broker.protocol.version": "2.7"} if old == "2.8.2" else {}
    with cluster_of(old, tmp_path, brokers=3, properties=begin) as cluster:
        create(cluster, "topic")
        write_and_read(cluster, "topic")
        roll(cluster, new, properties=properties)
        for broker in cluster.brokers:
            assert f"Kafka version: {new}" in broker.log.read_text()
        assert write_and_read(cluster, "topic") == wanted * 2
    cluster.cleanup()
