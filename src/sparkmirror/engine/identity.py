"""Agreement on a flow's identity, before anything is sent (invariant 7, R12)."""

from __future__ import annotations

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.producers import new_producer_id
from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.config import FlowConfig
from sparkmirror.durable.claim_log import SegmentLog
from sparkmirror.durable.claims import segments_topic
from sparkmirror.durable.identity import Identity
from sparkmirror.errors import ClusterUnreachable


def agree_identity(flow: FlowConfig) -> Identity:
    """Return the identity shared by all processes of this flow at this target.

    Raises `ClusterUnreachable`.
    """
    client = ClusterClient(flow.target, f"{flow.name}|sparkmirror-identity")
    try:
        segments = SegmentLog(TopicLog(client, segments_topic(flow.source.alias)))
        client.metadata([])
        agreed = segments.agree(client.cluster_id, None)
        if agreed is None:
            agreed = segments.agree(client.cluster_id, Identity(client.cluster_id, *new_producer_id(client)))
        if agreed is None:
            raise ClusterUnreachable(
                f"cluster {flow.target.alias}: sparkmirror's own record in {segments_topic(flow.source.alias)} "
                "can't be read back"
            )
        return agreed
    finally:
        client.close()
