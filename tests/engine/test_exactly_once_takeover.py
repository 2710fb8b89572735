"""From a real MirrorMaker 2 with exactly-once support to us, stopped or killed: its transactions end, then we begin."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from lab import KafkaCluster
from pyspark.sql import SparkSession
from tests.support import mirror_process as mp
from tests.support.handover import PARTITIONS, Handover, exactly_once_support, wait_for_all_taken

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]


@pytest.fixture
def handover(source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path) -> Handover:
    return Handover(source_cluster, target_cluster, topic_name, tmp_path, exactly_once_support())


def markers(handover: Handover) -> list[int]:
    """How many offsets of each partition have no record that a reader sees: markers, and what was aborted."""
    ends = handover.ends()
    counts = handover.counts(handover.target, handover.remote)
    return [end - counts[index] for index, end in enumerate(ends)]


def test_stopped_and_given_back(handover: Handover, spark: SparkSession) -> None:
    with mp.load(handover.source.bootstrap_servers, handover.topic, PARTITIONS, per_s=500):
        with handover.mirror_maker:
            handover.wait_for_more(4_000, "MirrorMaker 2")
        assert min(markers(handover)) > 0, "it has written transactions"
        with handover.ours(spark) as mirror:
            wait_for_all_taken(mirror)
            handover.wait_for_more(2_000, "us")
        with handover.mirror_maker:
            handover.wait_for_more(4_000, "MirrorMaker 2 again")
    assert handover.finish(spark).drivers[0].topics.takeover.taken == PARTITIONS
    print(f"markers {markers(handover)}, repeated: {handover.repeated()}")
    assert not any(handover.repeated().values())


def test_killed_with_transactions_open(handover: Handover, spark: SparkSession) -> None:
    with mp.load(handover.source.bootstrap_servers, handover.topic, PARTITIONS, per_s=500):
        handover.mirror_maker.start()
        handover.wait_for_more(6_000, "MirrorMaker 2")
        handover.wait_for_syncs()
        handover.mirror_maker.kill()
        began = time.monotonic()
        with handover.ours(spark) as mirror:
            wait_for_all_taken(mirror)
            print(f"us: all taken over after {time.monotonic() - began:.1f} s")
            handover.wait_for_more(2_000, "us")
    handover.finish(spark)
    print(f"markers and aborted {markers(handover)}, repeated: {handover.repeated()}")
    assert not any(handover.repeated().values())
