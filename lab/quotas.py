"""A cluster's client quotas: how fast clients may write and read."""

from __future__ import annotations

from kafka.protocol.admin import AlterClientQuotasRequest

from lab.cluster import KafkaCluster
from sparkmirror.config.model import ClusterConfig
from sparkmirror.errors import SetupError
from sparkmirror.kafka.cluster.client import ClusterClient

_Entry = AlterClientQuotasRequest.EntryData


def set_quota(cluster: KafkaCluster, rate: str, bytes_per_s: float | None, client_id: str | None = None) -> None:
    """Set `producer_byte_rate` or `consumer_byte_rate` at each broker.

    The quota is for `client_id`, or by default for all clients without their own quota. None removes the quota. Raises
    SetupError.
    """
    whose = _Entry.EntityData(entity_type="client-id", entity_name=client_id)
    change = _Entry.OpData(key=rate, value=bytes_per_s or 0.0, remove=bytes_per_s is None)
    request = AlterClientQuotasRequest(entries=[_Entry(entity=[whose], ops=[change])], validate_only=False)
    servers = tuple(cluster.direct_servers.split(","))
    client = ClusterClient(ClusterConfig(alias="quotas", bootstrap_servers=servers), "quotas")
    try:
        (entry,) = client.ask_any(lambda: request).entries
    finally:
        client.close()
    if entry.error_code:
        raise SetupError(f"{rate} could not be set: {entry.error_message}")
