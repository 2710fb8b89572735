"""The sink as `df.write` and `writeStream.format("sparkmirror")`: exactly once, or refused in a line."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyspark
import pytest
from kafka.partitioner.default import murmur2
from lab import KafkaCluster
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from test_exactly_once_sink import PARTITIONS, records
from tests.support import mirror_process as mp

import sparkmirror as sm

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.skipif(pyspark.__version__.startswith("3."), reason="Spark 3.5 has no such sources"),
]

LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";'


def write(frame: DataFrame, cluster: KafkaCluster, topic: str = "", mode: str = "append", **more: str) -> None:
    writer = frame.write.format("sparkmirror").mode(mode).option("kafka.bootstrap.servers", cluster.bootstrap_servers)
    if topic:
        writer = writer.option("topic", topic)
    writer.options(**{key.replace("__", "."): value for key, value in more.items()}).save()


def counted(cluster: KafkaCluster, topic: str) -> Counter[bytes | None]:
    return Counter(record.value for record in records(cluster, topic))


def lines(spark: SparkSession, count: int, tasks: int = 3) -> DataFrame:
    """Rows gathered by a partition of their own."""
    frame = spark.range(count).selectExpr(
        "cast(id as string) as key", "cast(id as string) as value", f"cast(id % {PARTITIONS} as int) as partition"
    )
    return frame.repartition(tasks, "partition")


def test_gathered_rows_are_written(spark: SparkSession, target_cluster: KafkaCluster, topic_name: str) -> None:
    mp.create_topic(target_cluster.bootstrap_servers, topic_name, PARTITIONS)
    write(lines(spark, 300), target_cluster, topic_name, kafka__compression__type="zstd", kafka__acks="all")
    seen = list(records(target_cluster, topic_name))
    assert Counter(record.value for record in seen) == {b"%d" % n: 1 for n in range(300)}
    assert all(record.partition == int(record.value) % PARTITIONS for record in seen)


def test_one_task_needs_no_partition(spark: SparkSession, target_cluster: KafkaCluster, topic_name: str) -> None:
    """Keys are spread as by Kafka's default partitioner; a null partition is none."""
    names = [f"{topic_name}-{letter}" for letter in "ab"]
    for name in names:
        mp.create_topic(target_cluster.bootstrap_servers, name, PARTITIONS)
    frame = spark.range(0, 200, 1, 1).selectExpr(
        f"concat('{topic_name}-', if(id % 2 = 0, 'a', 'b')) as topic",
        "if(id % 5 = 0, null, cast(id as string)) as key",
        "cast(if(id % 7 = 0, 1, null) as int) as partition",
        "cast(id as string) as value",
        "'left out' as comment",
    )
    write(frame, target_cluster)
    seen = [record for name in names for record in records(target_cluster, name)]
    assert Counter(record.value for record in seen) == {b"%d" % n: 1 for n in range(200)}
    for record in seen:
        if int(record.value) % 7 == 0:
            assert record.partition == 1
        elif record.key is not None:
            assert record.partition == (murmur2(record.key) & 0x7FFFFFFF) % PARTITIONS


def test_a_job_with_a_name_may_run_again(spark: SparkSession, target_cluster: KafkaCluster, topic_name: str) -> None:
    mp.create_topic(target_cluster.bootstrap_servers, topic_name, PARTITIONS)
    for tasks in (3, 1):
        write(lines(spark, 300, tasks), target_cluster, topic_name, txnAppId=topic_name, txnVersion="4")
        assert counted(target_cluster, topic_name) == {b"%d" % n: 1 for n in range(300)}
    write(lines(spark, 300), target_cluster, topic_name, txnAppId=topic_name, txnVersion="5")
    assert counted(target_cluster, topic_name) == {b"%d" % n: 2 for n in range(300)}


def test_rows_in_two_tasks_are_refused(spark: SparkSession, target_cluster: KafkaCluster, topic_name: str) -> None:
    """Nothing comes twice, and the job continues where it was once its rows are gathered."""
    mp.create_topic(target_cluster.bootstrap_servers, topic_name, PARTITIONS)
    name = {"txnAppId": topic_name, "txnVersion": "0"}
    scattered = lines(spark, 300).repartition(2)
    with pytest.raises(PySparkException, match=r"RowsChanged: .*foreachBatch\(sm\.Sink\(\.\.\.\)\)"):
        write(scattered, target_cluster, topic_name, **name)
    assert set(counted(target_cluster, topic_name).values()) <= {1}
    sm.append(scattered, target_cluster.bootstrap_servers, topic_name, app_id=topic_name)
    assert counted(target_cluster, topic_name) == {b"%d" % n: 1 for n in range(300)}


def test_tasks_with_equal_rows_are_refused(spark: SparkSession, target_cluster: KafkaCluster, topic_name: str) -> None:
    """To brokers the second task looks like another attempt of the first: only the driver can tell."""
    mp.create_topic(target_cluster.bootstrap_servers, topic_name, 1)
    equal = spark.range(0, 2, 1, 2).selectExpr("'same' as value")
    with pytest.raises(PySparkException, match=f"RowsChanged: {topic_name}-0: two tasks of batch 0 have rows for it"):
        write(equal, target_cluster, topic_name)


class Stream:
    """A query over files, with its checkpoint."""

    def __init__(self, spark: SparkSession, cluster: KafkaCluster, topic: str, directory: Path) -> None:
        self.source, self.checkpoint = directory / "in", directory / "ck"
        self.source.mkdir()
        self._spark, self._cluster, self._topic = spark, cluster, topic
        self._files = 0

    def add(self, count: int) -> None:
        for _ in range(count):
            text = "".join(f"{self._files}-{line}\n" for line in range(40))
            (self.source / f"{self._files}.txt").write_text(text)
            self._files += 1

    @property
    def expected(self) -> Counter[bytes | None]:
        return Counter(b"%d-%d" % (number, line) for number in range(self._files) for line in range(40))

    def start(self, *, gathered: bool = True, **more: str) -> StreamingQuery:
        stream = self._spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(self.source))
        rows = stream.selectExpr("value", f"cast(hash(value) & 1023 as int) % {PARTITIONS} as partition")
        rows = rows.repartition(2, "partition") if gathered else rows.repartition(2)
        writer = rows.writeStream.format("sparkmirror").option("topic", self._topic).options(**more)
        writer = writer.option("kafka.bootstrap.servers", self._cluster.bootstrap_servers)
        return writer.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True).start()

    def run(self) -> None:
        assert self.start().awaitTermination(120)


@pytest.fixture
def stream(spark: SparkSession, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path) -> Stream:
    mp.create_topic(target_cluster.bootstrap_servers, topic_name, PARTITIONS)
    return Stream(spark, target_cluster, topic_name, tmp_path)


def test_a_query_continues_where_it_was(stream: Stream, target_cluster: KafkaCluster, topic_name: str) -> None:
    """Its last batch is run again: its commit is taken out, as a driver that died before it leaves it."""
    stream.add(3)
    stream.run()
    assert counted(target_cluster, topic_name) == stream.expected
    for leftover in (stream.checkpoint / "commits").glob("*2*"):
        leftover.unlink()
    stream.add(1)
    stream.run()
    assert counted(target_cluster, topic_name) == stream.expected


def test_a_query_whose_rows_are_scattered_stops(stream: Stream, target_cluster: KafkaCluster, topic_name: str) -> None:
    stream.add(2)
    query = stream.start(gathered=False)
    with pytest.raises(PySparkException, match=r"RowsChanged: .*foreachBatch\(sm\.Sink\(\.\.\.\)\)"):
        query.awaitTermination(120)
    assert not list((stream.checkpoint / "commits").glob("[0-9]*")), "it is not committed"
    assert not counted(target_cluster, topic_name) - stream.expected
    stream.run()
    assert counted(target_cluster, topic_name) == stream.expected


def test_an_unnamed_job_in_a_micro_batch_is_refused(
    stream: Stream, spark: SparkSession, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    stream.add(1)
    rows = spark.readStream.format("text").load(str(stream.source))
    writer = rows.writeStream.foreachBatch(lambda frame, _: write(frame.coalesce(1), target_cluster, topic_name))
    query = writer.option("checkpointLocation", str(tmp_path / "each")).trigger(availableNow=True).start()
    with pytest.raises(PySparkException, match="txnAppId: is missing inside foreachBatch, where a batch may run again"):
        query.awaitTermination(120)
    assert not counted(target_cluster, topic_name)


MISTAKES: dict[str, tuple[dict[str, str], str]] = {
    "overwrite": ({"mode": "overwrite"}, "option: mode: topics can only be appended to: write append"),
    "an unknown option": ({"topics": "a"}, "option: topics: is not known; did you mean topic"),
    "a reader's option": ({"subscribe": "a"}, "option: subscribe: is not known"),
    "a path": ({"path": "/tmp/rows"}, "option: path: is for files"),
    "half a name": ({"txnVersion": "4"}, "option: txnAppId: is missing"),
    "no codec": (
        {"kafka__compression__type": "brotli"},
        "option: kafka.compression.type: is 'brotli': write lz4, none",
    ),
    "an unknown setting": ({"kafka__ackz": "all"}, "option: kafka.ackz: is no setting of a cluster's clients"),
    "a topic that is not there": ({}, "has no topic nowhere: create it first"),
    "a password": (
        {
            "kafka__security__protocol": "SASL_SSL",
            "kafka__sasl__mechanism": "PLAIN",
            "kafka__sasl__jaas__config": LOGIN,
        },
        r"has passwords, and a format can't see whether this Spark hands them to its tasks in clear",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_told_in_a_line(case: str, spark: SparkSession, target_cluster: KafkaCluster) -> None:
    given, words = MISTAKES[case]
    with pytest.raises(PySparkException) as raised:
        write(spark.range(1).selectExpr("cast(id as string) as value"), target_cluster, "nowhere", **given)
    (line,) = [each for each in str(raised.value).splitlines() if words in each][:1]
    assert line.startswith("sparkmirror.errors.")


def test_columns_are_checked_before_a_task_begins(spark: SparkSession, target_cluster: KafkaCluster) -> None:
    rows: Any = spark.range(1)
    with pytest.raises(PySparkException, match="column value: it is missing; the DataFrame has id"):
        write(rows, target_cluster, "nowhere")
    with pytest.raises(PySparkException, match="column topic: it is missing: give the sink a topic"):
        write(rows.selectExpr("'x' as value"), target_cluster)


def test_a_query_has_no_name_of_a_job(stream: Stream) -> None:
    stream.add(1)
    query = stream.start(txnAppId="a", txnVersion="1")
    with pytest.raises(PySparkException, match="txnAppId: is for batch writes: a streaming query is known by its"):
        query.awaitTermination(60)
