"""From a real MirrorMaker 2 to us under load, stopped or killed, and back to it: every record once."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import mirror_process as mp
import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from mirror_thread import run_mirror
from pyspark.sql import SparkSession

from sparkmirror.config import load_mm2_properties
from sparkmirror.demo import KafkaCluster, RealMirrorMaker
from sparkmirror.demo.jvm import QUICK_START
from sparkmirror.engine.mirror import Mirror
from sparkmirror.errors import CopyIncomplete
from sparkmirror.offsets.connect_offsets import SourcePartition, java_partition, offset_value

pytestmark = [pytest.mark.broker, pytest.mark.spark]

PARTITIONS = 4
FLUSH_MS = 5_000
"""Between the times that MirrorMaker 2 stores its offsets here; a minute by default."""


class Handover:
    """One topic that is written to, and whoever copies it."""

    def __init__(self, source: KafkaCluster, target: KafkaCluster, topic: str, directory: Path) -> None:
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
            **dict.fromkeys(
                [
                    "replication.factor",
                    "checkpoints.topic.replication.factor",
                    "heartbeats.topic.replication.factor",
                    "offset-syncs.topic.replication.factor",
                    "offset.storage.replication.factor",
                    "status.storage.replication.factor",
                    "config.storage.replication.factor",
                ],
                "1",
            ),
        }
        self.mirror_maker = RealMirrorMaker(self.settings, directory / "mm2", jvm_options=QUICK_START)
        self.properties = directory / "ours.properties"
        self.properties.write_text("".join(f"{key} = {value}\n" for key, value in self.settings.items()))

    @property
    def remote(self) -> str:
        return f"{self.alias}.{self.topic}"

    def copied(self) -> int:
        return sum(mp.end_offsets(self.target.bootstrap_servers, self.remote, PARTITIONS))

    def wait_for_more(self, records: int, what: str) -> None:
        before = self.copied()
        mp.wait_for(lambda: self.copied() >= before + records, 120, f"{records} more records by {what}")

    def wait_for_all(self, repeated: int = 0) -> None:
        """Until the target has as many as the source, and those that are there more than once."""
        mp.wait_for(
            lambda: (
                self.copied() >= repeated + sum(mp.end_offsets(self.source.bootstrap_servers, self.topic, PARTITIONS))
            ),
            120,
            "the rest",
        )

    def ours(self, spark: SparkSession) -> AbstractContextManager[Mirror]:
        """We copy, and hand back at the end."""
        return run_mirror(self.properties, spark)

    def stored(self) -> dict[int, int]:
        """What the offsets topic says, read as a stranger would."""
        found = {}
        for partition, record in read(self.target, self.offsets_topic, 25):
            name, where = json.loads(record.key)
            if name == "MirrorSourceConnector":
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


def read(cluster: KafkaCluster, topic: str, partitions: int) -> Iterator[tuple[int, Any]]:
    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest")
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


@pytest.fixture
def handover(source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path) -> Handover:
    return Handover(source_cluster, target_cluster, topic_name, tmp_path)


@pytest.mark.full
def test_stopped_cleanly_and_handed_back_and_taken_over_again(handover: Handover, spark: SparkSession) -> None:
    with mp.load(handover.source.bootstrap_servers, handover.topic, PARTITIONS):
        with handover.mirror_maker:
            handover.wait_for_more(10_000, "MirrorMaker 2")
        began = time.monotonic()
        with handover.ours(spark) as mirror:
            handover.wait_for_more(3_000, "us")
            print(f"us: 10,000 records after {time.monotonic() - began:.1f} s")
            assert mirror.drivers[0].takeover.taken == PARTITIONS
        with handover.mirror_maker:
            handover.wait_for_more(10_000, "MirrorMaker 2 again")
        with handover.ours(spark) as mirror:
            handover.wait_for_more(10_000, "us again")
            assert mirror.drivers[0].takeover.taken == PARTITIONS
    with handover.ours(spark):
        handover.wait_for_all()
    print(f"{handover.copied()} records, repeated: {handover.repeated()}")
    assert not any(handover.repeated().values())


@pytest.mark.full
def test_killed(handover: Handover, spark: SparkSession) -> None:
    """Its stored offsets are old then, and behind them thousands of records are at the target."""
    with mp.load(handover.source.bootstrap_servers, handover.topic, PARTITIONS):
        handover.mirror_maker.start()
        handover.wait_for_more(20_000, "MirrorMaker 2")
        handover.mirror_maker.kill()
        ends = mp.end_offsets(handover.target.bootstrap_servers, handover.remote, PARTITIONS)
        stored = handover.stored()
        behind = [ends[index] - 1 - stored.get(index, -1) for index in range(PARTITIONS)]
        print(f"killed: stored offsets behind the target's ends by {behind}")
        began = time.monotonic()
        with handover.ours(spark) as mirror:
            handover.wait_for_more(3_000, "us")
            print(f"us: 10,000 records after {time.monotonic() - began:.1f} s")
            assert mirror.drivers[0].takeover.taken == PARTITIONS
    with handover.ours(spark):
        handover.wait_for_all()
    print(f"{handover.copied()} records, repeated: {handover.repeated()}")
    assert max(behind) > 0
    assert not any(handover.repeated().values())


@pytest.mark.full
def test_we_are_killed(handover: Handover) -> None:
    """Then MirrorMaker 2 repeats what we have copied since the duty ran last, and no more."""
    with ExitStack() as stack:
        with mp.load(handover.source.bootstrap_servers, handover.topic, PARTITIONS):
            with mp.MirrorProcess(handover.properties, handover.directory / "ours.log") as mirror:
                handover.wait_for_more(3_000, "us")
                mp.wait_for(lambda: len(handover.stored()) == PARTITIONS, 60, "our offsets in Connect's topic")
                handover.wait_for_more(3_000, "us")
                mirror.kill_all()
            stored = handover.stored()
            ends = mp.end_offsets(handover.target.bootstrap_servers, handover.remote, PARTITIONS)
            bound = {index: end - 1 - stored[index] for index, end in enumerate(ends)}
            stack.enter_context(handover.mirror_maker)
            handover.wait_for_more(20_000, "MirrorMaker 2")
        handover.wait_for_all(repeated=sum(bound.values()))
    print(f"copied since: {bound}, repeated: {handover.repeated()}")
    assert sum(bound.values()) > 0
    assert handover.repeated() == bound


def test_what_cannot_be_taken_over_is_not_copied_and_the_run_says_why(handover: Handover, spark: SparkSession) -> None:
    mp.create_topic(handover.target.bootstrap_servers, handover.remote, PARTITIONS)
    mp.create_topic(handover.target.bootstrap_servers, handover.offsets_topic, 25)
    mp.produce(handover.source.bootstrap_servers, handover.topic, PARTITIONS, 40)
    mp.produce(handover.target.bootstrap_servers, handover.remote, 1, 3)  # somebody's own
    producer = KafkaProducer(bootstrap_servers=handover.target.bootstrap_servers)
    for partition in range(PARTITIONS):
        key = SourcePartition("MirrorSourceConnector", handover.alias, handover.topic, partition).key()
        producer.send(handover.offsets_topic, key=key, value=offset_value(4))
    producer.close()
    run = Mirror(load_mm2_properties(str(handover.properties)), once=True, use_lease=False, spark=spark).run
    with pytest.raises(CopyIncomplete, match=f"{handover.topic}-0 stopped.*start MirrorMaker 2 once more") as found:
        run()
    assert len(str(found.value).splitlines()) == 1
    assert mp.end_offsets(handover.target.bootstrap_servers, handover.remote, PARTITIONS) == [3, 10, 10, 10]
