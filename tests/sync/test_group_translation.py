"""Groups of the source at the target: checkpoints and committed offsets against what was really copied."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from group_flow import Cluster, GroupFlow, from_offset, wait_for
from kafka import KafkaProducer

from sparkmirror.demo import KafkaCluster
from sparkmirror.sync.group_standing import GroupState

pytestmark = pytest.mark.broker

MakeFlow = Callable[..., GroupFlow]


@pytest.fixture
def near(source_cluster: KafkaCluster) -> Cluster:
    return Cluster("near", source_cluster)


@pytest.fixture
def far(target_cluster: KafkaCluster) -> Cluster:
    return Cluster("far", target_cluster)


@pytest.fixture
def make_flow(tmp_path: Path) -> Iterator[MakeFlow]:
    made: list[GroupFlow] = []

    def make(source: Cluster, target: Cluster, topics: str, **settings: str) -> GroupFlow:
        made.append(GroupFlow(source, target, topics, tmp_path, **settings))
        return made[-1]

    yield make
    for flow in made:
        flow.close()


def transactions(cluster: Cluster, topic: str, count: int) -> None:
    """Of three records each; one in four is aborted, the last one too."""
    producer = KafkaProducer(bootstrap_servers=cluster.servers, transactional_id=f"{topic}-writer")
    producer.init_transactions()
    for number in range(count):
        producer.begin_transaction()
        for index in range(3):
            producer.send(topic, value=b"%d-%d" % (number, index), partition=0)
        producer.flush()
        if number % 4 == 3:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producer.close()


def compact(cluster: Cluster, topic: str) -> None:
    """Many records of few keys, until the cleaner has been there."""
    producer = KafkaProducer(bootstrap_servers=cluster.servers, linger_ms=2, batch_size=2000)
    for number in range(1000):
        key = b"key-%d" % (number * 7919 % 90) if number % 10 else b"only-%d" % number
        producer.send(topic, key=key, value=b"%d" % number, partition=0)
    producer.flush()
    time.sleep(1.0)  # past segment.ms: what was written so far may be cleaned
    for number in range(10):
        producer.send(topic, key=b"last-%d" % number, value=b"last", partition=0)
    producer.close()
    wait_for(lambda: len(cluster.read(topic)) < 500, f"{topic} compacted", 60)


COMPACT = {"cleanup.policy": "compact", "segment.ms": "500", "min.cleanable.dirty.ratio": "0.001"}


def test_groups_go_on_at_the_target_with_no_record_twice_and_none_skipped(
    near: Cluster, far: Cluster, topic_name: str, make_flow: MakeFlow
) -> None:
    """Also far behind, at the log's end behind an aborted transaction, and between offsets that have no record."""
    plain, transactional, compacted = (f"{topic_name}.{kind}" for kind in ("plain", "transactional", "compacted"))
    near.create(plain)
    near.create(transactional)
    near.create(compacted, configs=COMPACT)
    near.produce(plain, 500)
    transactions(near, transactional, 40)
    compact(near, compacted)
    flow = make_flow(near, far, f"{topic_name}.*", **{"near.consumer.isolation.level": "read_committed"})
    flow.copy()
    chosen = random.Random(7)
    places: dict[str, dict[str, int]] = {}
    for topic in (plain, transactional, compacted):
        end = near.end(topic)
        for number, offset in enumerate([0, 1, end - 1, end, *chosen.sample(range(end), 16)]):
            places.setdefault(f"{topic_name}-{number}", {})[topic] = offset
    for group, offsets in places.items():
        near.commit(group, {(topic, 0): offset for topic, offset in offsets.items()})
    checkpoints = flow.checkpoints(topic_name)
    checkpoints.run()
    sync = flow.group_offsets(checkpoints)
    sync.run()
    assert {one.state for one in sync.standings.values()} == {GroupState.SYNCED}
    there = {topic: near.read(topic, committed=True) for topic in (plain, transactional, compacted)}
    here = {topic: far.read(f"near.{topic}") for topic in there}
    for group, offsets in places.items():
        found = far.committed(group)
        for topic, offset in offsets.items():
            at = found[f"near.{topic}", 0].offset
            assert from_offset(here[topic], at) == from_offset(there[topic], offset), (group, topic, offset, at)
            assert at <= far.end(f"near.{topic}")
    wrote = len(flow.written(topic_name))
    assert wrote == 3 * len(places)
    checkpoints.run()
    sync.run()
    assert len(flow.written(topic_name)) == wrote, "only what has changed is written"
    assert sync.written == 0
