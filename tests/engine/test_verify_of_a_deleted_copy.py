"""`verify` where the target topic is gone: what was copied is missing, what never was is not."""

from __future__ import annotations

from pathlib import Path

import mirror_process as mp
from loss_tools import delete_topic
from pyspark.sql import SparkSession
from test_verify import config_of, plain, pytestmark, write

from conftest import StartMirror
from sparkmirror.demo import KafkaCluster
from sparkmirror.frames import Options, PartitionResult, run_verification

__all__ = ["pytestmark"]

COUNT = 300


def test_a_deleted_copy_is_missing_and_one_that_never_was_is_not(
    spark: SparkSession,
    start_mirror: StartMirror,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
) -> None:
    copied = f"A.{topic_name}"
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    write(source_cluster, topic_name, plain(range(COUNT)))
    config = config_of(tmp_path, source_cluster, target_cluster, topic_name)

    def verified(options: Options) -> PartitionResult:
        (partition,) = run_verification(spark, config, options).partitions
        return partition

    before = verified(Options())
    assert (before.differs, before.not_copied_yet, before.differences) == (False, COUNT, {})
    with start_mirror(topic_name, {}):
        mp.wait_for(lambda: mp.end_offsets(target_cluster.bootstrap_servers, copied, 1) == [COUNT], 90, "copied")
    delete_topic(target_cluster, copied)
    gone = verified(Options())
    assert (gone.differs, gone.not_copied_yet, gone.differences) == (True, 0, {"missing": COUNT})
    assert "the target topic was deleted since it was copied" in gone.notes[0]
    assert verified(Options(from_offset=100, to_offset=250)).differences == {"missing": 150}
    mp.create_topic(target_cluster.bootstrap_servers, copied, 1)  # by hand, and empty
    assert verified(Options()).differences == {"missing": COUNT}
