"""Clusters of a flow: the agreed clusters beside the answering clusters (R20)."""

from __future__ import annotations

from contextlib import closing
from typing import NamedTuple

from sparkmirror.cluster.admin import ClusterAdmin
from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.config import FlowConfig
from sparkmirror.durable.claim_log import SegmentLog
from sparkmirror.durable.claims import Segment, segments_topic
from sparkmirror.durable.source_cluster import SourceCluster
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.wire.error_codes import ErrorCode
from sparkmirror.wire.topic_ids import NO_ID

_ROLE = "sparkmirror-clusters"
_CONNECT_S = 15.0


class AgreedSource(NamedTuple):
    """Cluster that a flow copies from, and what it has copied."""

    source: SourceCluster | None
    """Source as agreed on; None: nothing is agreed on yet."""
    topics: int = 0
    """Number of topics at the target with claims of the flow."""
    tells_topics_apart: bool = True
    """False if claims lack source topic ids: the source was older than Kafka 2.8."""


class FlowClusters(NamedTuple):
    """Agreed source of a flow, and the clusters that answer."""

    agreed: AgreedSource
    source_id: str
    """Cluster id of the source that answers now."""
    target_id: str
    source_tells_topics_apart: bool
    """True if the source that answers now gives its topics ids."""

    @property
    def is_another(self) -> bool:
        """True if another cluster than the flow's answers as its source."""
        return self.agreed.source is not None and self.agreed.source.cluster_id != self.source_id

    @property
    def is_one_cluster(self) -> bool:
        """True if source and target are the same cluster."""
        return self.source_id == self.target_id != ""


def agreed_source_id(flow: FlowConfig) -> str:
    """Return the id of the flow's source cluster.

    Empty: none is agreed on yet. Raises `ClusterUnreachable`.
    """
    with closing(ClusterClient(flow.target, f"{flow.name}|{_ROLE}")) as client:
        segments = _segments(flow, client)
        source = None if segments is None else segments.source_cluster()
    return source.cluster_id if source is not None else ""


def flow_clusters(flow: FlowConfig) -> FlowClusters:
    """Ask both clusters of a flow; raises `ClusterUnreachable`."""
    timeout_s = min(flow.admin_timeout_ms / 1000, _CONNECT_S)
    with closing(ClusterClient(flow.target, f"{flow.name}|{_ROLE}")) as client:
        segments = _segments(flow, client)
        agreed = AgreedSource(None) if segments is None else _agreed(segments)
        target_id = client.cluster_id
    with ClusterAdmin.connect(flow.source, f"{flow.name}|{_ROLE}", timeout_s) as source:
        topics = source.topics()
        tells = all(topic.topic_id != NO_ID for topic in topics.values())
        return FlowClusters(agreed, source.cluster_id(), target_id, tells)


def accept_source(flow: FlowConfig, clusters: FlowClusters) -> None:
    """Have the flow copy from the answering cluster, from the next start on.

    Raises `ClusterUnreachable`, also if another process has said something else meanwhile.
    """
    agreed = clusters.agreed.source
    proposal = SourceCluster(agreed.number + 1 if agreed is not None else 0, clusters.source_id)
    with closing(ClusterClient(flow.target, f"{flow.name}|{_ROLE}")) as client:
        segments = SegmentLog(TopicLog(client, segments_topic(flow.source.alias)))
        counts = segments.agree_source(proposal)
    if counts != proposal:
        raise ClusterUnreachable(f"flow {flow.name}: another process has said that its source is {counts}; look again")


def _segments(flow: FlowConfig, client: ClusterClient) -> SegmentLog | None:
    topic = segments_topic(flow.source.alias)
    if client.metadata([topic])[topic].error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return None
    return SegmentLog(TopicLog(client, topic))


def _agreed(segments: SegmentLog) -> AgreedSource:
    claims = [claim for home in range(segments.homes) for claim in segments.history(home) if isinstance(claim, Segment)]
    return AgreedSource(
        segments.source_cluster(),
        len({claim.target_topic_id for claim in claims}),
        all(claim.source_topic_id != NO_ID for claim in claims),
    )
