"""The status topic on a real broker."""

from __future__ import annotations

import dataclasses
import time

import pytest
from lab import KafkaCluster
from tests.support.snapshot_samples import flow, partition, topic

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.mirror.engine.own_topics import create_own_topics
from sparkmirror.pump.messages.status_topic import status_topic
from sparkmirror.snapshot.status_topic import StatusPublisher, read_status

pytestmark = [pytest.mark.broker, pytest.mark.full]


def test_it_is_read_back_from_a_broker(source_cluster: KafkaCluster, target_cluster: KafkaCluster) -> None:
    told = FlowConfig(
        source=ClusterConfig(alias="status-A", bootstrap_servers=(source_cluster.bootstrap_servers,)),
        target=ClusterConfig(alias="status-B", bootstrap_servers=(target_cluster.bootstrap_servers,)),
    )
    with pytest.raises(ClusterUnreachable, match="has the mirror run before"):
        read_status(told)
    with ClusterAdmin.connect(told.target, "test") as admin:
        create_own_topics(admin, "status-A", 1)
    assert read_status(told).flow is None
    client = ClusterClient(told.target, "test")
    try:
        publisher = StatusPublisher(TopicLog(client, status_topic("status-A")))
        wide = flow(topics=(topic("wide", *(partition(n, reason="x" * 300) for n in range(3_000))), topic("a")))
        for _ in range(3):
            publisher.turn(wide)
        assert read_status(told).flow == dataclasses.replace(wide, topics=(topic("a"), wide.topics[0]))
        now = flow(at_ms=int(time.time() * 1000))
        publisher.turn(now)
    finally:
        client.close()
    status = read_status(told)
    assert status.flow == now
    assert (status.age_s() or 99) < 30
