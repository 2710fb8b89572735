"""The exactly-once sink in Spark: rows as records, where they are, and each once whatever is tried again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.partitioner.default import murmur2
from lab import KafkaCluster
from pyspark.sql import SparkSession
from pyspark.sql.functions import expr
from tests.support import mirror_process as mp

import sparkmirror as sm
from sparkmirror.errors import ClusterUnreachable, ConfigError, RowsChanged, RowsRefused

pytestmark = [pytest.mark.broker, pytest.mark.spark]

PARTITIONS = 3
HEADERS = "array<struct<key: string, value: binary>>"


def records(cluster: KafkaCluster, topic: str) -> Iterator[Any]:
    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers, enable_auto_commit=False)
    partitions = [TopicPartition(topic, number) for number in sorted(consumer.partitions_for_topic(topic) or ())]
    consumer.assign(partitions)
    consumer.seek_to_beginning()
    ends = consumer.end_offsets(partitions)
    while any(consumer.position(at) < ends[at] for at in partitions):
        for found in consumer.poll(1000).values():
            yield from found
    consumer.close()


def test_rows_become_records(spark: SparkSession, target_cluster: KafkaCluster, topic_name: str) -> None:
    servers = target_cluster.bootstrap_servers
    mp.create_topic(servers, topic_name, PARTITIONS)
    now = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
    rows = [
        (f"key-{n % 50}" if n % 5 else None, f"value-{n}" if n % 11 else None, now + timedelta(seconds=n), n)
        for n in range(1, 400)
    ]
    frame = spark.createDataFrame(rows, "key string, value string, timestamp timestamp, offset long")
    frame = frame.withColumn(
        "headers",
        expr(f"case when offset % 2 = 0 then cast(array(struct('n', cast('x' as binary))) as {HEADERS}) end"),
    )
    written = sm.append(frame, servers, topic_name).collect()
    seen = sorted(records(target_cluster, topic_name), key=lambda record: record.timestamp)
    assert [(record.key, record.value, record.timestamp) for record in seen] == [
        (key and key.encode(), value and value.encode(), int(at.timestamp() * 1000)) for key, value, at, _ in rows
    ]
    assert [list(record.headers) for record in seen] == [[] if n % 2 else [("n", b"x")] for *_, n in rows]
    assert all(
        record.partition == (murmur2(record.key) & 0x7FFFFFFF) % PARTITIONS for record in seen if record.key is not None
    ), "as Kafka's default partitioner has it"
    assert len({record.partition for record in seen if record.key is None}) == PARTITIONS
    places = Counter(record.partition for record in seen)
    assert {(row.partition, row.records, row.first_offset, row.last_offset) for row in written} == {
        (number, count, 0, count - 1) for number, count in places.items()
    }


def test_a_job_that_runs_again_appends_nothing(
    spark: SparkSession, target_cluster: KafkaCluster, topic_name: str
) -> None:
    servers = target_cluster.bootstrap_servers
    mp.create_topic(servers, topic_name, PARTITIONS)
    frame = spark.range(300).selectExpr("cast(id as string) as key", "cast(id as string) as value")
    first = sm.append(frame, {"kafka.bootstrap.servers": servers}, topic_name, app_id=topic_name, version=4).collect()
    again = sm.append(frame.repartition(5), servers, topic_name, app_id=topic_name, version=4).collect()
    assert [row[:7] for row in again] == [row[:7] for row in first], "the same places"
    assert sum(row.earlier for row in again) == 300
    assert Counter(record.value for record in records(target_cluster, topic_name)) == {b"%d" % n: 1 for n in range(300)}
    sm.append(frame, servers, topic_name, app_id=topic_name, version=5)
    assert Counter(record.value for record in records(target_cluster, topic_name)) == {b"%d" % n: 2 for n in range(300)}
    with pytest.raises(RowsChanged, match="an earlier attempt of batch 5 appended are not among this attempt's rows"):
        sm.append(frame.where("id < 200"), servers, topic_name, app_id=topic_name, version=5)


def test_rows_name_their_topics_and_partitions(
    spark: SparkSession, target_cluster: KafkaCluster, topic_name: str
) -> None:
    servers = target_cluster.bootstrap_servers
    names = [f"{topic_name}-{letter}" for letter in "ab"]
    for name in names:
        mp.create_topic(servers, name, PARTITIONS)
    frame = spark.range(90).selectExpr(
        f"concat('{topic_name}-', if(id % 2 = 0, 'a', 'b')) as topic",
        "cast(if(id % 3 = 0, null, id % 3) as int) as partition",
        "cast(id as string) as value",
        "'left out' as comment",
    )
    sm.append(frame, servers)
    for parity, name in enumerate(names):
        seen = list(records(target_cluster, name))
        assert Counter(record.value for record in seen) == {b"%d" % n: 1 for n in range(90) if n % 2 == parity}
        assert all(record.partition == int(record.value) % 3 for record in seen if int(record.value) % 3)


@pytest.mark.parametrize("is_gathered", [True, False])
def test_a_topic_without_rows_is_audited(
    is_gathered: bool, spark: SparkSession, target_cluster: KafkaCluster, topic_name: str
) -> None:
    """Also where all rows have their partition, so that no partition count is asked for."""
    servers = target_cluster.bootstrap_servers
    names = [f"{topic_name}-{letter}" for letter in "ab"]
    for name in names:
        mp.create_topic(servers, name, PARTITIONS)
    frame = spark.range(0, 40, 1, 1).selectExpr(
        f"concat('{topic_name}-', if(id % 2 = 0, 'a', 'b')) as topic", "0 as partition", "cast(id as string) as value"
    )
    sm.append(frame, servers, app_id=topic_name, version=1, is_gathered=is_gathered)
    with pytest.raises(RowsChanged, match=f"{names[1]}-0: its leader has 20 records of batch 1, and the tasks have 0"):
        sm.append(frame.where(f"topic = '{names[0]}'"), servers, app_id=topic_name, version=1, is_gathered=is_gathered)


def test_a_query_continues_where_it_was(
    spark: SparkSession, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    """Its last batch is run again: its commit is taken out, as a driver that died before it leaves it."""
    servers = target_cluster.bootstrap_servers
    mp.create_topic(servers, topic_name, PARTITIONS)
    source, checkpoint = tmp_path / "in", tmp_path / "ck"
    source.mkdir()

    def run() -> sm.Sink:
        sink = sm.Sink(servers, topic=topic_name)
        stream = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(source))
        query = stream.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint))
        query.trigger(availableNow=True).start().awaitTermination()
        return sink

    for number in range(3):
        (source / f"{number}.txt").write_text("".join(f"{number}-{line}\n" for line in range(40)))
    sink = run()
    assert sm.written(sink, spark).groupBy("query", "batch").sum("records").count() == 3
    for leftover in (checkpoint / "commits").glob("*2*"):
        leftover.unlink()
    (source / "3.txt").write_text("".join(f"3-{line}\n" for line in range(40)))
    sink = run()
    assert {row[1] for row in sink.rows if row[-1]} == {2}, "the batch was found"
    assert Counter(record.value for record in records(target_cluster, topic_name)) == {
        b"%d-%d" % (number, line): 1 for number in range(4) for line in range(40)
    }


def test_mistakes_are_told_in_a_line(spark: SparkSession, target_cluster: KafkaCluster, topic_name: str) -> None:
    servers = target_cluster.bootstrap_servers
    rows = spark.range(3).selectExpr("cast(id as string) as value")
    with pytest.raises(RowsRefused, match="column value: it is missing; the DataFrame has id"):
        sm.append(spark.range(3), servers, topic_name)
    with pytest.raises(RowsRefused, match="column topic: it is missing: give the sink a topic"):
        sm.append(rows, servers)
    with pytest.raises(RowsRefused, match=f"has no topic {topic_name}: create it first"):
        sm.append(rows, servers, topic_name)
    mp.create_topic(servers, topic_name, PARTITIONS)
    with pytest.raises(RowsRefused, match="has 3 partitions, and a row is for number 7"):
        sm.append(rows.selectExpr("value", "7 as partition"), servers, topic_name)
    with pytest.raises(RowsRefused, match="column timestamp: a row is from 2001-09-09 01:46:40 UTC"):
        sm.append(rows.selectExpr("value", "timestamp_seconds(1000000000) as timestamp"), servers, topic_name)
    with pytest.raises(RowsRefused, match="column partition: its type is string; cast it to int"):
        sm.append(rows.selectExpr("value", "'1' as partition"), servers, topic_name)
    with pytest.raises(RowsRefused, match="and a row is for number 4294967297"):
        sm.append(rows.selectExpr("value", "4294967297 as partition"), servers, topic_name)
    with pytest.raises(RowsRefused, match="column topic: a row has none, and the sink has no topic of its own"):
        sm.append(rows.selectExpr("value", "cast(null as string) as topic"), servers)
    with pytest.raises(ConfigError, match=r"security\.protocol: "):
        sm.Sink(servers, topic_name, properties={"security.protocol": "TELNET"})
    with pytest.raises(ConfigError, match="Sink: compression: choose one of none, gzip, snappy, lz4, zstd"):
        sm.Sink(servers, topic_name, compression="brotli")
    with pytest.raises(ConfigError, match="this is no streaming query"):
        sm.Sink(servers, topic_name)(rows, 0)
    with pytest.raises(ClusterUnreachable, match=r"no broker of 127\.0\.0\.1:1 answers"):
        sm.append(rows, "127.0.0.1:1", topic_name)
    assert not list(records(target_cluster, topic_name))
