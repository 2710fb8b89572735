"""`verify` of logs that retention and cleaners have worked on since they were planned."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest
from lab import KafkaCluster
from pyspark.sql import SparkSession
from test_verify import config_of, first_offset, found_in, plain, write
from tests.support import mirror_process as mp
from tests.support.loss_tools import delete_records

from conftest import StartMirror
from sparkmirror.frames import Options, ranges, run_verification

pytestmark = [pytest.mark.broker, pytest.mark.spark]

COUNT = 5_000


def keep_ranges(journal: Path, count: int) -> None:
    """Of what a journal says is done leave only the first ranges, as if it had been interrupted then.

    Spark's tasks end in any order.
    """
    lines = journal.read_text().splitlines()
    done = [line for line in lines if line.startswith('{"done"')]
    assert len(done) > count
    gone = sorted(done, key=lambda line: int(json.loads(line)["done"]["range"]))[count:]
    journal.write_text("".join(f"{line}\n" for line in lines if line not in gone))


@pytest.mark.full
def test_what_expires_before_a_verification_is_resumed_is_no_difference(
    spark: SparkSession,
    start_mirror: StartMirror,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """First the source's, later the target's too; a foreign record behind them is found all the same."""
    copied = f"A.{topic_name}"
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 1, COUNT, codec=None)
    with start_mirror(topic_name, {}):
        mp.wait_for(lambda: mp.end_offsets(target_cluster.bootstrap_servers, copied, 1) == [COUNT], 90, "copied")
    write(target_cluster, copied, [(b"k", b"foreign", 5)])
    config = config_of(tmp_path, source_cluster, target_cluster, topic_name)
    monkeypatch.setattr(ranges, "RANGE_BYTES", 30_000)
    journal, second = tmp_path / "journal", tmp_path / "second"
    foreign = {(topic_name, 0, "extra", None, COUNT)}
    whole = run_verification(spark, config, Options(resume=journal))
    assert found_in(whole) == foreign
    keep_ranges(journal, 2)
    shutil.copy(journal, second)

    delete_records(source_cluster, topic_name, 0, before=3_333)
    found = run_verification(spark, config, Options(resume=journal))
    assert found_in(found) == foreign
    (partition,) = found.partitions
    assert partition.records + partition.expired == COUNT
    assert COUNT - 3_333 <= partition.records < COUNT

    delete_records(target_cluster, copied, 0, before=4_111)
    found = run_verification(spark, config, Options(resume=second))
    assert found_in(found) == foreign
    whole_batches = found.partitions[0].expired - (4_111 - 3_333)  # those that a log starts in the midst of still come
    assert 0 <= whole_batches < 1_000


@pytest.mark.full
def test_what_a_cleaner_takes_because_of_later_records_is_no_difference(
    spark: SparkSession,
    start_mirror: StartMirror,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
) -> None:
    """Each key is written again when the plan is made, and all that the plan knows of it is cleaned away."""
    copied = f"A.{topic_name}"
    lazy = {"cleanup.policy": "compact", "min.compaction.lag.ms": str(86_400_000)}
    eager = {"segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01", "min.compaction.lag.ms": "0"}
    for cluster, topic in ((source_cluster, topic_name), (target_cluster, copied)):
        mp.create_topic(cluster.bootstrap_servers, topic, 1, lazy)
    write(source_cluster, topic_name, plain(range(1_000)), codec="lz4")
    with start_mirror(topic_name, {"sync.topic.configs.enabled": "false"}):
        mp.wait_for(lambda: mp.end_offsets(target_cluster.bootstrap_servers, copied, 1) == [1_000], 90, "copied")
    write(target_cluster, copied, [(b"key-none-has", b"foreign", int(time.time() * 1000))])
    config = config_of(tmp_path, source_cluster, target_cluster, topic_name)
    journal = tmp_path / "journal"
    foreign = {(topic_name, 0, "extra", None, 1_000)}
    assert found_in(run_verification(spark, config, Options(resume=journal))) == foreign
    keep_ranges(journal, 0)

    mp.alter_topic(source_cluster.bootstrap_servers, topic_name, {**lazy, **eager})

    def cleaned() -> bool:
        now = int(time.time() * 1000)  # a later timestamp rolls the segment
        write(source_cluster, topic_name, [(b"key-%d" % key, b"again", now) for key in range(10)])
        return first_offset(source_cluster, topic_name) >= 1_000

    mp.wait_for(cleaned, 120, "the source compacted")
    found = run_verification(spark, config, Options(resume=journal))
    assert found_in(found) == foreign
    assert found.partitions[0].compacted == 1_000
