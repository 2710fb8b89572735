"""The client's answers from lists of topics (the cases of Kafka's `MirrorClientTest`), and on a real broker."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

import pytest
from checkpoint_topic import checkpointed, record
from lab import KafkaCluster

from sparkmirror.client import MirrorClient, OffsetAndMetadata, TopicPartition, translate_offsets
from sparkmirror.client.settings import ADMIN, cluster_config, replication_policy
from sparkmirror.config import IDENTITY_POLICY
from sparkmirror.errors import ClusterUnreachable, ConfigError
from sparkmirror.policy import DefaultReplicationPolicy

IDENTITY = {"replication.policy.class": IDENTITY_POLICY, "source.cluster.alias": "primary"}


class Listed(MirrorClient):
    """A client whose cluster has these topics."""

    def __init__(self, topics: Iterable[str], **settings: str) -> None:
        keys = {key.replace("_", "."): value for key, value in settings.items()}
        super().__init__({"bootstrap.servers": "nowhere:9092", **keys})
        self._listed = set(topics)

    def _topics(self) -> set[str]:
        return self._listed


def test_heartbeat_topics() -> None:
    """As `testIsHeartbeatTopic`, `heartbeatTopicsTest`."""
    ours = {"heartbeats", "source1.heartbeats", "source2.source1.heartbeats"}
    others = {"topic1", "heartbeats!", "!heartbeats", "source1heartbeats", "source1-heartbeats"}
    assert Listed(ours | others).heartbeat_topics() == ours


def test_checkpoint_topics() -> None:
    """As `testIsCheckpointTopic`, `checkpointsTopicsTest`."""
    ours = {"source1.checkpoints.internal", "source2.checkpoints.internal"}
    others = {"checkpoints.internal", "checkpoints-internal", "checkpoints.internal!", "source1checkpointsinternal"}
    assert Listed(ours | others).checkpoint_topics() == ours


@pytest.mark.parametrize(
    ("topic", "alias", "hops"),
    [
        ("heartbeats", "source", -1),
        ("source1.heartbeats", "source2", -1),
        ("source1.heartbeats", "source1", 1),
        ("source2.source1.heartbeats", "source2", 1),
        ("source2.source1.heartbeats", "source1", 2),
        ("source3.source2.source1.heartbeats", "source1", 3),
        ("source3.source2.source1.heartbeats", "source4", -1),
    ],
)
def test_hops_of_one_topic(topic: str, alias: str, hops: int) -> None:
    """As `countHopsForTopicTest`."""
    assert Listed([topic]).replication_hops(alias) == hops


WAYS = ("topic1", "topic2", "heartbeats", "source1.heartbeats", "source1.source2.heartbeats", "source3.heartbeats")


@pytest.mark.parametrize("settings", [{}, IDENTITY])
def test_the_shortest_way_counts(settings: dict[str, str]) -> None:
    """As `replicationHopsTest`, also where names stay as they are: heartbeats never do."""
    client = Listed([*WAYS, "source3.source2.source1.heartbeats"], **settings)
    assert [client.replication_hops(f"source{number}") for number in range(1, 5)] == [1, 2, 1, -1]


@pytest.mark.parametrize("settings", [{}, IDENTITY])
def test_upstream_clusters(settings: dict[str, str]) -> None:
    """As `upstreamClustersTest`, `testIdentityReplicationUpstreamClusters`."""
    client = Listed([*WAYS[:5], "source3.source4.source5.heartbeats", "other.topic"], **settings)
    assert client.upstream_clusters() == {f"source{number}" for number in range(1, 6)}


@pytest.mark.parametrize("separator", [".", "__"])
def test_remote_topics(separator: str) -> None:
    """As `remoteTopicsTest`, `remoteTopicsSeparatorTest`."""
    copies = {
        separator.join(parts)
        for parts in (("source1", "topic4"), ("source1", "source2", "topic5"), ("source3", "source4", "topic6"))
    }
    internal = {separator.join(("source1", "checkpoints", "internal")), "__consumer_offsets", ".hidden"}
    client = Listed({"topic1", "topic2"} | copies | internal, replication_policy_separator=separator)
    assert client.remote_topics() == copies
    assert client.remote_topics("source1") == {copy for copy in copies if copy.startswith("source1")}
    assert client.remote_topics("source2") == set()


def test_remote_topics_whose_names_stay() -> None:
    """As `testIdentityReplicationRemoteTopics`, `testIdentityReplicationTopicSource`."""
    topics = ["topic1", "source1.topic4", "heartbeats", "backup.heartbeats"]
    client = Listed(topics, **IDENTITY)
    assert client.remote_topics() == {"topic1", "source1.topic4", "backup.heartbeats"}
    assert client.remote_topics("primary") == {"topic1", "source1.topic4"}
    assert client.replication_policy.topic_source("topic1") == "primary"
    nameless = Listed(topics, replication_policy_class=IDENTITY_POLICY)
    assert nameless.remote_topics() == {"backup.heartbeats"}, "without source.cluster.alias nothing is known"


class Prefixed(DefaultReplicationPolicy):
    """A policy with a key of its own."""

    settings: Mapping[str, str]

    def configure(self, settings: Mapping[str, str]) -> None:
        super().configure(settings)
        self.settings = settings


def test_a_policy_in_python_gets_its_own_keys_and_no_secrets() -> None:
    given = {"my.key": "7", "my.password": "hidden", "replication.policy.separator": "-"}
    policy = replication_policy({**given, "replication.policy.class": f"{__name__}:Prefixed"})
    assert policy.topic_source("us-orders") == "us"
    seen = policy.settings  # type: ignore[attr-defined]  # of the class above
    assert (seen["my.key"], seen["replication.policy.separator"]) == ("7", "-")
    assert "my.password" not in seen


ENVIRONMENT = {"config.providers": "env", "config.providers.env.class": "EnvVarConfigProvider"}


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({}, "bootstrap.servers"),
        ({"bootstrap.servers": "nowhere"}, "bootstrap.servers"),
        ({"bootstrap.servers": "a:1", "security.protocol": "SASL"}, "security.protocol"),
        ({"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL"}, "sasl.jaas.config"),
        ({"bootstrap.servers": "a:1", "consumer.bootstrap.servers": "b"}, "consumer.bootstrap.servers"),
        ({"bootstrap.servers": "a:1", "replication.policy.class": "com.example.Mine"}, "replication.policy"),
        ({"bootstrap.servers": "a:1", "config.providers": "file"}, "config.providers"),
        ({"bootstrap.servers": "${env:NOWHERE}", **ENVIRONMENT}, "bootstrap.servers"),
        (
            {
                "bootstrap.servers": "a:1",
                "security.protocol": "SSL",
                "ssl.key.password": "${env:NOWHERE}",
                **ENVIRONMENT,
            },
            "ssl.key.password",
        ),
    ],
)
def test_settings_that_can_not_be_used_are_named(settings: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as refused:
        MirrorClient(settings)
    assert refused.value.key == key


def test_values_may_stand_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKERS", "b-1:9092,b-2:9092")
    cluster = cluster_config({"admin.bootstrap.servers": "${env:BROKERS}", **ENVIRONMENT}, ADMIN)
    assert cluster.bootstrap_servers == ("b-1:9092", "b-2:9092")


def test_odd_questions_are_refused() -> None:
    client = Listed([])
    with pytest.raises(TypeError, match="groups must be"):
        client.remote_consumer_offsets(cast("Any", None), "A", 1)
    with pytest.raises(TypeError, match="groups must be"):
        client.remote_consumer_offsets("g", cast("Any", None), 1)


# --- on a real broker -------------------------------------------------------------------------------


@pytest.mark.broker
def test_remote_consumer_offsets(target_cluster: KafkaCluster, topic_name: str) -> None:
    """As the four tests of `remoteConsumerOffsets`: the last one wins, a pattern matches whole names."""
    records = [
        record("g", 0, 1),
        record("g", 1, 7, "note"),
        (b"what", b"is this"),
        record("g2", 0, 5),
        (record("g2", 0, 5)[0], None),
        record("other-g", 0, 9),
        record("g", 0, 4),
    ]
    settings = checkpointed(target_cluster, topic_name, records)
    expected = {
        TopicPartition("A.t", 0): OffsetAndMetadata(4, ""),
        TopicPartition("A.t", 1): OffsetAndMetadata(7, "note"),
    }
    second = {TopicPartition("A.t", 0): OffsetAndMetadata(5, "")}
    with MirrorClient(settings) as client:
        assert client.remote_consumer_offsets("g", topic_name, 20) == expected
        assert client.remote_consumer_offsets("unknown", topic_name, 20) == {}
        assert client.remote_consumer_offsets("g.*", topic_name, 20) == {}, "a name, not a pattern"
        assert client.remote_consumer_offsets(re.compile("g.*"), topic_name, 20) == {"g": expected, "g2": second}
        assert client.remote_consumer_offsets(re.compile("nobody"), topic_name, 20) == {}
    assert translate_offsets(settings, topic_name, "g", 20) == expected
    assert translate_offsets(settings, topic_name, re.compile("g2"), 20) == {"g2": second}


@pytest.mark.broker
def test_when_time_is_up_it_says_so(
    target_cluster: KafkaCluster, topic_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = checkpointed(target_cluster, topic_name, [record("g", 0, 1)])
    with caplog.at_level(logging.WARNING), MirrorClient(settings) as client:
        assert client.remote_consumer_offsets("g", topic_name, 0) == {}
    assert "only up to offset 0 of 1" in caplog.text


@pytest.mark.broker
def test_no_checkpoints_topic_is_an_error(target_cluster: KafkaCluster, topic_name: str) -> None:
    with MirrorClient({"bootstrap.servers": target_cluster.bootstrap_servers}) as client:
        with pytest.raises(ClusterUnreachable, match=f"no topic {topic_name}.checkpoints.internal"):
            client.remote_consumer_offsets("g", topic_name, 5)
        assert client.checkpoint_topics() is not None
    with pytest.raises(ClusterUnreachable), MirrorClient({"bootstrap.servers": "127.0.0.1:1"}, timeout_s=2) as client:
        client.heartbeat_topics()


@pytest.mark.broker
def test_over_tls(target_cluster: KafkaCluster, topic_name: str, authority: Any) -> None:
    """What stands behind `consumer.` counts for checkpoints only, behind `admin.` for the list of topics only."""
    checkpointed(target_cluster, topic_name, [record("g", 0, 1)])
    tls = {
        "bootstrap.servers": target_cluster.tls_bootstrap_servers,
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
    }
    for settings in (
        tls,
        {"bootstrap.servers": target_cluster.bootstrap_servers} | {f"consumer.{key}": tls[key] for key in tls},
        tls
        | {"consumer.bootstrap.servers": target_cluster.bootstrap_servers, "consumer.security.protocol": "PLAINTEXT"},
    ):
        with MirrorClient(settings) as client:
            assert f"{topic_name}.checkpoints.internal" in client.checkpoint_topics()
            assert len(client.remote_consumer_offsets("g", topic_name, 20)) == 1
