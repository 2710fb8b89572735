"""The rules of a flow us->eu, as a test wants them, and its clusters."""

from __future__ import annotations

from collections.abc import Sequence

from lab import KafkaCluster

from sparkmirror.config import ClusterConfig
from sparkmirror.config.model import DEFAULT_CONFIG_EXCLUDE
from sparkmirror.mirror.sync.topic_rules import TopicRules
from sparkmirror.policy import (
    DefaultConfigPropertyFilter,
    DefaultReplicationPolicy,
    DefaultTopicFilter,
    ReplicationPolicy,
    TopicFilter,
)


class OneName(DefaultReplicationPolicy):
    """Every copy has the same name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return self._name


def rules(
    *excluded: str,
    topics: str | TopicFilter = ".*",
    policy: ReplicationPolicy | None = None,
    properties: Sequence[str] = DEFAULT_CONFIG_EXCLUDE,
    defaults_from: str = "target",
    replication_factor: int = 1,
    heartbeats: bool = True,
) -> TopicRules:
    """`excluded` are topics, `properties` those that are excluded."""
    return TopicRules(
        source_alias="us",
        target_alias="eu",
        policy=policy or DefaultReplicationPolicy(),
        topics=DefaultTopicFilter([topics], excluded) if isinstance(topics, str) else topics,
        properties=DefaultConfigPropertyFilter(properties, defaults_from),
        replication_factor=replication_factor,
        heartbeats_replication_enabled=heartbeats,
    )


def cluster_config(alias: str, cluster: KafkaCluster) -> ClusterConfig:
    """Spoken with in clear."""
    return ClusterConfig(alias=alias, bootstrap_servers=tuple(cluster.bootstrap_servers.split(",")))
