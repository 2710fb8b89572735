"""What a flow's policy and filters are configured with: the settings of its connectors, as Java gives them."""

from __future__ import annotations

from collections.abc import Mapping

from sparkmirror.config import FlowConfig


def originals_of(flow: FlowConfig, given: Mapping[str, str]) -> dict[str, str]:
    """`given`, the connector's own keys, with what counts for this flow: its aliases, and defaults.

    Values are written as a file has them.
    """
    return {
        **given,
        "source.cluster.alias": flow.source.alias,
        "target.cluster.alias": flow.target.alias,
        "replication.policy.separator": flow.replication_policy_separator,
        "replication.policy.internal.topic.separator.enabled": str(flow.internal_topic_separator_enabled).lower(),
        "topics": ",".join(flow.topics),
        "topics.exclude": ",".join(flow.topics_exclude),
        "groups": ",".join(flow.group.groups),
        "groups.exclude": ",".join(flow.group.groups_exclude),
        "config.properties.exclude": ",".join(flow.topic_sync.config_properties_exclude),
        "use.defaults.from": flow.topic_sync.use_defaults_from,
    }
