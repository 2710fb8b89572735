"""From a real MirrorMaker 2 to us under load, stopped or killed, and back to it: every record once."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from kafka import KafkaProducer
from lab import KafkaCluster
from pyspark.sql import SparkSession
from tests.support import mirror_process as mp
from tests.support.handover import PARTITIONS, Handover

from sparkmirror.config import load_mm2_properties
from sparkmirror.errors import CopyIncomplete
from sparkmirror.exact.mm2.connect_offsets import SourcePartition, offset_value
from sparkmirror.mirror.engine.mirror import Mirror

pytestmark = [pytest.mark.broker, pytest.mark.spark]


@pytest.fixture
def handover(source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path) -> Handover:
    return Handover(source_cluster, target_cluster, topic_name, tmp_path)


@pytest.mark.full
def test_stopped_cleanly_and_handed_back_and_taken_over_again(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path, spark: SparkSession
) -> None:
    """A group that stands in what MirrorMaker 2 copied in between is put nowhere behind it at the target."""
    settings = {
        "sync.group.offsets.enabled": "true",
        "groups": f"{topic_name}-group",
        "emit.checkpoints.interval.seconds": "1",
        "sync.group.offsets.interval.seconds": "1",
        "refresh.groups.interval.seconds": "1",
    }
    handover = Handover(source_cluster, target_cluster, topic_name, tmp_path, settings)
    with mp.load(handover.source.bootstrap_servers, handover.topic, PARTITIONS):
        with handover.mirror_maker:
            handover.wait_for_more(10_000, "MirrorMaker 2")
        began = time.monotonic()
        with handover.ours(spark) as mirror:
            handover.wait_for_more(3_000, "us")
            print(f"us: 10,000 records after {time.monotonic() - began:.1f} s")
            assert mirror.drivers[0].topics.takeover.taken == PARTITIONS
        first = handover.ends()
        with handover.mirror_maker:
            handover.wait_for_more(10_000, "MirrorMaker 2 again")
        # Logs without gaps, of which nothing is repeated: a record's offset is the same on both sides.
        stands = [(begin + end) // 2 for begin, end in zip(first, handover.ends(), strict=True)]
        handover.commit(source_cluster, settings["groups"], handover.topic, stands)
        with handover.ours(spark) as mirror:
            handover.wait_for_more(10_000, "us again")
            assert mirror.drivers[0].topics.takeover.taken == PARTITIONS
            mp.wait_for(
                lambda: all(handover.committed(target_cluster, settings["groups"], handover.remote)), 180, "the group"
            )
    with handover.ours(spark):
        handover.wait_for_all()
    print(f"{handover.copied()} records, repeated: {handover.repeated()}")
    assert not any(handover.repeated().values())
    found = handover.committed(target_cluster, settings["groups"], handover.remote)
    print(f"the group stands at {stands}, at the target at {found}")
    assert all(begin <= one <= stand for begin, one, stand in zip(first, found, stands, strict=True))


@pytest.mark.full
def test_killed(handover: Handover, spark: SparkSession) -> None:
    """Its stored offsets are old then, and behind them thousands of records are at the target."""
    with mp.load(handover.source.bootstrap_servers, handover.topic, PARTITIONS):
        handover.mirror_maker.start()
        handover.wait_for_more(20_000, "MirrorMaker 2")
        handover.wait_for_syncs()
        handover.mirror_maker.kill()
        ends = handover.ends()
        stored = handover.stored()
        behind = [ends[index] - 1 - stored.get(index, -1) for index in range(PARTITIONS)]
        print(f"killed: stored offsets behind the target's ends by {behind}")
        began = time.monotonic()
        with handover.ours(spark) as mirror:
            handover.wait_for_more(3_000, "us")
            print(f"us: 10,000 records after {time.monotonic() - began:.1f} s")
            assert mirror.drivers[0].topics.takeover.taken == PARTITIONS
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
                mp.wait_for(lambda: len(handover.stored()) == PARTITIONS, 180, "our offsets in Connect's topic")
                handover.wait_for_more(3_000, "us")
                mirror.kill_all()
            stored = handover.stored()
            ends = handover.ends()
            bound = {index: end - 1 - stored[index] for index, end in enumerate(ends)}
            handover.wait_until_forgotten()
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
    refusal = f"{handover.topic}-0 is not copied: .*start MirrorMaker 2 once more"
    with pytest.raises(CopyIncomplete, match=refusal) as found:
        run()
    assert len(str(found.value).splitlines()) == 1
    assert handover.ends() == [3, 10, 10, 10]
