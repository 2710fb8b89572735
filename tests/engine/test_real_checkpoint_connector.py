"""MirrorMaker 2's own checkpoint connector translates with our offset syncs: what it says is true.

It knows the places of the syncs that it keeps, and is behind the exact place elsewhere: never ahead of it.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from connect_worker import CHECKPOINT, ConnectWorker, source_connector
from kafka import KafkaProducer
from lab import KafkaCluster
from pyspark.sql import SparkSession
from tests.support import mirror_process as mp
from tests.support.handover import Handover
from tests.support.offset_sync_store import OffsetSyncStore

from sparkmirror.config import load_mm2_properties
from sparkmirror.exact.mm2.record_formats import Checkpoint
from sparkmirror.exact.mm2.stored_syncs import read_syncs
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.groups import Committed, Groups, Offsets
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.mirror.sync.application_translator import ApplicationTranslator, Stored

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

PARTITIONS = 4
GROUPS = 40
INTERVAL_S = 1


@contextlib.contextmanager
def transactions(cluster: KafkaCluster, topic: str) -> Iterator[None]:
    """Written all the time to one partition, each of a few records; one in four is aborted."""
    stop = threading.Event()

    def write() -> None:
        producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, transactional_id=topic)
        producer.init_transactions()
        number = 0
        while not stop.is_set():
            producer.begin_transaction()
            for index in range(5):
                producer.send(topic, value=b"%d-%d" % (number, index), partition=0)
            producer.flush()
            if number % 4:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
            number += 1
        producer.close()

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(30)


class Checked:
    """A flow of two topics, groups at its source, and what the real connector has written of them."""

    def __init__(self, handover: Handover) -> None:
        self.handover = handover
        self.plain, self.transactional = handover.topic, f"{handover.topic}-t"
        mp.create_topic(handover.source.bootstrap_servers, self.transactional, 1)
        self.flow = load_mm2_properties(str(handover.properties)).flows[0]
        self.source = ClusterClient(self.flow.source, "test")
        self.target = ClusterClient(self.flow.target, "test")
        self.chosen = random.Random(5)

    @contextlib.contextmanager
    def load(self) -> Iterator[None]:
        servers = self.handover.source.bootstrap_servers
        with (
            mp.load(servers, self.plain, PARTITIONS, per_s=500),
            transactions(self.handover.source, self.transactional),
        ):
            yield

    def ends(self) -> dict[tuple[str, int], int]:
        servers = self.handover.source.bootstrap_servers
        plain = mp.end_offsets(servers, self.plain, PARTITIONS)
        ends = {(self.plain, index): end for index, end in enumerate(plain)}
        return ends | {(self.transactional, 0): mp.end_offsets(servers, self.transactional, 1)[0]}

    def commit(self, offsets: Mapping[str, Offsets]) -> None:
        outcome = Groups(self.source).commit(offsets)
        assert not any(code for codes in outcome.values() for code in codes.values()), outcome

    def commit_anywhere(self) -> dict[str, Offsets]:
        """All groups, somewhere."""
        ends = self.ends()
        offsets = {
            f"{self.plain}-{number}": {where: Committed(self.chosen.randrange(end + 1)) for where, end in ends.items()}
            for number in range(GROUPS)
        }
        self.commit(offsets)
        return offsets

    def store(self) -> OffsetSyncStore:
        """What the connector knows after it has read our syncs: ours behaves as its own does."""
        store = OffsetSyncStore(keep_history=True)
        for sync in read_syncs(self.source, f"mm2-offset-syncs.{self.flow.target.alias}.internal"):
            store.add(sync)
        store.started()
        return store

    def written(self) -> list[Checkpoint]:
        topic = f"{self.handover.alias}.checkpoints.internal"
        if self.target.metadata([topic])[topic].error:
            return []
        return [Checkpoint.read(one.key, one.value) for one in TopicLog(self.target, topic).read(0, 0)[0]]

    def exact(self, checkpoints: list[Checkpoint]) -> list[int]:
        """Where each of them should be."""
        prefix = f"{self.handover.alias}."
        stored = [Stored(one.topic.removeprefix(prefix), one.partition, one.upstream) for one in checkpoints]
        with ApplicationTranslator.of(self.flow) as translator:
            found = translator.translate_each(stored)
        places = [one.offset for one in found if one.offset is not None]
        assert len(places) == len(found), [one.reason for one in found if one.offset is None]
        return places

    def committed(self, group: str) -> Offsets:
        """At the target."""
        return Groups(self.target).committed([group]).offsets[group]

    def connector(self) -> dict[str, str]:
        config = source_connector(
            self.handover.source, self.handover.target, self.handover.alias, f"{self.plain}, {self.transactional}"
        )
        return config | {
            "connector.class": CHECKPOINT,
            "groups": f"{self.plain}-.*",
            "emit.checkpoints.interval.seconds": str(INTERVAL_S),
            "refresh.groups.interval.seconds": "1",
            "checkpoints.topic.replication.factor": "1",
            "sync.group.offsets.enabled": "true",
            "sync.group.offsets.interval.seconds": "1",
        }

    def close(self) -> None:
        self.source.close()
        self.target.close()


@pytest.fixture
def checked(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> Iterator[Checked]:
    alias = f"S{topic_name[-12:]}"
    settings = {
        "topics": f"{topic_name}.*",
        f"{alias}.consumer.isolation.level": "read_committed",
        "emit.checkpoints.enabled": "false",
        "offset.lag.max": "10",
    }
    one = Checked(Handover(source_cluster, target_cluster, topic_name, tmp_path, settings))
    yield one
    one.close()


def test_its_checkpoints_are_true(checked: Checked, spark: SparkSession) -> None:
    """At rest it says what a store of syncs says, exactly where one is kept. A group's -1 is nobody's offset to it."""
    handover = checked.handover
    with checked.load(), handover.ours(spark):
        handover.wait_for_more(8_000, "us")
    handover.finish(spark)
    store = checked.store()
    wanted = checked.commit_anywhere()
    syncs = {where: list(dict.fromkeys(store.slots(*where))) for where in checked.ends()}
    for number in range(max(map(len, syncs.values()))):
        at = {where: Committed(some[number].upstream) for where, some in syncs.items() if number < len(some)}
        wanted[f"{checked.plain}-at-{number}"] = at
    checked.commit(wanted)
    due = {
        (group, f"{handover.alias}.{topic}", partition): downstream
        for group, offsets in wanted.items()
        for (topic, partition), at in offsets.items()
        if (downstream := store.translate(topic, partition, at.offset)) is not None and downstream >= 0
    }
    assert len(due) > GROUPS
    never, remote, zero = next(one for one in due if one[1:] == (handover.remote, 0))
    assert Groups(checked.target).commit({never: {(remote, zero): Committed(-1)}}) == {never: {(remote, zero): 0}}
    with ConnectWorker(handover.target, f"connect-{handover.alias}", handover.directory / "connect") as worker:
        worker.put("mm2-cpc", checked.connector())
        mp.wait_for(lambda: len(checked.written()) >= len(due), 180, "all checkpoints")
        still = checked.written()
        assert {(one.group, one.topic, one.partition): one.downstream for one in still} == due
        exact = checked.exact(still)
        at_sync = {(topic, partition, one.upstream) for (topic, partition), some in syncs.items() for one in some}
        for one, place in zip(still, exact, strict=True):
            assert one.downstream <= place, one
            if (one.topic.removeprefix(f"{handover.alias}."), one.partition, one.upstream) in at_sync:
                assert one.downstream == place, one
        equal = sum(one.downstream == place for one, place in zip(still, exact, strict=True))
        mp.wait_for(
            lambda: checked.committed(never).get((remote, zero), (-1,))[0] == due[never, remote, zero],
            60,
            "its offset is set",
        )
        print(f"at rest: {len(still)} checkpoints, {equal} exact, of {len(at_sync)} places of syncs")
        with checked.load(), handover.ours(spark):
            handover.wait_for_more(1_000, "us")
            for _ in range(10):
                checked.commit_anywhere()
                time.sleep(2 * INTERVAL_S)
        handover.finish(spark)
    moved = checked.written()[len(still) :]
    behind = [place - one.downstream for one, place in zip(moved, checked.exact(moved), strict=True)]
    mean = sum(behind) / len(behind)
    print(f"under load: {len(moved)} checkpoints, behind by {mean:.0f} records, at most {max(behind)}")
    assert len(moved) > GROUPS
    assert min(behind) >= 0
