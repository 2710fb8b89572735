"""Select topics, groups and properties, and name topics at the target."""

from sparkmirror.policy.cluster_ids import shared_cluster
from sparkmirror.policy.group_filter import DefaultGroupFilter, GroupFilter, group_filter_for
from sparkmirror.policy.java_regex import compile_java
from sparkmirror.policy.name_patterns import NamePatterns, matching
from sparkmirror.policy.property_filter import ConfigPropertyFilter, DefaultConfigPropertyFilter, property_filter_for
from sparkmirror.policy.replication import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
    SameNameReplicationPolicy,
    policy_for,
)
from sparkmirror.policy.topic_filter import (
    DefaultTopicFilter,
    TopicFilter,
    is_cycle,
    topic_filter_for,
)

__all__ = [
    "ConfigPropertyFilter",
    "DefaultConfigPropertyFilter",
    "DefaultGroupFilter",
    "DefaultReplicationPolicy",
    "DefaultTopicFilter",
    "GroupFilter",
    "IdentityReplicationPolicy",
    "NamePatterns",
    "ReplicationPolicy",
    "SameNameReplicationPolicy",
    "TopicFilter",
    "compile_java",
    "group_filter_for",
    "is_cycle",
    "matching",
    "policy_for",
    "property_filter_for",
    "shared_cluster",
    "topic_filter_for",
]
