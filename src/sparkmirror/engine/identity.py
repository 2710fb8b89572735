"""A flow's identity, agreed on before anything is sent (invariant 7, R12), and one that follows it."""

from __future__ import annotations

import logging
import os
import time

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.producers import new_producer_id
from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.cluster.transactions import TransactionalId
from sparkmirror.config import FlowConfig
from sparkmirror.durable.claim_log import SegmentLog
from sparkmirror.durable.claims import segments_topic
from sparkmirror.durable.identity import Identity, transactional_ids
from sparkmirror.errors import ClusterUnreachable, SparkMirrorError
from sparkmirror.events import Event

log = logging.getLogger(__name__)


def agree_identity(flow: FlowConfig) -> Identity:
    """The identity that all processes of this flow have at this target; raises `ClusterUnreachable`.

    The first one can be fenced if the flow asks for fences and the target allows it.
    """
    client = ClusterClient(flow.target, f"{flow.name}|sparkmirror-identity")
    try:
        segments = SegmentLog(TopicLog(client, segments_topic(flow.source.alias)))
        client.metadata([])
        agreed = segments.agree(client.cluster_id, None)
        if agreed is None:
            agreed = segments.agree(client.cluster_id, _first(flow, client))
        if agreed is None:
            raise ClusterUnreachable(
                f"cluster {flow.target.alias}: our own record in {segments_topic(flow.source.alias)} can't be read back"
            )
        return agreed
    finally:
        client.close()


def _first(flow: FlowConfig, client: ClusterClient) -> Identity:
    if flow.takeover_fence == "marker":
        try:
            return fenceable(client, flow.source.alias)
        except (ConnectionError, SparkMirrorError) as error:
            log.warning(
                "flow %s: nobody can be fenced yet, so predecessors are waited for: %s",
                flow.name,
                error,
                extra=Event.FENCE_FAILED.extra,
            )
    return Identity(client.cluster_id, *new_producer_id(client))


def fenceable(client: ClusterClient, source_alias: str) -> Identity:
    """A proposal with a transactional id of its own, so that nobody else has its producer id.

    Raises `ConnectionError` and `ClusterUnreachable`.
    """
    name = transactional_ids(source_alias) + os.urandom(8).hex()
    given = TransactionalId(client, name).begin()
    return Identity(client.cluster_id, *given, transactional_id=name, agreed_ms=int(time.time() * 1000))
