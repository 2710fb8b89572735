"""A source whose topics get ids by an upgrade: nothing is copied again, and a copy that holds records twice is told."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import TopicAlreadyExistsError
from lab import KafkaCluster
from lab.zookeeper import ZooKeeperCluster
from tests.support import mirror_process as mp

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

PARTITIONS = 2
BEFORE, AFTER = 400, 100
LONGEST_S = 240.0

TAKES_IDS_FOR_OTHERS = """
from sparkmirror.kafka.wire import topic_ids
topic_ids.same_topic = lambda one_id, other_id: one_id == other_id
"""
"""As versions before this rule did: a topic that gets its id is another one."""


@pytest.fixture
def source(tmp_path: Path) -> Iterator[ZooKeeperCluster]:
    with ZooKeeperCluster(tmp_path / "source", version="2.7.2") as cluster:
        yield cluster
    cluster.cleanup()


class Flow:
    """A topic of the old source, and the commands that copy and compare it."""

    def __init__(self, source: ZooKeeperCluster, target: KafkaCluster, topic: str, directory: Path) -> None:
        self.source, self.target, self.topic, self.directory = source, target, topic, directory
        settings = {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}
        self.file = mp.write_properties(
            directory / "mm2.properties", source.bootstrap_servers, target.bootstrap_servers, topic, settings
        )
        mp.create_topic(source.bootstrap_servers, topic, PARTITIONS)

    def is_created_again(self) -> bool:
        """Create the topic, once its deletion has come to its end."""
        try:
            mp.create_topic(self.source.bootstrap_servers, self.topic, PARTITIONS)
        except TopicAlreadyExistsError:
            return False
        return True

    def produce(self, records: int) -> None:
        mp.produce(self.source.bootstrap_servers, self.topic, PARTITIONS, records)

    def run(self, *command: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        verb, *options = command
        return subprocess.run(
            [mp.COMMAND, verb, str(self.file), *options],
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            env={**os.environ, **(environment or {})},
        )

    def copy(self, environment: Mapping[str, str] | None = None) -> None:
        done = self.run("run", "--once", environment=environment)
        assert done.returncode == 0, done.stdout + done.stderr

    def losses(self) -> list[dict[str, Any]]:
        done = self.run("losses", "-o", "json")
        listed: list[dict[str, Any]] = json.loads(done.stdout)
        return listed

    def records(self, cluster: KafkaCluster) -> list[list[tuple[Any, ...]]]:
        """All of both partitions, as consumers see them."""
        consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers, enable_auto_commit=False)
        try:
            partitions = [TopicPartition(self.topic, index) for index in range(PARTITIONS)]
            consumer.assign(partitions)
            consumer.seek_to_beginning()
            ends = consumer.end_offsets(partitions)
            seen: dict[TopicPartition, list[tuple[Any, ...]]] = {partition: [] for partition in partitions}
            while any(consumer.position(partition) < ends[partition] for partition in partitions):
                for partition, some in consumer.poll(200).items():
                    seen[partition] += [(r.offset, r.key, r.value, r.headers, r.timestamp) for r in some]
            return [seen[partition] for partition in partitions]
        finally:
            consumer.close()


@pytest.fixture
def flow(source: ZooKeeperCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path) -> Flow:
    return Flow(source, target_cluster, topic_name, tmp_path)


def test_a_topic_that_gets_an_id_continues_and_is_told_from_a_new_one(flow: Flow) -> None:
    flow.produce(BEFORE)
    flow.copy()
    flow.source.upgrade("2.8.2")
    flow.produce(AFTER)
    flow.copy()
    assert flow.records(flow.target) == flow.records(flow.source)
    assert sum(map(len, flow.records(flow.target))) == BEFORE + AFTER
    assert flow.losses() == []
    verified = flow.run("verify")
    assert verified.returncode == 0, verified.stdout
    # The id that is known now was claimed, so that a topic of the same name is a new one.
    admin = KafkaAdminClient(bootstrap_servers=flow.source.bootstrap_servers)
    admin.delete_topics([flow.topic])
    admin.close()
    mp.wait_for(flow.is_created_again, 60, "the topic is deleted, and there again")
    flow.produce(BEFORE + 2 * AFTER)
    flow.copy()
    assert {loss["kind"] for loss in flow.losses()} == {"recreated"}
    assert sum(map(len, flow.records(flow.target))) == 2 * BEFORE + 3 * AFTER


def test_a_copy_that_holds_records_twice_is_different(flow: Flow, tmp_path: Path) -> None:
    """As a version left it that took the upgraded topic for a new one and copied all of it again."""
    old = tmp_path / "old"
    old.mkdir()
    (old / "sitecustomize.py").write_text(TAKES_IDS_FOR_OTHERS)
    flow.produce(BEFORE)
    flow.copy()
    flow.source.upgrade("2.8.2")
    flow.produce(AFTER)
    path = os.pathsep.join(filter(None, (str(old), os.environ.get("PYTHONPATH"))))
    flow.copy({"PYTHONPATH": path})
    assert sum(map(len, flow.records(flow.target))) == 2 * BEFORE + AFTER, "the old way did not copy it again"
    verified = flow.run("verify", "-o", "json")
    assert verified.returncode == 1, verified.stdout
    assert f'"duplicate": {BEFORE // PARTITIONS}' in verified.stdout.replace('":', '": ').replace(":  ", ": ")
