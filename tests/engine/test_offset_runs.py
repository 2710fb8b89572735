"""The offset map as a DataFrame: what SQL says of every record is where the record is."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab import KafkaCluster
from pyspark.sql import SparkSession
from test_every_batch import read, transactional
from tests.support import loss_tools as lt
from tests.support import mirror_process as mp

from sparkmirror.config import load_mm2_properties
from sparkmirror.frames import offset_runs

pytestmark = [pytest.mark.broker, pytest.mark.spark]


def test_runs_as_rows(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path, spark: SparkSession
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 2)
    list(transactional(source_cluster, topic_name, 6))
    path = mp.write_properties(
        tmp_path / "mm2.properties", source_cluster.bootstrap_servers, target_cluster.bootstrap_servers, topic_name
    )
    lt.copy_once(path, spark)
    flow = load_mm2_properties(str(path)).flows[0]
    offset_runs(spark, flow).createOrReplaceTempView("runs")
    rows = spark.sql(
        "select topic, target_topic, partition, upstream + step as upstream, downstream + step as downstream "
        "from runs lateral view explode(sequence(0, int(records) - 1)) as step order by downstream"
    ).collect()
    there, here = read(source_cluster, topic_name), read(target_cluster, f"A.{topic_name}")
    assert [(row.upstream, row.downstream) for row in rows] == [
        (record.offset, copy.offset) for record, copy in zip(there, here, strict=True)
    ]
    assert {tuple(row)[:3] for row in rows} == {(topic_name, f"A.{topic_name}", 0)}
    assert spark.sql("select count(*) from runs").first() == (6,)
