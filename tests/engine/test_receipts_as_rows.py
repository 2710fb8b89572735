"""Receipts as a DataFrame: a batch and a stream both count every record that was copied, over a restart too."""

from __future__ import annotations

import time
from pathlib import Path

import pyspark
import pytest
from kafka import KafkaProducer
from lab import KafkaCluster
from pyspark.sql import DataFrame, SparkSession
from tests.support import loss_tools as lt
from tests.support import mirror_process as mp

from sparkmirror.config import FlowConfig, load_mm2_properties
from sparkmirror.frames import RECEIPTS, receipts
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.pump.messages.orders import FlowReport
from sparkmirror.pump.messages.receipts import publish, receipts_topic

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

HAS_STREAMS = not pyspark.__version__.startswith("3.")
"""Spark 3.5 reads receipts as a batch only."""


def write(cluster: KafkaCluster, topic: str, counts: dict[int, int]) -> None:
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers)
    for partition, count in counts.items():
        for number in range(count):
            producer.send(topic, b"%d" % number, partition=partition)
    producer.close()


def counted(frame: DataFrame, topic: str) -> dict[int, int]:
    """Records by partition."""
    rows = frame.where(frame.topic == topic).groupBy("partition").sum("records").collect()
    return {row[0]: row[1] for row in rows}


def let_time_pass(flow: FlowConfig, minutes: int) -> None:
    """What a pump of so many minutes later would report, so that nothing is waited for any more."""
    client = ClusterClient(flow.target, "later")
    later_ms = int(time.time() * 1000) + minutes * 60_000
    publish(
        TopicLog(client, receipts_topic(flow.source.alias)),
        [FlowReport(epoch=1, task=0, pump="later", incarnation="another", at_ms=later_ms)],
    )
    client.close()


def run_stream(spark: SparkSession, flow: FlowConfig, directory: Path) -> DataFrame:
    """All that a query with that checkpoint has written so far."""
    writer = receipts(spark, flow, streaming=True).writeStream.format("parquet")
    query = writer.option("checkpointLocation", str(directory / "checkpoint")).start(str(directory / "rows"))
    query.processAllAvailable()
    query.stop()
    return spark.read.parquet(str(directory / "rows"))


def test_batch_and_stream_count_every_record(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path, spark: SparkSession
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 2)
    path = mp.write_properties(
        tmp_path / "mm2.properties", source_cluster.bootstrap_servers, target_cluster.bootstrap_servers, topic_name
    )
    flow = load_mm2_properties(str(path)).flows[0]
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    write(source_cluster, topic_name, {0: 500, 1: 70})
    lt.copy_once(path, spark)
    let_time_pass(flow, 10)
    if HAS_STREAMS:
        assert counted(run_stream(spark, flow, tmp_path), topic_name) == {0: 500, 1: 70}

    write(source_cluster, topic_name, {0: 30})
    lt.copy_once(path, spark)
    # All that came meanwhile is from before what the stream has heard: a clock that is behind loses nothing.
    let_time_pass(flow, 20)
    batch = receipts(spark, flow).where(f"topic = '{topic_name}'")
    assert batch.schema.simpleString() == spark.createDataFrame([], RECEIPTS).schema.simpleString()
    assert counted(batch, topic_name) == {0: 530, 1: 70}
    if HAS_STREAMS:
        assert counted(run_stream(spark, flow, tmp_path), topic_name) == {0: 530, 1: 70}

    newest = {row.partition: row for row in batch.orderBy("minute").collect()}
    assert {(row.target_topic, row.lag) for row in newest.values()} == {(f"A.{topic_name}", 0)}
    assert {number: (row.upstream, row.downstream) for number, row in newest.items()} == {0: (530, 530), 1: (70, 70)}
    size, latency_ms, age_s = batch.selectExpr(
        "sum(bytes)", "max(latency_max_ms)", "unix_timestamp() - unix_timestamp(min(minute))"
    ).first() or (0, 0, 0)
    assert size > 600
    assert 0 < latency_ms < 300_000
    assert 0 <= age_s < 600
