"""The topics at the target in which a flow keeps what it knows."""

from __future__ import annotations

from sparkmirror.cluster.admin import ClusterAdmin
from sparkmirror.durable.claims import segments_topic
from sparkmirror.durable.losses import losses_topic
from sparkmirror.messages.control import control_topic
from sparkmirror.messages.receipts import receipts_topic
from sparkmirror.messages.status_topic import status_topic

SEGMENTS_PARTITIONS = 8
RECEIPTS_KEPT_MS = 3_600_000
PLAIN = {"compression.type": "uncompressed"}
"""A pump needs no codec to read them, whatever the brokers' default is."""
COMPACTED_SOON = {**PLAIN, "segment.ms": "600000", "min.cleanable.dirty.ratio": "0.01"}
"""Every pump reads the control topic from its start, and a tick is written every 2 s; the standing of all partitions is
written beside the losses every minute."""
STATUS = {**COMPACTED_SOON, "segment.bytes": "8388608", "delete.retention.ms": "600000"}
"""Terminals read it from its start: what was overwritten is to be compacted away soon, however busy the mirror."""
RECEIPTS = {
    **PLAIN,
    "cleanup.policy": "delete",
    "retention.ms": str(RECEIPTS_KEPT_MS),
    "segment.ms": str(RECEIPTS_KEPT_MS),
}


def create_own_topics(target: ClusterAdmin, source_alias: str, replication_factor: int) -> None:
    """Create those that are missing. Raises `ClusterUnreachable` and `SparkMirrorError`s."""
    target.create_compacted_topic(segments_topic(source_alias), SEGMENTS_PARTITIONS, replication_factor, PLAIN)
    target.create_compacted_topic(losses_topic(source_alias), 1, replication_factor, COMPACTED_SOON)
    target.create_compacted_topic(control_topic(source_alias), 1, replication_factor, COMPACTED_SOON)
    target.create_compacted_topic(receipts_topic(source_alias), 1, replication_factor, RECEIPTS)
    target.create_compacted_topic(status_topic(source_alias), 1, replication_factor, STATUS)
