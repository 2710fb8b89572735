"""The real MirrorMaker 2 copies between the pair of brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psutil
import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic
from lab import KafkaCluster, RealMirrorMaker
from tests.support import mirror_process as mp

from sparkmirror.demo.jvm import QUICK_START

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.broker, pytest.mark.full]

RECORDS = 1000
ARRIVAL_TIMEOUT_MS = 60_000


def _produce(cluster: KafkaCluster, topic: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])
    admin.close()
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers)
    for number in range(RECORDS):
        producer.send(topic, key=b"%d" % number, value=b"value %d" % number)
    producer.close()


def _keys(cluster: KafkaCluster, topic: str) -> list[bytes]:
    consumer = KafkaConsumer(
        bootstrap_servers=cluster.bootstrap_servers,
        auto_offset_reset="earliest",
        consumer_timeout_ms=ARRIVAL_TIMEOUT_MS,
        metadata_max_age_ms=1000,
        allow_auto_create_topics=False,
    )
    consumer.subscribe([topic])
    keys = []
    for record in consumer:
        keys.append(record.key)
        if len(keys) == RECORDS:
            break
    consumer.close()
    return keys


def test_copies_every_record(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    _produce(source_cluster, topic_name)
    properties = {
        "clusters": "source, target",
        "source.bootstrap.servers": source_cluster.bootstrap_servers,
        "target.bootstrap.servers": target_cluster.bootstrap_servers,
        "source->target.enabled": "true",
        "target->source.enabled": "false",
        "topics": topic_name,
        "refresh.topics.interval.seconds": "1",
        **mp.ONE_REPLICA,
    }
    with RealMirrorMaker(properties, tmp_path, jvm_options=QUICK_START) as mirror:
        assert psutil.pid_exists(mirror.pid)
        assert _keys(target_cluster, f"source.{topic_name}") == [b"%d" % number for number in range(RECORDS)]
    assert not mirror.running
