"""A mirror's own tables by `format("sparkmirror")`: what the public face's DataFrames say."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest
from lab import KafkaCluster
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from test_observer import commit
from tests.support import mirror_process as mp

import sparkmirror as sm
from conftest import StartMirror
from sparkmirror.source.frames import read_records

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.skipif(pyspark.__version__.startswith("3."), reason="Spark 3.5 has no such sources"),
]

GROUPS = {
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "1",
    "emit.checkpoints.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
}


def test_offset_map_groups_receipts_and_losses(
    start_mirror: StartMirror,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 3)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 3, 300)
    commit(source_cluster, topic_name, topic_name, 10)
    path = str(tmp_path / "mm2.properties")

    def table(name: str, **more: str) -> DataFrame:
        return spark.read.format("sparkmirror").options(table=name, config=path, **more).load()

    def sum_of(frame: DataFrame) -> object:
        """Of its topic: the flow copies the source's heartbeats, too, if other tests have left some there."""
        return frame.where(f"topic = '{topic_name}'").groupBy().sum("records").first()

    def same(frame: DataFrame, other: DataFrame) -> bool:
        rows, others = (sorted(map(str, each.collect())) for each in (frame, other))
        return (frame.schema.simpleString(), rows) == (other.schema.simpleString(), others)

    with start_mirror(topic_name, GROUPS | {"groups": topic_name}):
        face = sm.Mirror(path, spark=spark)
        mp.wait_for(lambda: table("groups").where("target_offset is not null").count() > 0, 60, "a group is set")
        columns = ("group", "topic", "partition")
        assert same(table("groups").select(*columns), face.groups().select(*columns))
        mp.wait_for(lambda: sum_of(table("receipts")) == (300,), 60, "receipts")
    cases: list[dict[str, str]] = [{}, {"minPartitions": "2"}, {"flow": "A->B"}]
    for more in cases:
        runs = table("offset_map", **more)
        assert same(runs, face.offset_map())
        assert sum_of(runs) == (300,)
    assert read_records(spark, {"table": "offset_map", "config": path}, ["upstream"]).count() == runs.count()
    assert same(table("losses"), face.losses())
    assert same(table("receipts"), face.receipts())
    records = spark.read.format("sparkmirror").options(config=path, subscribe=topic_name).load()
    assert records.count() == 300
    copies = spark.read.format("sparkmirror").options(config=path, cluster="target", subscribe=f"A.{topic_name}").load()
    assert same(copies.select("key", "value", "timestamp"), records.select("key", "value", "timestamp"))
    with pytest.raises(PySparkException, match="option: flow: there is no A->C; there are A->B"):
        table("losses", flow="A->C").count()
