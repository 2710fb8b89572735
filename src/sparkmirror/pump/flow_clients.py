"""Clients for one flow's clusters in one pump."""

from __future__ import annotations

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.kafka.cluster.client import ClusterClient


class FlowClients:
    """One flow's clients; each client is for a single thread.

    Only addresses may be asked for by any thread.
    """

    def __init__(self, flow: FlowConfig) -> None:
        source, target = flow.source.for_copying, flow.target.for_copying
        self.source = ClusterClient(_as(source, flow.fetch.client_id), f"{flow.name}|sparkmirror-fetch")
        self.target = ClusterClient(_as(target, flow.produce.client_id), f"{flow.name}|sparkmirror-produce")
        self.idle = ClusterClient(_as(target, flow.produce.client_id), f"{flow.name}|sparkmirror-idle")
        """Client for the high watermarks of copies at rest."""
        self.positions = ClusterClient(flow.target, f"{flow.name}|sparkmirror-segments")
        """Client for claims and losses, as position readings need them."""
        self.claims = ClusterClient(flow.target, f"{flow.name}|sparkmirror-claims")


def _as(cluster: ClusterConfig, client_id: str) -> ClusterConfig:
    return cluster.model_copy(update={"client_id": client_id}) if client_id else cluster
