"""Settings for a flow's policy and filters: its connectors' settings, as in Java."""

from __future__ import annotations

from sparkmirror.config import FlowConfig


def own_class_settings(flow: FlowConfig) -> dict[str, str]:
    """Return the file's keys with this flow's aliases, filters and defaults.

    Values are written as in a file.
    """
    return {
        **flow.originals,
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
