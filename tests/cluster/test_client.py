"""Asking one cluster."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from kafka.protocol.metadata import MetadataRequest
from lab import KafkaCluster

from sparkmirror.config import ClusterConfig
from sparkmirror.kafka.cluster.client import ClusterClient, PartitionLeader
from sparkmirror.kafka.wire.rpc import BrokerUnreachable


@pytest.mark.broker
def test_after_an_error_the_next_question_goes_over_a_new_connection(target_cluster: KafkaCluster) -> None:
    """What an old one still delivers is not believed (R11)."""
    config = ClusterConfig(alias="eu", bootstrap_servers=(target_cluster.bootstrap_servers,))
    client = ClusterClient(config, "test")
    client.metadata([])
    broken = client.broker(1)
    broken.close()
    with pytest.raises(ConnectionError):
        client.ask(1, MetadataRequest(topics=[]))
    assert client.ask(1, MetadataRequest(topics=[])).brokers
    assert client.broker(1) is not broken
    client.close()


@pytest.mark.parametrize(("version", "epoch"), [(8, -1), (9, 7)])
def test_an_old_brokers_leader_epoch_counts_as_unknown(
    version: int, epoch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be outdated during a reassignment, and a Fetch with it would be refused for as long (KAFKA-9212)."""
    partition = SimpleNamespace(partition_index=0, leader_id=1, leader_epoch=7)
    topic = SimpleNamespace(name="t", topic_id=None, error_code=0, partitions=[partition])
    answer = SimpleNamespace(version=version, cluster_id="c", controller_id=1, brokers=[], topics=[topic])
    client = ClusterClient(ClusterConfig(alias="B", bootstrap_servers=("127.0.0.1:1",)), "test")
    monkeypatch.setattr(client, "ask_any", lambda _: answer)
    assert client.metadata(["t"])["t"].partitions == {0: PartitionLeader(1, epoch)}


def test_a_partition_without_a_leader_is_said_to_have_none() -> None:
    """Metadata gives its leader as broker -1."""
    client = ClusterClient(ClusterConfig(alias="B", bootstrap_servers=("127.0.0.1:1",)), "test")
    with pytest.raises(BrokerUnreachable, match="cluster B: a partition has no leader now"):
        client.broker(-1)
