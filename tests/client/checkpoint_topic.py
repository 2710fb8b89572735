"""A checkpoints topic whose records a test writes itself."""

from __future__ import annotations

from collections.abc import Sequence

from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from lab import KafkaCluster

from sparkmirror.config import ClusterConfig
from sparkmirror.exact.mm2.record_formats import Checkpoint
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog


def checkpointed(cluster: KafkaCluster, alias: str, records: Sequence[tuple[bytes, bytes | None]]) -> dict[str, str]:
    """A checkpoints topic of a source of the test's own; returns a client's settings."""
    topic = f"{alias}.checkpoints.internal"
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    admin.create_topics([NewTopic(topic, 1, 1, topic_configs={"cleanup.policy": "compact"})])
    admin.wait_for_topics([topic], timeout_ms=60_000)
    admin.close()
    client = ClusterClient(ClusterConfig(alias="B", bootstrap_servers=(cluster.bootstrap_servers,)), "test")
    for record in records:
        TopicLog(client, topic).append(0, [record])
    client.close()
    return {"bootstrap.servers": cluster.bootstrap_servers}


def record(group: str, partition: int, downstream: int, metadata: str = "", topic: str = "A.t") -> tuple[bytes, bytes]:
    checkpoint = Checkpoint(
        group=group,
        topic=topic,
        partition=partition,
        upstream=1000 + downstream,
        downstream=downstream,
        metadata=metadata,
    )
    return checkpoint.key(), checkpoint.value()
