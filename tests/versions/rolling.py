"""A rolling upgrade: one broker after the other becomes another version, so for a while there are two."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping

from kafka.admin import KafkaAdminClient
from lab import KafkaCluster

_IN_SYNC_S = 90
_START = "starting (kafka.server.KafkaServer)"
_REFUSED = re.compile(r"Failed to enqueue ISR change state .* for partition (\S+)")


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

    A leader of 2.8 that can't let a replica in again is restarted: when a controller that knows KIP-841 has refused
    to, as the replica was shutting down, its second request fails, and it sends none from then on.
    """
    deadline = time.monotonic() + _IN_SYNC_S
    while lagging := _lagging(cluster):
        assert time.monotonic() < deadline, f"not in sync after {_IN_SYNC_S} s: {sorted(lagging)}"
        for broker in cluster.brokers:
            if stuck := lagging & _refused(broker.log.read_text()):
                print(f"broker {broker.node_id} is restarted: it lets no replica in again: {sorted(stuck)}")
                cluster.upgrade(broker.version, nodes=[broker.node_id])
        time.sleep(0.2)


def _refused(log: str) -> set[str]:
    """Partitions whose leader could not send a change of their ISR since its start, by its log."""
    return set(_REFUSED.findall(log.rpartition(_START)[2]))


def _lagging(cluster: KafkaCluster) -> set[str]:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    try:
        return {
            f"{topic['name']}-{part['partition_index']}"
            for topic in admin.describe_topics()
            for part in topic["partitions"]
            if len(part["isr_nodes"]) < len(part["replica_nodes"])
        }
    finally:
        admin.close()
