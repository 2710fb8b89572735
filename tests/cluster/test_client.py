"""Asking one cluster."""

from __future__ import annotations

import pytest
from kafka.protocol.metadata import MetadataRequest

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.config import ClusterConfig
from sparkmirror.demo import KafkaCluster
from sparkmirror.wire.rpc import BrokerUnreachable


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


def test_a_partition_without_a_leader_is_said_to_have_none() -> None:
    """Metadata gives its leader as broker -1."""
    client = ClusterClient(ClusterConfig(alias="B", bootstrap_servers=("127.0.0.1:1",)), "test")
    with pytest.raises(BrokerUnreachable, match="cluster B: a partition has no leader now"):
        client.broker(-1)
