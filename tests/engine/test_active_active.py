"""Two clusters that mirror each other in one process: no loops, heartbeats both ways, failover and failback exact."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition

from sparkmirror.demo import KafkaCluster

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

PARTITIONS = 2
WAIT_S = 120.0
Seen = Counter[tuple[str, int, bytes]]


def write_file(path: Path, east: str, west: str, topic: str) -> Path:
    lines = {
        "clusters": "east, west",
        "east.bootstrap.servers": east,
        "west.bootstrap.servers": west,
        "east->west.enabled": "true",
        "west->east.enabled": "true",
        "topics": f"(east\\.|west\\.)*{topic}",
        "groups": f"{topic}-.*",
        "tasks.max": "2",
        "replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "heartbeats.topic.replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "refresh.topics.interval.seconds": "2",
        "refresh.groups.interval.seconds": "1",
        "emit.checkpoints.interval.seconds": "1",
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": "1",
        "sync.topic.acls.enabled": "false",
    }
    path.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
    return path


@contextlib.contextmanager
def consumer(cluster: KafkaCluster, group: str) -> Iterator[KafkaConsumer]:
    client = KafkaConsumer(
        bootstrap_servers=cluster.bootstrap_servers,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    try:
        yield client
    finally:
        client.close()


def consume(cluster: KafkaCluster, group: str, topics: Sequence[str], seen: Seen, at_least: int | None) -> None:
    """As an application does: read, commit, stop; without a number all there is. Records by where they were written."""
    with consumer(cluster, group) as client:
        client.subscribe(list(topics))
        ends: dict[TopicPartition, int] = {}
        read = 0
        while True:
            for found in client.poll(timeout_ms=500, max_records=333).values():
                for record in found:
                    seen[record.topic.rpartition(".")[2], record.partition, record.value or b""] += 1
                    read += 1
            client.commit()
            if not ends and client.assignment():
                ends = client.end_offsets(list(client.assignment()))
            done = ends and all(client.position(where) >= end for where, end in ends.items())
            if done if at_least is None else read >= at_least:
                return


def committed(cluster: KafkaCluster, group: str) -> dict[tuple[str, int], int]:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    try:
        found = admin.list_group_offsets({group: None})[group]
        return {(where.topic, where.partition): one.offset for where, one in found.items()}
    finally:
        admin.close()


def topics_of(cluster: KafkaCluster) -> set[str]:
    client = KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers)
    try:
        return set(client.topics())
    finally:
        client.close()
