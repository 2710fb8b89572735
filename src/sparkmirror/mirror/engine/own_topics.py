"""Topics at the target in which a flow keeps its own records."""

from __future__ import annotations

from sparkmirror.exact.durable.claims import segments_topic
from sparkmirror.exact.durable.losses import losses_topic
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.mirror.sync.own_settings import own_topics, safe_settings, unsafe_line, unsafe_settings
from sparkmirror.pump.messages.control import control_topic
from sparkmirror.pump.messages.receipts import receipts_topic
from sparkmirror.pump.messages.status_topic import status_topic

SEGMENTS_PARTITIONS = 8
RECEIPTS_KEPT_MS = 3_600_000
PLAIN = {"compression.type": "uncompressed"}
"""Topic settings so that pumps need no codec, whatever the brokers' default is."""
COMPACTED_SOON = {**PLAIN, "segment.ms": "600000", "min.cleanable.dirty.ratio": "0.01"}
"""Settings for compaction soon.

Every pump reads the control topic from its start, and the driver writes a tick every 2 s. All partitions' progress is
written next to the losses every minute.
"""
STATUS = {**COMPACTED_SOON, "segment.bytes": "8388608", "delete.retention.ms": "600000"}
"""Settings for compaction soon, however busy the mirror.

Terminals read the status topic from its start.
"""
RECEIPTS = {
    **PLAIN,
    "cleanup.policy": "delete",
    "retention.ms": str(RECEIPTS_KEPT_MS),
    "segment.ms": str(RECEIPTS_KEPT_MS),
}


def create_own_topics(target: ClusterAdmin, source_alias: str, replication_factor: int) -> None:
    """Create the missing topics.

    Raises `ClusterUnreachable` and `SparkMirrorError`s.
    """
    for topic, partitions, settings in (
        (segments_topic(source_alias), SEGMENTS_PARTITIONS, PLAIN),
        (losses_topic(source_alias), 1, COMPACTED_SOON),
        (control_topic(source_alias), 1, COMPACTED_SOON),
        (receipts_topic(source_alias), 1, RECEIPTS),
        (status_topic(source_alias), 1, STATUS),
    ):
        target.create_compacted_topic(
            topic, partitions, replication_factor, settings, wished=safe_settings(replication_factor)
        )


def unsafe_own_topics(target: ClusterAdmin, source_alias: str) -> tuple[str, ...]:
    """Return a line for each own topic with unsafe settings.

    Raises `ClusterUnreachable`.
    """
    described = target.topics(own_topics(source_alias))
    configs = target.topic_configs(described)
    lines = []
    for name, topic in described.items():
        values = {entry.name: entry.value for entry in configs.get(name, ()) if entry.value is not None}
        replicas = min((len(partition.replicas) for partition in topic.partitions), default=0)
        if lacking := unsafe_settings(values, replicas):
            lines.append(unsafe_line(target.config.bootstrap_servers, name, lacking))
    return tuple(lines)
