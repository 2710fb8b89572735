"""Which topics are copied, and what they are called at the target."""

from sparkmirror.policy.java_regex import compile_java
from sparkmirror.policy.replication import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
    policy_for,
)
from sparkmirror.policy.topic_filter import TopicFilter, is_cycle, should_replicate

__all__ = [
    "DefaultReplicationPolicy",
    "IdentityReplicationPolicy",
    "ReplicationPolicy",
    "TopicFilter",
    "compile_java",
    "is_cycle",
    "policy_for",
    "should_replicate",
]
