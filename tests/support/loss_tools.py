"""What tests of losses do to clusters, and how they look at ledgers and logs."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from lab import KafkaCluster
from pyspark.sql import SparkSession
from tests.support import mirror_process as mp

from sparkmirror.config import ClusterConfig, load_mm2_properties
from sparkmirror.exact.durable.acknowledgements import acknowledge, read_ledger
from sparkmirror.exact.durable.losses import Loss, LossLedger, losses_topic
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.mirror.engine.mirror import Mirror


class Record(NamedTuple):
    """Everything that a copy keeps of a record, but its offset."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


def records(cluster: KafkaCluster, topic: str, partition: int) -> dict[int, Record]:
    """A whole log, by offset."""
    where = TopicPartition(topic, partition)
    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers)
    try:
        consumer.assign([where])
        consumer.seek_to_beginning(where)
        end = consumer.end_offsets([where])[where]
        found: dict[int, Record] = {}
        while consumer.position(where) < end:
            for batch in consumer.poll(1000).values():
                for one in batch:
                    found[one.offset] = Record(one.timestamp, one.key, one.value, tuple(one.headers))
        return found
    finally:
        consumer.close()


def ledger(cluster: KafkaCluster, topic: str, source: str = "A") -> list[Loss]:
    """What the ledger of the flow from a source says of one source topic, by partition, the oldest first."""
    with closing(_target_client(cluster)) as client:
        found = LossLedger(TopicLog(client, losses_topic(source))).read()
        return sorted((loss for loss in found if loss.source_topic == topic), key=lambda loss: loss.partition)


def _target_client(cluster: KafkaCluster) -> ClusterClient:
    return ClusterClient(
        ClusterConfig(alias="B", bootstrap_servers=tuple(cluster.bootstrap_servers.split(","))), "test"
    )


def acknowledge_all(cluster: KafkaCluster) -> None:
    """What other tests have lost in the flow from A makes nothing unhealthy."""
    with closing(_target_client(cluster)) as client, suppress(ConnectionError):  # no test has used the flow yet
        log = TopicLog(client, losses_topic("A"))
        if losses := [entry.loss for entry in read_ledger(log) if entry.is_open]:
            acknowledge(log, losses, at_ms=1, by="test", why="of another test")


def gist(losses: list[Loss]) -> list[tuple[str, int, int, int, int, str]]:
    """Kind, partition, offsets, where it shows, and what was done."""
    return [
        (str(loss.kind), loss.partition, loss.first, loss.end, loss.downstream, str(loss.action)) for loss in losses
    ]


def copy_once(path: Path, spark: SparkSession) -> Mirror:
    """Copy what is there; raises `CopyIncomplete`."""
    mirror = Mirror(load_mm2_properties(str(path)), once=True, use_lease=False, spark=spark)
    mirror.run()
    return mirror


def delete_records(cluster: KafkaCluster, topic: str, partition: int, before: int) -> None:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    admin.delete_records({TopicPartition(topic, partition): before})
    admin.close()


def delete_topic(cluster: KafkaCluster, topic: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    admin.delete_topics([topic])
    mp.wait_for(lambda: topic not in admin.list_topics(), 180, f"{topic} deleted")
    admin.close()


def recreate_topic(cluster: KafkaCluster, topic: str, partitions: int) -> None:
    delete_topic(cluster, topic)
    mp.create_topic(cluster.bootstrap_servers, topic, partitions)
