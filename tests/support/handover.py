"""One topic that goes from a real MirrorMaker 2 to us and back, under load: who has copied what, and how often."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition
from lab import KafkaCluster, RealMirrorMaker
from pyspark.sql import SparkSession
from tests.support import mirror_process as mp
from tests.support.mirror_thread import run_mirror

from sparkmirror.config import ClusterConfig, load_mm2_properties
from sparkmirror.demo.jars import KAFKA_VERSION
from sparkmirror.demo.jvm import QUICK_START
from sparkmirror.demo.ports import free_ports
from sparkmirror.exact.mm2.connect_offsets import java_partition
from sparkmirror.exact.mm2.record_formats import OffsetSync
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.groups import Groups
from sparkmirror.mirror.engine.mirror import Mirror
from sparkmirror.mirror.sync.group_offsets import IDLE

PARTITIONS = 4
OFFSET_SYNCS = "mm2-offset-syncs.B.internal"
FLUSH_MS = 5_000
"""Between the times that MirrorMaker 2 stores its offsets here; a minute by default."""

TRANSACTION_TIMEOUT_S = 10
"""A minute by default: so long the coordinator waits for a transaction whose producer was killed."""


def exactly_once_support() -> dict[str, str]:
    """Settings of a dedicated MirrorMaker 2 that copies in transactions."""
    (port,) = free_ports(1)
    return {
        "B.exactly.once.source.support": "enabled",
        "dedicated.mode.enable.internal.rest": "true",
        "listeners": f"http://127.0.0.1:{port}",
        "B.producer.transaction.timeout.ms": str(TRANSACTION_TIMEOUT_S * 1000),
    }


class Handover:
    """One topic that is written to, and whoever copies it; `settings` are added to the file of both."""

    def __init__(
        self,
        source: KafkaCluster,
        target: KafkaCluster,
        topic: str,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        mirror_maker_version: str = KAFKA_VERSION,
    ) -> None:
        self.source, self.target, self.topic, self.directory = source, target, topic, directory
        self.alias = f"S{topic[-12:]}"
        self.offsets_topic = f"mm2-offsets.{self.alias}.internal"
        mp.create_topic(source.bootstrap_servers, topic, PARTITIONS)
        self.settings = {
            "clusters": f"{self.alias}, B",
            f"{self.alias}.bootstrap.servers": source.bootstrap_servers,
            "B.bootstrap.servers": target.bootstrap_servers,
            f"{self.alias}->B.enabled": "true",
            f"B->{self.alias}.enabled": "false",
            "topics": topic,
            "tasks.max": "2",
            "emit.heartbeats.enabled": "false",
            "heartbeats.replication.enabled": "false",
            "refresh.topics.interval.seconds": "2",
            "B.session.timeout.ms": "6000",
            "B.offset.flush.interval.ms": str(FLUSH_MS),
            **mp.ONE_REPLICA,
            **(settings or {}),
        }
        self.mirror_maker = RealMirrorMaker(
            self.settings, directory / "mm2", jvm_options=QUICK_START, version=mirror_maker_version
        )
        self.properties = directory / "ours.properties"
        self.properties.write_text("".join(f"{key} = {value}\n" for key, value in self.settings.items()))

    @property
    def remote(self) -> str:
        return f"{self.alias}.{self.topic}"

    def ends(self) -> list[int]:
        return mp.end_offsets(self.target.bootstrap_servers, self.remote, PARTITIONS)

    def written(self) -> int:
        """How many records the source has."""
        return sum(mp.end_offsets(self.source.bootstrap_servers, self.topic, PARTITIONS))

    def copied(self) -> int:
        return sum(self.ends())

    def wait_for_more(self, records: int, what: str) -> None:
        """In all, and some in each partition: MirrorMaker 2's tasks begin one after the other."""
        before = self.ends()

        def enough() -> bool:
            more = [now - then for now, then in zip(self.ends(), before, strict=True)]
            return sum(more) >= records and min(more) > 0

        mp.wait_for(enough, 300, f"{records} more records by {what}")

    def wait_for_syncs(self) -> None:
        """Until MirrorMaker 2 has written an offset sync of each partition, so that it can be killed.

        A partition with neither a sync nor a stored offset is refused at the takeover, like a foreign log.
        """

        def synced() -> set[int]:
            syncs = [OffsetSync.read(record.key, record.value) for _, record in read(self.source, OFFSET_SYNCS, 1)]
            return {sync.partition for sync in syncs if sync.topic == self.topic}

        mp.wait_for(lambda: len(synced()) == PARTITIONS, 60, "an offset sync of each partition")

    def wait_until_forgotten(self) -> None:
        """After a kill: a MirrorMaker 2 that comes before the group has forgotten us can't join it, and ends."""
        client = ClusterClient(
            ClusterConfig(alias="B", bootstrap_servers=(self.target.bootstrap_servers,)), "sparkmirror-test"
        )
        with contextlib.closing(client):
            client.metadata([])
            groups = Groups(client)
            mp.wait_for(lambda: groups.listed()[f"{self.alias}-mm2"].state in IDLE, 60, "the lease's group is empty")

    def wait_for_all(self, repeated: int = 0) -> None:
        """Until the target has as many as the source, and those that are there more than once."""
        mp.wait_for(lambda: self.copied() >= repeated + self.written(), 120, "the rest")

    def finish(self, spark: SparkSession) -> Mirror:
        """We copy what is left, and end."""
        mirror = Mirror(load_mm2_properties(str(self.properties)), once=True, use_lease=False, spark=spark)
        mirror.run()
        return mirror

    def counts(self, cluster: KafkaCluster, topic: str) -> dict[int, int]:
        """Records that a reader of committed ones sees, by partition."""
        return {index: len(records) for index, records in per_partition(cluster, topic).items()}

    def ours(self, spark: SparkSession) -> AbstractContextManager[Mirror]:
        """We copy, and hand back at the end."""
        return run_mirror(self.properties, spark)

    def commit(self, cluster: KafkaCluster, group: str, topic: str, offsets: Sequence[int]) -> None:
        """Have a group without members stand there."""
        consumer: Any = KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers, group_id=group)
        where = {
            TopicPartition(topic, index): OffsetAndMetadata(offset, "", -1) for index, offset in enumerate(offsets)
        }
        consumer.assign(list(where))
        consumer.commit(where)
        consumer.close(autocommit=False)

    def committed(self, cluster: KafkaCluster, group: str, topic: str) -> list[int]:
        """Where a group stands, by partition; 0: nowhere."""
        consumer: Any = KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers, group_id=group)
        try:
            return [consumer.committed(TopicPartition(topic, index)) or 0 for index in range(PARTITIONS)]
        finally:
            consumer.close(autocommit=False)

    def stored(self, connector: str = "MirrorSourceConnector") -> dict[int, int]:
        """What the offsets topic says, read as a stranger would."""
        found = {}
        for partition, record in read(self.target, self.offsets_topic, 25):
            name, where = json.loads(record.key)
            if name == connector:
                found[where["partition"]] = json.loads(record.value)["offset"]
                assert java_partition(record.key, 25) == partition
        return found

    def repeated(self) -> dict[int, int]:
        """How many records are at the target more than once, by partition; none is missing, none out of place."""
        source, target = per_partition(self.source, self.topic), per_partition(self.target, self.remote)
        found = {}
        for partition, ours in source.items():
            theirs = target[partition]
            counts = Counter(theirs)
            assert set(counts) == set(ours), f"{partition}: {len(set(ours) - set(counts))} missing"
            first_seen = list(dict.fromkeys(theirs))
            assert first_seen == ours, f"{partition}: out of order"
            found[partition] = len(theirs) - len(ours)
        return found


def wait_for_all_taken(mirror: Mirror) -> None:
    """Until each partition was taken over; one whose last transaction has not ended yet is looked at again."""
    mp.wait_for(lambda: mirror.drivers[0].topics.takeover.taken == PARTITIONS, 120, "all partitions are taken over")


def read(cluster: KafkaCluster, topic: str, partitions: int) -> Iterator[tuple[int, Any]]:
    consumer = KafkaConsumer(
        bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest", isolation_level="read_committed"
    )
    where = [TopicPartition(topic, index) for index in range(partitions)]
    consumer.assign(where)
    ends = consumer.end_offsets(where)
    while any(consumer.position(one) < ends[one] for one in where):
        for one, records in consumer.poll(timeout_ms=500).items():
            for record in records:
                yield one.partition, record
    consumer.close()


def per_partition(cluster: KafkaCluster, topic: str) -> dict[int, list[object]]:
    found: dict[int, list[object]] = {index: [] for index in range(PARTITIONS)}
    for partition, record in read(cluster, topic, PARTITIONS):
        found[partition].append((record.timestamp, record.key, record.value, tuple(record.headers)))
    return found
