"""Agreement on a flow's identity, before anything is sent (invariant 7, R12)."""

from __future__ import annotations

import time
from contextlib import closing
from typing import NamedTuple

from sparkmirror.config import FlowConfig
from sparkmirror.errors import ClusterUnreachable, ConfigError
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import segments_topic
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.durable.source_cluster import SourceCluster
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.expected_clusters import led_elsewhere
from sparkmirror.kafka.cluster.producers import new_producer_id
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.mirror.engine.own_topics import SEGMENTS_PARTITIONS

_ROLE = "sparkmirror-identity"
_LOOKS = 3
_PAUSE_S = 0.5


class Agreement(NamedTuple):
    """Facts that all processes of a flow agree on at a target, next to the source."""

    identity: Identity
    homes: int
    """Number of partitions among which claims are dealt."""


def agree_identity(flow: FlowConfig, source_id: str) -> Agreement:
    """Return this flow's identity at this target, and the home count.

    `source_id` is the source's cluster id. Raises `ClusterUnreachable`, and `ConfigError` if the flow copies from
    another cluster.
    """
    with closing(ClusterClient(flow.target, f"{flow.name}|{_ROLE}")) as client:
        topic = TopicLog(client, segments_topic(flow.source.alias))
        claim_log = ClaimLog(topic)
        client.metadata([])
        if not claim_log.has_fixed_homes:
            claim_log.fix_homes(_number_of_homes(flow, topic, claim_log))
        source = claim_log.source_cluster()
        if source is None and source_id:
            source = claim_log.agree_source(SourceCluster(0, source_id))
        if source is not None and source.cluster_id != source_id:
            place = f"{flow.source.alias}.bootstrap.servers"
            line = led_elsewhere(flow.source.alias, place, source_id, source.cluster_id, flow.name)
            raise ConfigError(line, origin=f"flow {flow.name}")
        agreed = claim_log.agree(client.cluster_id, None)
        if agreed is None:
            agreed = claim_log.agree(client.cluster_id, Identity(client.cluster_id, *new_producer_id(client)))
        if agreed is None or (source is None and source_id):
            raise ClusterUnreachable(
                f"cluster {flow.target.alias}: sparkmirror's own record in {segments_topic(flow.source.alias)} "
                "can't be read back"
            )
        return Agreement(agreed, claim_log.homes)


def _number_of_homes(flow: FlowConfig, topic: TopicLog, claim_log: ClaimLog) -> int:
    """Return the number of partitions among which the flow's claims are dealt.

    A new topic's first answers may name only some partitions: another number than the topic is created with counts once
    it has stayed the same.
    """
    count, looks = topic.partitions, 0
    while count != SEGMENTS_PARTITIONS and looks < _LOOKS:
        time.sleep(_PAUSE_S)
        topic.look_again()
        count, looks = topic.partitions, looks + 1 if topic.partitions == count else 0
    fitting = claim_log.fitting_homes()
    if fitting is None:
        raise ClusterUnreachable(
            f"cluster {flow.target.alias}: {topic.topic} has got more partitions since the flow began, and claims are "
            'in two places: see "A lost segments topic" in docs/losses.md'
        )
    return fitting
