"""A rolling upgrade: one broker after the other becomes another version, so for a while there are two."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from kafka.admin import KafkaAdminClient

from sparkmirror.demo import KafkaCluster

_IN_SYNC_S = 90


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
    """Wait until no partition lacks a replica: else the next broker that stops leaves it without a leader."""
    deadline = time.monotonic() + _IN_SYNC_S
    while lagging := _lagging(cluster):
        assert time.monotonic() < deadline, f"not in sync after {_IN_SYNC_S} s: {lagging}"
        time.sleep(0.2)


def _lagging(cluster: KafkaCluster) -> list[str]:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    try:
        return [
            f"{topic['name']}-{part['partition_index']}"
            for topic in admin.describe_topics()
            for part in topic["partitions"]
            if len(part["isr_nodes"]) < len(part["replica_nodes"])
        ]
    finally:
        admin.close()
