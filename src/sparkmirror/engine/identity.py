"""Agreement on a flow's identity, before anything is sent (invariant 7, R12)."""

from __future__ import annotations

import time
from typing import NamedTuple

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.producers import new_producer_id
from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.config import FlowConfig
from sparkmirror.durable.claim_log import SegmentLog
from sparkmirror.durable.claims import segments_topic
from sparkmirror.durable.identity import Identity
from sparkmirror.engine.own_topics import SEGMENTS_PARTITIONS
from sparkmirror.errors import ClusterUnreachable

_LOOKS = 3
_PAUSE_S = 0.5


class Agreement(NamedTuple):
    """Facts that all processes of a flow agree on at a target."""

    identity: Identity
    homes: int
    """Number of partitions among which claims are dealt."""


def agree_identity(flow: FlowConfig) -> Agreement:
    """Return the identity of this flow at this target, and the number of homes.

    Raises `ClusterUnreachable`.
    """
    client = ClusterClient(flow.target, f"{flow.name}|sparkmirror-identity")
    try:
        topic = TopicLog(client, segments_topic(flow.source.alias))
        segments = SegmentLog(topic)
        client.metadata([])
        if not segments.has_fixed_homes:
            segments.fix_homes(_number_of_homes(flow, topic, segments))
        agreed = segments.agree(client.cluster_id, None)
        if agreed is None:
            agreed = segments.agree(client.cluster_id, Identity(client.cluster_id, *new_producer_id(client)))
        if agreed is None:
            raise ClusterUnreachable(
                f"cluster {flow.target.alias}: sparkmirror's own record in {segments_topic(flow.source.alias)} "
                "can't be read back"
            )
        return Agreement(agreed, segments.homes)
    finally:
        client.close()


def _number_of_homes(flow: FlowConfig, topic: TopicLog, segments: SegmentLog) -> int:
    """Return the number of partitions among which the flow's claims are dealt.

    A new topic's first answers may name a part of its partitions only: another number than the topic is created with
    counts once it has stayed the same.
    """
    count, looks = topic.partitions, 0
    while count != SEGMENTS_PARTITIONS and looks < _LOOKS:
        time.sleep(_PAUSE_S)
        topic.look_again()
        count, looks = topic.partitions, looks + 1 if topic.partitions == count else 0
    fitting = segments.fitting_homes()
    if fitting is None:
        raise ClusterUnreachable(
            f"cluster {flow.target.alias}: {topic.topic} has got more partitions since the flow began, and claims are "
            'in two places: see "A lost segments topic" in docs/losses.md'
        )
    return fitting
