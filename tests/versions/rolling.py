"""A rolling upgrade: one broker after the other becomes another version, so for a while there are two."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from kafka.admin import KafkaAdminClient

from sparkmirror.demo import KafkaCluster

_IN_SYNC_S = 90
_STUCK_S = 45


def roll(
    cluster: KafkaCluster,
    version: str,
    *,
    properties: Mapping[str, str] | None = None,
    nodes: Collection[int] | None = None,
) -> None:
    """Stop and start brokers in turn, all or only `nodes`, each once all replicas are in sync."""
    for broker in cluster.brokers:
        if nodes is None or broker.node_id in nodes:
            wait_until_in_sync(cluster)
            cluster.upgrade(version, properties=properties, nodes=[broker.node_id])
    wait_until_in_sync(cluster)


def wait_until_in_sync(cluster: KafkaCluster) -> None:
    """Wait until no partition lacks a replica: else the next broker that stops leaves it without a leader.

    A leader of 2.8 is restarted if it can't let a replica in again: when a controller that knows KIP-841 has refused
    to, as the replica was shutting down, its second request fails ("Failed to enqueue ISR change state"), and it sends
    none from then on.
    """
    began = time.monotonic()
    restarted: set[int] = set()
    while lagging := _lagging(cluster):
        waited = time.monotonic() - began
        assert waited < _IN_SYNC_S, f"not in sync after {_IN_SYNC_S} s: {sorted(lagging)}"
        if waited > _STUCK_S:
            for broker in cluster.brokers:
                node = broker.node_id
                if node in lagging.values() and node not in restarted and broker.version.startswith("2.8."):
                    print(f"broker {node} is restarted: it lets no replica in again: {sorted(lagging)}")
                    restarted.add(node)
                    cluster.upgrade(broker.version, nodes=[node])
        time.sleep(0.2)


def _lagging(cluster: KafkaCluster) -> dict[str, int]:
    """Leaders of partitions that lack a replica."""
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    try:
        return {
            f"{topic['name']}-{part['partition_index']}": part["leader_id"]
            for topic in admin.describe_topics()
            for part in topic["partitions"]
            if len(part["isr_nodes"]) < len(part["replica_nodes"])
        }
    finally:
        admin.close()
