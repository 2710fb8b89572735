"""Heartbeats on a real broker, record by record (`mm2.md` 3.8)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from lab import KafkaCluster

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.config.model import HeartbeatConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.exact.mm2.record_formats import Heartbeat
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.mirror.sync.heartbeat_duty import Heartbeats
from sparkmirror.policy import DefaultReplicationPolicy

pytestmark = pytest.mark.broker


class OwnTopic(DefaultReplicationPolicy):
    """A policy whose heartbeats no other test sees."""

    def __init__(self, topic: str) -> None:
        super().__init__()
        self._topic = topic

    def heartbeats_topic(self) -> str:
        return self._topic


def a_flow(target: KafkaCluster, factor: int = 1) -> FlowConfig:
    return FlowConfig(
        source=ClusterConfig(alias="A", bootstrap_servers=("127.0.0.1:1",)),
        target=ClusterConfig(alias="B", bootstrap_servers=(target.bootstrap_servers,)),
        heartbeat=HeartbeatConfig(heartbeats_topic_replication_factor=factor),
        admin_timeout_ms=15_000,
    )


@pytest.fixture
def admin(target_cluster: KafkaCluster) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=target_cluster.bootstrap_servers)
    yield client
    client.close()


def test_an_admin_request_has_15_seconds_at_most(
    target_cluster: KafkaCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def connect(_: ClusterConfig, __: str, timeout_s: float) -> ClusterAdmin:
        asked.append(timeout_s)
        raise ClusterUnreachable("as told")

    monkeypatch.setattr(ClusterAdmin, "connect", connect)
    for timeout_ms in (60_000, 5_000):
        flow = a_flow(target_cluster).model_copy(update={"admin_timeout_ms": timeout_ms})
        with closing(Heartbeats(flow, OwnTopic(topic_name))) as duty, pytest.raises(ClusterUnreachable):
            duty.create()
    assert asked == [15.0, 5.0]


def test_each_turn_writes_one(target_cluster: KafkaCluster, admin: KafkaAdminClient, topic_name: str) -> None:
    """The source need not be there: one alias beats for a pair that copies nothing."""
    duty = Heartbeats(a_flow(target_cluster), OwnTopic(topic_name))
    before = int(time.time() * 1000)
    for _ in range(3):
        duty.run()
    duty.close()
    after = int(time.time() * 1000)
    consumer = KafkaConsumer(bootstrap_servers=target_cluster.bootstrap_servers, consumer_timeout_ms=60_000)
    consumer.assign([TopicPartition(topic_name, 0)])
    consumer.seek_to_beginning()
    records = [next(consumer) for _ in range(3)]
    consumer.close()
    for record in records:
        beat = Heartbeat.read(record.key, record.value)
        assert (beat.source_alias, beat.target_alias) == ("A", "B")
        assert before <= beat.timestamp_ms == record.timestamp <= after
    (topic,) = admin.describe_topics([topic_name])
    assert len(topic["partitions"]) == 1
    resource = ConfigResource(ConfigResourceType.TOPIC, topic_name)
    configs = admin.describe_configs([resource])["topic"][topic_name]
    assert configs["cleanup.policy"]["value"] == "compact"


def test_a_factor_that_the_target_has_no_brokers_for_names_its_key(
    target_cluster: KafkaCluster, topic_name: str
) -> None:
    duty = Heartbeats(a_flow(target_cluster, factor=3), OwnTopic(topic_name))
    with pytest.raises(ClusterUnreachable, match=r"heartbeats\.topic\.replication\.factor") as refused:
        duty.run()
    assert "\n" not in str(refused.value)
    assert topic_name in str(refused.value)
    duty.close()


def test_it_continues_when_the_topic_can_be_created(
    target_cluster: KafkaCluster, admin: KafkaAdminClient, topic_name: str
) -> None:
    """Refused at first, then created by somebody; then deleted, and created by us."""
    policy = OwnTopic(topic_name)
    refused, duty = Heartbeats(a_flow(target_cluster, factor=3), policy), Heartbeats(a_flow(target_cluster), policy)
    with pytest.raises(ClusterUnreachable):
        refused.run()
    duty.run()
    refused.run()
    admin.delete_topics([topic_name])
    deadline = time.monotonic() + 20
    while True:
        try:
            duty.run()
            break
        except ConnectionError:
            assert time.monotonic() < deadline
    refused.close()
    duty.close()
