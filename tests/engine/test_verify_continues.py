"""`verify` where a part of it can't be read: the rest is compared, and what was compared is kept."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

import pytest
from lab import KafkaCluster
from pyspark.sql import SparkSession
from test_verify import config_of, found_in, write
from test_verify_of_moving_logs import keep_ranges
from tests.support import mirror_process as mp
from tests.support.loss_tools import delete_topic

from conftest import StartMirror
from sparkmirror.errors import ClusterUnreachable, SetupError
from sparkmirror.frames import Options, ranges, run_verification
from sparkmirror.frames.verify_task import Answer, CompareOrder, compare_range, run_tasks

pytestmark = [pytest.mark.broker, pytest.mark.spark]

COUNT = 2_000


def test_a_topic_that_is_deleted_meanwhile_is_not_judged_and_the_others_are(
    spark: SparkSession,
    start_mirror: StartMirror,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
) -> None:
    """Before its ranges are compared, and before what is unmatched in them is looked into."""
    here, there = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    kept, deleted = f"{topic_name}-kept", f"{topic_name}-deleted"
    for topic in (kept, deleted):
        mp.create_topic(here, topic, 1)
        mp.produce(here, topic, 1, COUNT, codec=None)
    with start_mirror(f"{topic_name}-.*", {}):
        for topic in (kept, deleted):
            mp.wait_for(lambda: mp.end_offsets(there, f"A.{topic}", 1) == [COUNT], 90, "copied")  # noqa: B023
    for topic in (kept, deleted):
        write(target_cluster, f"A.{topic}", [(b"k", b"foreign", 5)])
    config = config_of(tmp_path, source_cluster, target_cluster, f"{topic_name}-.*")
    journal = tmp_path / "journal"
    foreign = {(topic, 0, "extra", None, COUNT) for topic in (kept, deleted)}
    assert found_in(run_verification(spark, config, Options(resume=journal))) == foreign

    delete_topic(source_cluster, deleted)
    for unjudged in (1, COUNT):
        found = run_verification(spark, config, Options(resume=journal))
        assert found_in(found) == {(kept, 0, "extra", None, COUNT)}
        by_topic = {one.topic: one for one in found.partitions}
        assert by_topic[kept].records == COUNT
        assert by_topic[deleted].unjudged == unjudged
        assert by_topic[deleted].notes == (f"cluster A: {deleted}-0 was deleted since it was planned",)
        if unjudged == 1:
            keep_ranges(journal, 0)


def test_what_was_compared_is_kept_where_another_range_fails(
    spark: SparkSession,
    start_mirror: StartMirror,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 1, COUNT, codec=None)
    with start_mirror(topic_name, {}):
        mp.wait_for(
            lambda: mp.end_offsets(target_cluster.bootstrap_servers, f"A.{topic_name}", 1) == [COUNT], 90, "copied"
        )
    config = config_of(tmp_path, source_cluster, target_cluster, topic_name)
    monkeypatch.setattr(ranges, "RANGE_BYTES", 20_000)
    journal = tmp_path / "journal"

    def all_but_one(order_json: str) -> str:
        if CompareOrder.model_validate_json(order_json).range.range == 1:
            return Answer(failed="cluster A: it has no leader now").model_dump_json()
        return compare_range(order_json)

    with monkeypatch.context() as patched:
        patched.setattr(importlib.import_module("sparkmirror.frames.verify"), "compare_range", all_but_one)
        with pytest.raises(ClusterUnreachable, match="cluster A: it has no leader now"):
            run_verification(spark, config, Options(resume=journal))
    done = [line for line in journal.read_text().splitlines() if line.startswith('{"done"')]
    assert done
    assert not any('"range": 1,' in line for line in done)
    found = run_verification(spark, config, Options(resume=journal))
    assert not found.differs
    assert found.partitions[0].records == COUNT
    again = [line for line in journal.read_text().splitlines() if line.startswith('{"done"')]
    assert again[: len(done)] == done
    assert len(again) == found.all_ranges


def test_a_task_that_fails_each_time_is_told_in_one_line(spark: SparkSession) -> None:
    """Its Python ends, or can't do its work."""

    def dies(order: str) -> str:
        os._exit(1)

    def lacks_something(order: str) -> str:
        raise ModuleNotFoundError("No module named 'sparkmirror'")

    with pytest.raises(
        SetupError, match=r"^Spark failed to run verify's tasks: .*Python worker exited unexpectedly"
    ) as one:
        run_tasks(spark, ["order"], dies)
    assert "\n" not in str(one.value)
    with pytest.raises(SetupError, match=r"ModuleNotFoundError: No module named 'sparkmirror'$") as other:
        run_tasks(spark, ["order"], lacks_something)
    assert "\n" not in str(other.value)
