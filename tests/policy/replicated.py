"""What a flow decides about a topic, by a policy and a filter alone."""

from __future__ import annotations

from sparkmirror.mirror.sync.topic_rules import TopicRules
from sparkmirror.policy import DefaultConfigPropertyFilter, ReplicationPolicy, TopicFilter


def replicated(
    topic: str, policy: ReplicationPolicy, topics: TopicFilter, *, target: str = "target", heartbeats: bool = True
) -> bool:
    rules = TopicRules(
        source_alias="source",
        target_alias=target,
        policy=policy,
        topics=topics,
        properties=DefaultConfigPropertyFilter(),
        heartbeats_replication_enabled=heartbeats,
    )
    return rules.wanted(topic)
