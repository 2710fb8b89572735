"""MirrorMaker 1's group taken over and given back, and what a partition that can't be copied does to the run.

The real MirrorMaker 1 is not among Kafka 4's jars: `OldMirrorMaker` does what its loop does, with the same defaults.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from lab import KafkaCluster
from pyspark.sql import SparkSession
from tests.support import mirror_process as mp
from tests.support.mirror_thread import run_config

from sparkmirror.config import ClusterConfig, MirrorConfig
from sparkmirror.config.legacy import LegacyOptions, load_legacy, named_after
from sparkmirror.errors import CopyIncomplete
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.groups import Committed, Groups, Offsets
from sparkmirror.mirror.engine import report_watch, topic_refresh
from sparkmirror.mirror.engine.completion import send_failure
from sparkmirror.mirror.engine.mirror import Mirror
from sparkmirror.mirror.sync.mm1_commits import OURS

pytestmark = [pytest.mark.broker, pytest.mark.spark]

PATIENCE_S = 240.0
"""Spark may have to start first, and tests share their machine."""

Configure = Callable[..., MirrorConfig]


class OldMirrorMaker:
    """MirrorMaker 1's loop: consume as a member of the group, produce by key, flush, commit; a context manager."""

    def __init__(self, source: str, target: str, topic: str, group: str, *, reset: str = "earliest") -> None:
        self._consumer: Any = KafkaConsumer(
            topic,
            bootstrap_servers=source,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset=reset,
            session_timeout_ms=6000,
            heartbeat_interval_ms=500,
        )
        self._producer: Any = KafkaProducer(bootstrap_servers=target, acks="all")

    def __enter__(self) -> OldMirrorMaker:
        return self

    def __exit__(self, *_: object) -> None:
        self._producer.close()
        self._consumer.close(autocommit=False)

    def copy(self, records: int) -> None:
        """Copy so many at least, and commit; in a batch there may be more."""
        copied = 0

        def turn() -> bool:
            nonlocal copied
            for some in self._consumer.poll(timeout_ms=500, max_records=50).values():
                for one in some:
                    self._producer.send(
                        one.topic, key=one.key, value=one.value, headers=one.headers, timestamp_ms=one.timestamp
                    )
                    copied += 1
            return copied >= records

        mp.wait_for(turn, PATIENCE_S, f"{records} records by MirrorMaker 1")
        self._producer.flush()
        self._consumer.commit()


@pytest.fixture
def configure(source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path) -> Configure:
    """The two files of a mirror whose group is called as the topic."""

    def configured(include: str = topic_name, **options: Any) -> MirrorConfig:
        reset = options.pop("reset", "latest")
        files = {
            "consumer": {
                "bootstrap.servers": source_cluster.bootstrap_servers,
                "group.id": topic_name,
                "auto.offset.reset": reset,
                "metadata.max.age.ms": "2000",
            },
            "producer": {"bootstrap.servers": target_cluster.bootstrap_servers},
        }
        for name, keys in files.items():
            (tmp_path / f"{name}.properties").write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
        consumer, producer = (str(tmp_path / f"{name}.properties") for name in files)
        config = load_legacy(LegacyOptions(consumer=consumer, producer=producer, include=include, **options))
        with ClusterAdmin.connect(config.flows[0].source, "test", 20.0) as admin:
            return named_after(config, admin.cluster_id())

    return configured


@pytest.fixture
def groups(source_cluster: KafkaCluster) -> Iterator[Groups]:
    client = ClusterClient(ClusterConfig(alias="A", bootstrap_servers=(source_cluster.bootstrap_servers,)), "test")
    yield Groups(client)
    client.close()


def write(cluster: KafkaCluster, topic: str, first: int, count: int, partitions: list[int]) -> None:
    """Numbered records with keys that MirrorMaker 1 spreads over all partitions, into some of them."""
    producer: Any = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers)
    for number in range(first, first + count):
        partition = partitions[number % len(partitions)]
        producer.send(topic, key=b"key-%d" % number, value=b"%d" % number, partition=partition)
    producer.close()


def numbers(cluster: KafkaCluster, topic: str, partitions: int) -> Counter[int]:
    """How often each number is in a topic."""
    consumer: Any = KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers, enable_auto_commit=False)
    try:
        where = [TopicPartition(topic, partition) for partition in range(partitions)]
        consumer.assign(where)
        consumer.seek_to_beginning(*where)
        left = {one: end for one, end in consumer.end_offsets(where).items() if end}
        found: Counter[int] = Counter()
        while any(consumer.position(one) < end for one, end in left.items()):
            for some in consumer.poll(timeout_ms=500).values():
                found.update(int(one.value) for one in some)
        return found
    finally:
        consumer.close()


def test_a_group_is_taken_over_and_given_back(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    spark: SparkSession,
    configure: Configure,
    groups: Groups,
) -> None:
    """Twice there and back: every record once, though MirrorMaker 1 puts records into other partitions than ours."""
    servers = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    mp.create_topic(servers[0], topic_name, 3)
    mp.create_topic(servers[1], topic_name, 3)
    config = configure(offset_commit_interval_ms=500)

    def committed() -> dict[int, Committed]:
        found = groups.committed([topic_name]).offsets[topic_name]
        return {partition: one for (_, partition), one in found.items()}

    def ends() -> dict[int, int]:
        return dict(enumerate(mp.end_offsets(servers[0], topic_name, 3)))

    def copied(count: int) -> bool:
        return sum(mp.end_offsets(servers[1], topic_name, 3)) >= count

    write(source_cluster, topic_name, 0, 200, [0, 1])
    with OldMirrorMaker(*servers, topic_name, topic_name) as old:
        old.copy(120)
    by_them = sum(mp.end_offsets(servers[1], topic_name, 3))
    assert by_them < 200
    theirs = committed()
    assert sum(one.offset for one in theirs.values()) == by_them

    with run_config(config, spark) as mirror:
        mp.wait_for(lambda: copied(200), PATIENCE_S, "what MirrorMaker 1 had left")
        assert mirror.drivers[0].topics.takeover.taken == len(theirs)
        write(source_cluster, topic_name, 200, 100, [0, 1, 2])  # partition 2 was empty, and nothing was committed
        mp.wait_for(lambda: copied(300), PATIENCE_S, "all partitions")
        mp.wait_for(
            lambda: {index: one.offset for index, one in committed().items()} == ends(), PATIENCE_S, "our commits"
        )
        assert not mirror.drivers[0].failing
        write(source_cluster, topic_name, 300, 30, [0, 1, 2])
        mp.wait_for(lambda: copied(330), PATIENCE_S, "the last ones")
    assert committed() == {index: Committed(end, OURS) for index, end in ends().items()}
    assert numbers(target_cluster, topic_name, 3) == Counter(range(330))

    write(source_cluster, topic_name, 330, 60, [0])
    with OldMirrorMaker(*servers, topic_name, topic_name) as old:
        old.copy(60)
    assert numbers(target_cluster, topic_name, 3) == Counter(range(390))

    write(source_cluster, topic_name, 390, 60, [0, 1, 2])
    with run_config(config, spark) as mirror:
        mp.wait_for(lambda: copied(450), PATIENCE_S, "what came after the way back")
        assert mirror.drivers[0].topics.takeover.taken == 1
    assert numbers(target_cluster, topic_name, 3) == Counter(range(450))

    alias = config.flows[0].source.alias
    with ClusterAdmin.connect(config.flows[0].target, "test") as admin:
        ours = {topic for topic in admin.topics() if alias in topic}
    assert ours == {
        f"mm2-sparkmirror-{what}.{alias}.internal" for what in ("segments", "losses", "control", "receipts", "status")
    }


def test_an_empty_partition_is_given_back(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    spark: SparkSession,
    configure: Configure,
    groups: Groups,
) -> None:
    """MirrorMaker 1 begins at `latest` without a commit, and would skip what is written before it starts."""
    servers = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    mp.create_topic(servers[0], topic_name, 2)
    mp.create_topic(servers[1], topic_name, 2)

    def committed() -> Offsets:
        return groups.committed([topic_name]).offsets.get(topic_name, {})

    starts = {(topic_name, partition): Committed(0, OURS) for partition in range(2)}
    with run_config(configure(offset_commit_interval_ms=500), spark):
        mp.wait_for(lambda: committed() == starts, PATIENCE_S, "commits for empty partitions")
    with run_config(configure(), spark) as mirror:
        mp.wait_for(lambda: mirror.drivers[0].topics.checked, PATIENCE_S, "the look at MirrorMaker 1's copies")
        assert mirror.drivers[0].topics.takeover.taken == 0, "the commits are our own"
    write(source_cluster, topic_name, 0, 20, [0])
    with OldMirrorMaker(*servers, topic_name, topic_name, reset="latest") as old:
        old.copy(20)
    with run_config(configure(), spark):  # partition 0 from MirrorMaker 1's commit, partition 1 from the start
        write(source_cluster, topic_name, 20, 20, [0, 1])
        mp.wait_for(lambda: sum(mp.end_offsets(servers[1], topic_name, 2)) >= 40, PATIENCE_S, "the rest")
    assert numbers(target_cluster, topic_name, 2) == Counter(range(40))


@pytest.mark.full
def test_a_group_with_members_is_waited_for(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    spark: SparkSession,
    configure: Configure,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By name, and it is no failure that would end the run. What the pump said is read, however late one looks."""
    monkeypatch.setattr(topic_refresh, "RETRY_S", 1.0)
    monkeypatch.setattr(report_watch, "WATCH_S", 25.0)
    servers = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    mp.create_topic(servers[0], topic_name, 1)
    mp.create_topic(servers[1], topic_name, 1)
    write(source_cluster, topic_name, 0, 40, [0])

    def parked(mirror: Mirror) -> str:
        return next((one.receipt.reason for one in mirror.drivers[0].view.partitions.values() if one.receipt), "")

    with OldMirrorMaker(*servers, topic_name, topic_name) as old:
        old.copy(40)
        write(source_cluster, topic_name, 40, 10, [0])
        running = run_config(configure(), spark)
        mirror = running.__enter__()
        mp.wait_for(lambda: "MirrorMaker 1 still runs" in parked(mirror), PATIENCE_S, "a word on it")
        assert f"group {topic_name} at {servers[0]} has members" in parked(mirror)
        assert send_failure(mirror.drivers[0]) == ""
        assert mp.end_offsets(servers[1], topic_name, 1) == [40]
    mp.wait_for(lambda: mp.end_offsets(servers[1], topic_name, 1) == [50], PATIENCE_S, "the rest")
    running.__exit__(None, None, None)
    assert numbers(target_cluster, topic_name, 1) == Counter(range(50))


@pytest.mark.parametrize("abort", [True, False])
def test_a_partition_that_can_not_be_copied(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    spark: SparkSession,
    configure: Configure,
    abort: bool,
) -> None:
    """It ends the run, or the others continue; nothing is left out, as MirrorMaker 1 would."""
    small, large = f"{topic_name}-small", f"{topic_name}-large"
    for topic in (small, large):
        mp.create_topic(source_cluster.bootstrap_servers, topic, 1)
    mp.create_topic(target_cluster.bootstrap_servers, large, 1, {"max.message.bytes": "1000"})
    mp.produce(source_cluster.bootstrap_servers, large, 1, 3, codec=None, size=5000)
    write(source_cluster, small, 0, 5, [0])
    config = configure(f"{small},{large}", abort_on_send_failure=abort, reset="earliest")
    running: AbstractContextManager[Mirror] = run_config(config, spark)
    mirror = running.__enter__()
    if abort:
        mp.wait_for(lambda: mirror._stop.is_set(), PATIENCE_S, "the end of the run")  # noqa: SLF001
        with pytest.raises(CopyIncomplete) as caught:
            running.__exit__(None, None, None)
        assert f"{large}-0: " in str(caught.value)
        assert "stopped (abort.on.send.failure)" in str(caught.value)
        assert caught.value.exit_code == 1
        return
    mp.wait_for(lambda: _parked(mirror) == [large], PATIENCE_S, "the large ones to be parked")
    write(source_cluster, small, 5, 5, [0])
    mp.wait_for(lambda: mp.end_offsets(target_cluster.bootstrap_servers, small, 1) == [10], PATIENCE_S, "the others")
    assert mp.end_offsets(target_cluster.bootstrap_servers, large, 1) == [0]
    running.__exit__(None, None, None)


def _parked(mirror: Mirror) -> list[str]:
    receipts = [view.receipt for view in list(mirror.drivers[0].view.partitions.values())]
    return [one.source_topic for one in receipts if one is not None and one.state == "parked"]
