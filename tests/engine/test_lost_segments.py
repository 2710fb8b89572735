"""The segments topic is deleted: nothing is copied twice, and where nothing else tells how far it was, nothing at all.

What else tells are the offsets that are kept for a MirrorMaker 2, and its offset syncs (docs/takeover.md).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from lab import KafkaCluster
from pyspark.sql import SparkSession
from tests.support import loss_tools as lt
from tests.support import mirror_process as mp
from tests.support.loaded_flow import PARTITIONS, LoadedFlow, assert_copied, running
from tests.support.mirror_thread import reasons, run_mirror

from sparkmirror.config import ClusterConfig
from sparkmirror.errors import CopyIncomplete
from sparkmirror.exact.durable.claims import segments_topic
from sparkmirror.exact.mm2.connect_offsets import offsets_topics
from sparkmirror.exact.mm2.stored_offsets import read_stored_offsets
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.pump.trust import MAX_CONFIRMATION_AGE_S

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

SEGMENTS = segments_topic("A")
OFFSETS = offsets_topics("A")[0]
EMPTY = PARTITIONS - 1
"""The partition that has no records at first."""
EACH = 50
NO_SYNCS = {"emit.offset-syncs.enabled": "false"}


@pytest.fixture(scope="module")
def own_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """Other tests' flows from A have the same segments topic on the session's."""
    cluster = KafkaCluster(tmp_path_factory.mktemp("lost", numbered=False))
    with running(cluster):
        yield cluster


@pytest.fixture
def flow(source_cluster: KafkaCluster, own_target: KafkaCluster, topic_name: str, tmp_path: Path) -> LoadedFlow:
    return LoadedFlow(source_cluster, own_target, topic_name, tmp_path)


def produce(flow: LoadedFlow, partitions: int = PARTITIONS) -> None:
    mp.produce(flow.source.bootstrap_servers, flow.topic, partitions, partitions * EACH)


def ends(cluster: KafkaCluster, topic: str) -> list[int]:
    return mp.end_offsets(cluster.bootstrap_servers, topic, PARTITIONS)


def logs(cluster: KafkaCluster, topic: str, partitions: Sequence[int]) -> list[dict[int, lt.Record]]:
    return [lt.records(cluster, topic, partition) for partition in partitions]


def assert_all_copied(flow: LoadedFlow, records: int | None = None) -> None:
    assert_copied(flow.source, flow.target, {flow.topic: f"A.{flow.topic}"}, records)


def test_between_two_runs(flow: LoadedFlow, spark: SparkSession) -> None:
    """The stored offsets say where the first run ended; the partition without records begins as ever."""
    produce(flow, EMPTY)
    lt.copy_once(flow.properties, spark)
    lt.delete_topic(flow.target, SEGMENTS)
    produce(flow)
    mirror = lt.copy_once(flow.properties, spark)
    assert mirror.drivers[0].topics.takeover.taken == EMPTY
    assert_all_copied(flow, (EMPTY + PARTITIONS) * EACH)
    produce(flow)
    lt.copy_once(flow.properties, spark)
    assert_all_copied(flow, (EMPTY + 2 * PARTITIONS) * EACH)


def test_after_a_kill(flow: LoadedFlow) -> None:
    """More was copied than the stored offsets say: the target's own records tell how much."""
    properties = flow.write_properties(
        "flushed.properties", flow.target.bootstrap_servers, {"B.offset.flush.interval.ms": "1000"}
    )
    client = ClusterClient(ClusterConfig(alias="B", bootstrap_servers=(flow.target.bootstrap_servers,)), "test")

    def stored() -> int:
        with contextlib.suppress(ConnectionError):  # a topic that was just made
            return sum(topic == flow.topic for topic, _ in read_stored_offsets(client, [OFFSETS], "A").by_partition)
        return 0

    try:
        with flow.load(), flow.start(properties=properties) as mirror:
            mp.wait_for(lambda: stored() == PARTITIONS, 180, "an offset of each partition is stored")
            flow.wait_for_progress()
            mirror.kill_all()
    finally:
        client.close()
    lt.delete_topic(flow.target, SEGMENTS)
    flow.finish(properties)


def test_what_nothing_tells_of_stays_where_it_is(flow: LoadedFlow, spark: SparkSession) -> None:
    """Neither stored offsets nor offset syncs: until the target topic is deleted, too, nothing is added to it.

    And nobody is told to delete another's records: they are the flow's own.
    """
    properties = flow.write_properties("silent.properties", flow.target.bootstrap_servers, NO_SYNCS)
    remote = f"A.{flow.topic}"
    produce(flow, EMPTY)
    lt.copy_once(properties, spark)
    before = logs(flow.target, remote, range(EMPTY))
    assert before == logs(flow.source, flow.topic, range(EMPTY))
    lt.delete_topic(flow.target, SEGMENTS)
    lt.delete_topic(flow.target, OFFSETS)
    produce(flow)
    for _ in range(2):
        with pytest.raises(CopyIncomplete) as stopped:
            lt.copy_once(properties, spark)
        lines = str(stopped.value).splitlines()
        assert len(lines) == EMPTY
        for partition in range(EMPTY):
            said = (
                f"notes say that it wrote there up to offset {EACH - 1}; but the segments topic has none of its claims"
            )
            assert any(f"{flow.topic}-{partition} is not copied: " in line and said in line for line in lines), lines
        assert logs(flow.target, remote, range(EMPTY)) == before
        assert logs(flow.target, remote, [EMPTY]) == logs(flow.source, flow.topic, [EMPTY])
    lt.delete_topic(flow.target, remote)
    lt.copy_once(properties, spark)
    assert_all_copied(flow, (EMPTY + PARTITIONS) * EACH)


def test_while_a_mirror_runs(flow: LoadedFlow, spark: SparkSession) -> None:
    """A position that is older than three seconds is read again, with its claims: nothing is sent without them."""
    remote = f"A.{flow.topic}"
    produce(flow, EMPTY)
    with run_mirror(flow.properties, spark) as mirror:
        mp.wait_for(lambda: ends(flow.target, remote) == ends(flow.source, flow.topic), 120, "all copied")
        time.sleep(MAX_CONFIRMATION_AGE_S + 2)
        before = logs(flow.target, remote, range(PARTITIONS))
        lt.delete_topic(flow.target, SEGMENTS)
        produce(flow)

        def held_up() -> int:
            return sum(f"topic {SEGMENTS}: it isn't there" in reason for reason in reasons(mirror))

        mp.wait_for(lambda: held_up() >= PARTITIONS, 90, "each partition says why it waits")
        time.sleep(MAX_CONFIRMATION_AGE_S)
        assert held_up()
        assert logs(flow.target, remote, range(PARTITIONS)) == before
    lt.copy_once(flow.properties, spark)
    assert_all_copied(flow, (EMPTY + PARTITIONS) * EACH)
