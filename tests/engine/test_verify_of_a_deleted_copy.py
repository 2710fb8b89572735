"""`verify` where the target topic is gone: what was copied is missing, what never was is not."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewPartitions
from lab import KafkaCluster
from pyspark.sql import SparkSession
from test_verify import IDENTITY, config_of, plain, pytestmark, write
from tests.support import mirror_process as mp
from tests.support.loss_tools import delete_topic

from conftest import StartMirror
from sparkmirror.frames import Options, PartitionResult, run_verification, verify

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
    assert before.because == "no such topic or partition at the target"
    with start_mirror(topic_name, {}):
        mp.wait_for(lambda: mp.end_offsets(target_cluster.bootstrap_servers, copied, 1) == [COUNT], 90, "copied")
    delete_topic(target_cluster, copied)
    (row,) = verify(spark, config).collect()
    assert (row.kind, row.upstream) == ("unlisted", None)
    assert row.what.startswith(f"{COUNT} more difference(s); the target topic was deleted since it was copied")
    gone = verified(Options())
    assert (gone.differs, gone.not_copied_yet, gone.differences) == (True, 0, {"missing": COUNT})
    assert "the target topic was deleted since it was copied" in gone.notes[0]
    assert verified(Options(from_offset=100, to_offset=250)).differences == {"missing": 150}
    mp.create_topic(target_cluster.bootstrap_servers, copied, 1)  # by hand, and empty
    assert verified(Options()).differences == {"missing": COUNT}


def test_a_partition_that_was_added_is_not_copied_yet(
    spark: SparkSession,
    start_mirror: StartMirror,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
) -> None:
    """The topic is there, and the mirror is away."""
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    write(source_cluster, topic_name, plain(range(COUNT)))
    with start_mirror(topic_name, {}):
        ends = partial(mp.end_offsets, target_cluster.bootstrap_servers, f"A.{topic_name}", 1)
        mp.wait_for(lambda: ends() == [COUNT], 90, "copied")
    admin = KafkaAdminClient(bootstrap_servers=source_cluster.bootstrap_servers)
    admin.create_partitions({topic_name: NewPartitions(2)})
    admin.close()
    producer = KafkaProducer(bootstrap_servers=source_cluster.bootstrap_servers)
    mp.wait_for(lambda: len(producer.partitions_for(topic_name)) == 2, 30, "the partition is known")
    producer.send(topic_name, b"one", partition=1).get(30)
    producer.close()
    config = config_of(tmp_path, source_cluster, target_cluster, topic_name)
    found = run_verification(spark, config, Options())
    assert [(one.differs, one.not_copied_yet, one.records) for one in found.partitions] == [
        (False, 0, COUNT),
        (False, 1, 0),
    ]
    assert (found.verdict, found.behind) == ("equal so far", {"no such topic or partition at the target": 1})


def test_what_is_too_much_to_be_judged_is_said(
    spark: SparkSession,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where a journal holds the half of it."""
    monkeypatch.setattr(import_module("sparkmirror.frames.verify"), "MOST_JUDGED", 3)
    for cluster in (source_cluster, target_cluster):
        mp.create_topic(cluster.bootstrap_servers, topic_name, 1)
    write(source_cluster, topic_name, plain(range(21)))
    write(target_cluster, topic_name, plain([*range(10), 20]))
    config = config_of(tmp_path, source_cluster, target_cluster, topic_name, IDENTITY)
    options = Options(resume=tmp_path / "journal")
    for _ in range(2):
        rows = verify(spark, config, options).collect()
        assert [(row.kind, row.upstream) for row in rows[:3]] == [("missing", offset) for offset in (10, 11, 12)]
        assert rows[3].kind == "unlisted"
        assert rows[3].what.startswith("7 record(s) could not be judged")
