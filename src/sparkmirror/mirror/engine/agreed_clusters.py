"""The source that a flow's processes agree on (R20).

`mirror/engine/accepted_source.py` compares it with the source that answers.
"""

from __future__ import annotations

from contextlib import closing

from sparkmirror.config import FlowConfig
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import segments_topic
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire.error_codes import ErrorCode

ROLE = "sparkmirror-clusters"


def agreed_source_id(flow: FlowConfig) -> str:
    """Return the flow's source cluster id.

    Empty: none is agreed on yet. Raises `ClusterUnreachable`.
    """
    with closing(ClusterClient(flow.target, f"{flow.name}|{ROLE}")) as client:
        claim_log = agreed_claims(flow, client)
        source = None if claim_log is None else claim_log.source_cluster()
    return source.cluster_id if source is not None else ""


def agreed_claims(flow: FlowConfig, client: ClusterClient) -> ClaimLog | None:
    """Return the flow's claims; `None` before the first process has run."""
    topic = segments_topic(flow.source.alias)
    if client.metadata([topic])[topic].error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return None
    return ClaimLog(TopicLog(client, topic))
