"""A flow's offset syncs topic: cluster, name and content (`mm2.md` 2.1)."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from sparkmirror.config import FlowConfig
from sparkmirror.exact.mm2.record_formats import Malformed, OffsetSync
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.policy import ReplicationPolicy


class SyncsTopic(NamedTuple):
    """Offset syncs topic; `offset-syncs.topic.location` sets its cluster."""

    at_source: bool
    name: str


def syncs_topic(flow: FlowConfig, policy: ReplicationPolicy) -> SyncsTopic:
    """Return the cluster and the topic, which has the opposite cluster in its name."""
    at_source = flow.offset_sync.offset_syncs_topic_location == "source"
    return SyncsTopic(at_source, policy.offset_syncs_topic(flow.mm2_target if at_source else flow.mm2_source))


def read_syncs(client: ClusterClient, topic: str) -> list[OffsetSync]:
    """Return all syncs in the order written; raises `ConnectionError`.

    Empty if the topic is missing or the principal may not read the topic.
    """
    if client.metadata([topic])[topic].error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return []
    try:
        entries, _ = TopicLog(client, topic).read(0, 0)
    except LogUnavailable as error:
        if error.code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise
        return []
    syncs = []
    for _, key, value in entries:
        with suppress(Malformed):  # a tombstone
            syncs.append(OffsetSync.read(key, value))
    return syncs
