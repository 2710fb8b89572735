"""A flow's clusters: the agreed source next to the source that answers (R20).

For operators, who accept another cluster as the source.
"""

from __future__ import annotations

from contextlib import closing
from typing import NamedTuple

from sparkmirror.config import FlowConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import Claim, segments_topic
from sparkmirror.exact.durable.source_cluster import SourceCluster
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire.topic_ids import NO_ID
from sparkmirror.mirror.engine.agreed_clusters import ROLE, agreed_claims

_CONNECT_S = 15.0


class AgreedSource(NamedTuple):
    """Cluster that a flow copies from, and the copied records."""

    source: SourceCluster | None
    """Source as agreed on; None: nothing is agreed on yet."""
    topics: int = 0
    """Number of target topics with the flow's claims."""
    tells_topics_apart: bool = True
    """False if claims lack source topic ids: the source was older than Kafka 2.8."""


class FlowClusters(NamedTuple):
    """A flow's agreed source, and the clusters that answer."""

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
        return self.source_id == self.target_id != ""


def flow_clusters(flow: FlowConfig) -> FlowClusters:
    """Ask both of a flow's clusters; raises `ClusterUnreachable`."""
    timeout_s = min(flow.admin_timeout_ms / 1000, _CONNECT_S)
    with closing(ClusterClient(flow.target, f"{flow.name}|{ROLE}")) as client:
        claim_log = agreed_claims(flow, client)
        agreed = AgreedSource(None) if claim_log is None else _agreed(claim_log)
        target_id = client.cluster_id
    with ClusterAdmin.connect(flow.source, f"{flow.name}|{ROLE}", timeout_s) as source:
        topics = source.topics()
        tells = all(topic.topic_id != NO_ID for topic in topics.values())
        return FlowClusters(agreed, source.cluster_id(), target_id, tells)


def accept_source(flow: FlowConfig, clusters: FlowClusters) -> None:
    """Have the flow copy from the answering cluster, from the next start on.

    Raises `ClusterUnreachable`, also if another process has said something else meanwhile.
    """
    agreed = clusters.agreed.source
    proposal = SourceCluster(agreed.number + 1 if agreed is not None else 0, clusters.source_id)
    with closing(ClusterClient(flow.target, f"{flow.name}|{ROLE}")) as client:
        claim_log = ClaimLog(TopicLog(client, segments_topic(flow.source.alias)))
        counts = claim_log.agree_source(proposal)
    if counts != proposal:
        raise ClusterUnreachable(f"flow {flow.name}: another process has said that its source is {counts}; look again")


def _agreed(claim_log: ClaimLog) -> AgreedSource:
    claims = [claim for home in range(claim_log.homes) for claim in claim_log.history(home) if isinstance(claim, Claim)]
    return AgreedSource(
        claim_log.source_cluster(),
        len({claim.target_topic_id for claim in claims}),
        all(claim.source_topic_id != NO_ID for claim in claims),
    )
