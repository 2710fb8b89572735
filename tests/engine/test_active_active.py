"""Two clusters that mirror each other in one process: no loops, heartbeats both ways, failover and failback exact."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from lab import KafkaCluster
from tests.support import mirror_process as mp
from tests.support.loss_tools import delete_records

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

PARTITIONS = 2
WAIT_S = 120.0
Where = tuple[str, int, int]
"""Topic or site, partition, offset."""
Stands = dict[tuple[str, int], int]


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


def committed(cluster: KafkaCluster, group: str) -> Stands:
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


class Site:
    """One of the two clusters. `deleted` records of each partition were gone before the mirrors began."""

    def __init__(self, name: str, cluster: KafkaCluster, topic: str, deleted: int) -> None:
        self.name, self.cluster, self.deleted = name, cluster, deleted
        self.topic = topic

    def ends(self, topic: str) -> list[int]:
        return mp.end_offsets(self.cluster.bootstrap_servers, topic, PARTITIONS)


class Pair:
    """Where each site's records are: logs are dense, so the truth about a copy is how many were deleted."""

    def __init__(self, east: Site, west: Site, topic: str) -> None:
        self.east, self.west, self.topic = east, west, topic

    def other(self, site: Site) -> Site:
        return self.west if site is self.east else self.east

    def topics_at(self, site: Site) -> list[str]:
        return [self.topic, f"{self.other(site).name}.{self.topic}"]

    def origin(self, site: Site, where: Where) -> Where:
        """Site, partition and offset of the record that is found in a topic of a site."""
        topic, partition, offset = where
        written_at = site if topic == self.topic else self.other(site)
        return written_at.name, partition, offset if written_at is site else offset + written_at.deleted

    def counterpart(self, site: Site, stands: Stands) -> Stands:
        """Where a group that stands so at one site must stand at the other."""
        found = {}
        for (topic, partition), offset in stands.items():
            name, _, original = self.origin(site, (topic, partition, offset))
            if name == site.name:
                found[f"{site.name}.{self.topic}", partition] = original - site.deleted
            else:
                found[self.topic, partition] = original
        return found

    def in_step(self) -> bool:
        """Whether everything is copied."""
        return all(
            [end - site.deleted for end in site.ends(self.topic)] == self.other(site).ends(f"{site.name}.{self.topic}")
            for site in (self.east, self.west)
        )

    def everything(self) -> Counter[Where]:
        return Counter(
            (site.name, partition, offset)
            for site in (self.east, self.west)
            for partition, end in enumerate(site.ends(self.topic))
            for offset in range(site.deleted, end)
        )

    def consume(self, site: Site, group: str, seen: Counter[Where], at_least: int | None) -> None:
        """As an application does: read, commit, stop; without a number all there is now."""
        with consumer(site.cluster, group) as client:
            client.subscribe(self.topics_at(site))
            ends: dict[TopicPartition, int] = {}
            read = 0
            while True:
                for found in client.poll(timeout_ms=500, max_records=333).values():
                    for one in found:
                        seen[self.origin(site, (one.topic, one.partition, one.offset))] += 1
                        read += 1
                if not ends and client.assignment():
                    ends = client.end_offsets(list(client.assignment()))
                at_end = bool(ends) and all(client.position(where) >= end for where, end in ends.items())
                if at_end if at_least is None else read >= at_least:
                    client.commit()
                    return


def test_failover_and_failback(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    east, west = Site("east", source_cluster, topic_name, 0), Site("west", target_cluster, topic_name, 137)
    pair = Pair(east, west, topic_name)
    group = f"{topic_name}-shop"
    for site in (east, west):
        mp.create_topic(site.cluster.bootstrap_servers, topic_name, PARTITIONS)
        mp.produce(site.cluster.bootstrap_servers, topic_name, PARTITIONS, 1000)
    for partition in range(PARTITIONS):
        delete_records(west.cluster, topic_name, partition, before=west.deleted)
    file = write_file(
        tmp_path / "mm2.properties", east.cluster.bootstrap_servers, west.cluster.bootstrap_servers, topic_name
    )
    seen: Counter[Where] = Counter()

    def takes_over(at: Site) -> None:
        """The group's offsets at a site become what it has committed at the other one, exactly."""
        stands = committed(pair.other(at).cluster, group)
        expected = pair.counterpart(pair.other(at), stands)
        assert len(expected) == 2 * PARTITIONS
        mp.wait_for(lambda: committed(at.cluster, group) == expected, WAIT_S, f"{group} at {at.name}: {expected}")

    with mp.MirrorProcess(file, tmp_path / "mirror.log") as mirror:
        mp.wait_for(pair.in_step, WAIT_S, "the first copies")
        loads = (mp.load(site.cluster.bootstrap_servers, topic_name, PARTITIONS, per_s=500) for site in (east, west))
        with contextlib.ExitStack() as stack:
            for load in loads:
                stack.enter_context(load)
            pair.consume(east, group, seen, 1700)
            takes_over(west)
            pair.consume(west, group, seen, 3000)
            takes_over(east)
        mp.wait_for(pair.in_step, WAIT_S, "the last copies")
        pair.consume(east, group, seen, None)
        takes_over(west)
        assert mirror.terminate() == 0
    assert seen == pair.everything(), "a record was read twice, or never"
    for site in (east, west):
        there = topics_of(site.cluster)
        assert {name for name in there if topic_name in name} == set(pair.topics_at(site)), "a loop"
        assert {"heartbeats", f"{pair.other(site).name}.heartbeats"} <= there
