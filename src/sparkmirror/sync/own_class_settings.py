"""Settings for a flow's policy and filters: its connectors' settings, as in Java."""

from __future__ import annotations

from collections.abc import Mapping

from sparkmirror.config import FlowConfig


def originals_of(flow: FlowConfig, given: Mapping[str, str]) -> dict[str, str]:
    """Return the connector's own keys with this flow's aliases, filters and defaults.

    `given` are the connector's own keys. Values are written as in a file.
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
