"""The data source `sparkmirror`: rows are what a consumer reads, in batches and streams, whatever the log is like."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyspark
import pytest
from kafka import KafkaAdminClient, KafkaProducer
from lab import KafkaCluster
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from test_every_batch import COMPACT, STAMPED, compacted, headers, read, transactional
from tests.support import loss_tools as lt
from tests.support import mirror_process as mp

from sparkmirror.errors import ConfigError, RecordsGone
from sparkmirror.source.frames import read_records

pytestmark = [pytest.mark.broker, pytest.mark.spark]

HAS_SOURCES = not pyspark.__version__.startswith("3.")
"""Spark 3.5 has no data sources in Python: there `read_records` gives the same rows."""
from_spark_4 = pytest.mark.skipif(not HAS_SOURCES, reason="Spark 3.5 has no such sources")
BOUNDED = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 2)
CODECS = (None, "gzip", "snappy", "lz4", "zstd")
ROW = "key, value, topic, partition, offset, unix_millis(timestamp) as at, timestampType as kind"


def options(cluster: KafkaCluster, topic: str, **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": topic, "includeHeaders": "true"} | more


def frame(spark: SparkSession, given: Mapping[str, str], schema: str = "") -> DataFrame:
    if not HAS_SOURCES:
        return read_records(spark, given, [column.split()[0] for column in schema.split(", ") if column])
    reader = spark.read.format("sparkmirror").options(**given)
    return (reader.schema(schema) if schema else reader).load()


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    found = frame.selectExpr(*ROW.split(", "), "headers").orderBy("partition", "offset").collect()
    return [
        (
            None if row.key is None else bytes(row.key),
            None if row.value is None else bytes(row.value),
            row.topic,
            row.partition,
            row.offset,
            row.at,
            row.kind,
            [(name, None if value is None else bytes(value)) for name, value in row.headers or []],
        )
        for row in found
    ]


def consumed(cluster: KafkaCluster, topic: str, partitions: int = 1, *, committed: bool = False) -> list[Any]:
    return [
        (
            record.key,
            record.value,
            topic,
            partition,
            record.offset,
            record.timestamp,
            record.timestamp_type,
            list(record.headers),
        )
        for partition in range(partitions)
        for record in read(cluster, topic, committed=committed, partition=partition)
    ]


def each_way(spark: SparkSession, given: Mapping[str, str]) -> list[list[Any]]:
    """The rows by the data source where Spark has it, and by the function that Spark 3.5 has, too."""
    by_source = [rows(frame(spark, given))] if HAS_SOURCES else []
    return [*by_source, rows(read_records(spark, given))]


def test_rows_are_what_a_consumer_reads(source_cluster: KafkaCluster, topic_name: str, spark: SparkSession) -> None:
    servers = source_cluster.bootstrap_servers
    mp.create_topic(servers, topic_name, 3)
    for codec in CODECS:
        mp.produce(servers, topic_name, 3, 400, codec=codec, size=300)
    producer = KafkaProducer(bootstrap_servers=servers)
    for value in (b"", None):
        producer.send(topic_name, key=b"", value=value, headers=[("", b"x"), ("ä", b"")], partition=1, timestamp_ms=1)
    producer.close()
    assert {header.codec for header in headers(source_cluster, topic_name)} == {"none", *filter(None, CODECS)}
    wanted = consumed(source_cluster, topic_name, 3)
    assert len(wanted) == 5 * 400 + 2
    for found in each_way(spark, options(source_cluster, topic_name, minPartitions="7")):
        assert found == wanted
    given = options(source_cluster, topic_name, maxRecordsPerPartition="150")
    assert rows(frame(spark, given)) == wanted


def test_compacted_and_stamped_logs(source_cluster: KafkaCluster, topic_name: str, spark: SparkSession) -> None:
    servers = source_cluster.bootstrap_servers
    mp.create_topic(servers, f"{topic_name}-compacted", 1, COMPACT)
    compacted(source_cluster, f"{topic_name}-compacted")
    mp.create_topic(servers, f"{topic_name}-stamped", 1, STAMPED)
    mp.produce(servers, f"{topic_name}-stamped", 1, 300)
    for kind in ("compacted", "stamped"):
        wanted = consumed(source_cluster, f"{topic_name}-{kind}")
        assert {row[6] for row in wanted} == {int(kind == "stamped")}
        for found in each_way(spark, options(source_cluster, f"{topic_name}-{kind}", minPartitions="5")):
            assert found == wanted


def test_aborted_records_are_left_out_at_read_committed(
    source_cluster: KafkaCluster, topic_name: str, spark: SparkSession
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    for _ in transactional(source_cluster, topic_name, 12):
        pass
    open_one = KafkaProducer(bootstrap_servers=source_cluster.bootstrap_servers, transactional_id=f"{topic_name}-open")
    open_one.init_transactions()
    open_one.begin_transaction()
    open_one.send(topic_name, b"not yet", partition=0).get(30)
    level = {"kafka.isolation.level": "read_committed"}
    wanted = consumed(source_cluster, topic_name, committed=True)
    assert len(wanted) == 8 * 5
    for found in each_way(spark, options(source_cluster, topic_name, **level)):
        assert found == wanted
    every = consumed(source_cluster, topic_name)
    assert len(every) == 12 * 5 + 1
    assert rows(frame(spark, options(source_cluster, topic_name))) == every
    open_one.abort_transaction()
    open_one.close()
    assert rows(frame(spark, options(source_cluster, topic_name, **level))) == wanted


def test_columns_and_places_that_are_chosen(source_cluster: KafkaCluster, topic_name: str, spark: SparkSession) -> None:
    servers = source_cluster.bootstrap_servers
    mp.create_topic(servers, topic_name, 2, {"retention.ms": "-1"})  # else the broker deletes what is so old
    for number in range(20):
        mp.produce(servers, topic_name, 2, 10, timestamp_ms=1_700_000_000_000 + number * 1000)
    given = options(source_cluster, topic_name)
    wanted = consumed(source_cluster, topic_name, 2)
    keys = frame(spark, given, "key binary, offset long").collect()
    assert keys[0].__fields__ == ["key", "offset"]
    assert sorted((bytes(row.key or b""), row.offset) for row in keys) == sorted(
        (row[0] or b"", row[4]) for row in wanted
    )
    assert frame(spark, given).count() == frame(spark, given).where("partition = 1").count() * 2 == 200
    assert read_records(spark, given, ["offset"]).agg({"offset": "max"}).first()[0] == 99  # type: ignore[index]

    def at(**more: str) -> list[Any]:
        return [(row[3], row[4]) for row in rows(frame(spark, given | more))]

    def between(firsts: tuple[int, int], ends: tuple[int, int]) -> list[Any]:
        return [(number, offset) for number in (0, 1) for offset in range(firsts[number], ends[number])]

    starting = json.dumps({topic_name: {"0": 7, "1": -2}})
    ending = json.dumps({topic_name: {"0": 9, "1": -1}})
    assert at(startingOffsets=starting, endingOffsets=ending) == between((7, 0), (9, 100))
    assert at(startingTimestamp="1700000003000", endingTimestamp="1700000005000") == between((15, 15), (25, 25))
    times = json.dumps({topic_name: {"0": 1700000001000, "1": 1700000019000}})
    assert at(startingOffsetsByTimestamp=times) == between((5, 95), (100, 100))
    assign = {key: value for key, value in given.items() if key != "subscribe"}
    assigned = assign | {"assign": json.dumps({topic_name: [1]})}
    assert {row.partition for row in frame(spark, assigned).collect()} == {1}
    assert frame(spark, assign | {"subscribePattern": f"{topic_name[:-1]}."}).count() == 200


def test_batches_are_described_without_unpacking(
    source_cluster: KafkaCluster, topic_name: str, spark: SparkSession
) -> None:
    servers = source_cluster.bootstrap_servers
    mp.create_topic(servers, topic_name, 1)
    for codec in ("lz4", None):
        mp.produce(servers, topic_name, 1, 500, codec=codec)
    wanted = headers(source_cluster, topic_name)
    found = frame(spark, options(source_cluster, topic_name, table="batches")).orderBy("base_offset").collect()
    assert [
        (row.base_offset, row.last_offset, row.records, row.bytes, row.codec, row.producer_id, row.format)
        for row in found
    ] == [
        (each.base_offset, each.next_offset - 1, each.records, each.size, each.codec, each.producer_id, 2)
        for each in wanted
    ]
    assert sum(row.records for row in found) == 1000


REFUSALS = {
    "an unknown option": (
        {"startingOffset": "earliest"},
        "startingoffset: is not known; did you mean startingOffsets?",
    ),
    "an unknown setting": (
        {"kafka.sasl.mechanisms": "PLAIN"},
        "kafka.sasl.mechanisms: is no setting of a cluster's clients",
    ),
    "offsets that are none": (
        {"startingOffsets": "first"},
        "startingOffsets: can't be read (Expecting value: line 1 column 1 (char 0)): write it like",
    ),
    "two choices": (
        {"assign": '{"a":[0]}'},
        "subscribe, subscribePattern, assign: subscribe and assign are given: exactly one of them chooses what to read",
    ),
    "a topic that is not there": ({"subscribe": "nowhere"}, "subscribe: cluster kafka has no topic nowhere"),
    "a table that is none": ({"table": "rows"}, "table: is 'rows': write records, batches, offset_map,"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals_are_a_line(source_cluster: KafkaCluster, spark: SparkSession, case: str) -> None:
    wrong, words = REFUSALS[case]
    given = options(source_cluster, "a") | wrong
    if HAS_SOURCES:
        with pytest.raises(PySparkException) as raised:
            frame(spark, given).count()
        assert f"ConfigError: option: {words}" in str(raised.value)
    with pytest.raises(ConfigError) as direct:
        read_records(spark, given)
    assert str(direct.value).startswith(f"option: {words}")
    assert "\n" not in str(direct.value)


@from_spark_4
def test_a_column_of_another_type_is_refused(
    source_cluster: KafkaCluster, topic_name: str, spark: SparkSession
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    with pytest.raises(PySparkException, match="option: schema: the column key is binary, not string: cast it after"):
        frame(spark, options(source_cluster, topic_name), "key string").count()
    with pytest.raises(PySparkException, match="option: schema: the table records has no column keys; it has key"):
        frame(spark, options(source_cluster, topic_name), "keys binary").count()


def test_records_that_are_gone_are_told(source_cluster: KafkaCluster, topic_name: str, spark: SparkSession) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 1, 100)
    lt.delete_records(source_cluster, topic_name, 0, 40)
    given = options(source_cluster, topic_name, startingOffsets=json.dumps({topic_name: {"0": 10}}))
    gone = PySparkException if HAS_SOURCES else RecordsGone
    with pytest.raises(gone, match="offsets 10 to 39 are gone by retention; to go on without these"):
        frame(spark, given).count()
    kept = [row[4] for row in rows(frame(spark, given | {"failOnDataLoss": "false"}))]
    assert kept == list(range(40, 100))


class Stream:
    """A query that is started, and started again, with its checkpoint."""

    def __init__(self, spark: SparkSession, given: Mapping[str, str], directory: Path, schema: str = "") -> None:
        self._spark, self._given, self._directory, self._schema = spark, dict(given), directory, schema

    def run(self) -> int:
        """Read all there is now; returns the number of micro-batches."""
        reader = self._spark.readStream.format("sparkmirror").options(**self._given)
        if self._schema:
            reader = reader.schema(self._schema)
        writer = reader.load().writeStream.format("parquet").trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(self._directory / "checkpoint")).start(
            str(self._directory / "rows")
        )
        assert query.awaitTermination(120)
        return len([each for each in query.recentProgress if each["numInputRows"]])

    def rows(self) -> list[tuple[Any, ...]]:
        return rows(self._spark.read.parquet(str(self._directory / "rows")))


@from_spark_4
def test_a_stream_reads_each_record_once_over_restarts(
    source_cluster: KafkaCluster, topic_name: str, spark: SparkSession, tmp_path: Path
) -> None:
    servers = source_cluster.bootstrap_servers
    mp.create_topic(servers, topic_name, 2)
    bound = {"maxOffsetsPerTrigger": "100"} if BOUNDED else {}
    given = options(source_cluster, topic_name, startingOffsets="earliest", **bound)
    stream = Stream(spark, given, tmp_path)
    mp.produce(servers, topic_name, 2, 250)
    batches = stream.run()
    assert batches == (3 if BOUNDED else 1)
    assert stream.rows() == consumed(source_cluster, topic_name, 2)
    newest = tmp_path / "checkpoint" / "offsets" / str(batches - 1)
    (offsets,) = {line for line in newest.read_text().splitlines() if topic_name in line}
    assert json.loads(offsets) == {topic_name: {"0": 125, "1": 125}}
    assert stream.run() == 0
    mp.produce(servers, topic_name, 2, 30)
    stream.run()
    assert stream.rows() == consumed(source_cluster, topic_name, 2)
    assert len(stream.rows()) == 280


@from_spark_4
def test_a_stream_that_is_stopped_and_continued(
    source_cluster: KafkaCluster, topic_name: str, spark: SparkSession, tmp_path: Path
) -> None:
    """Topics of a pattern: those that come later are read from their start."""
    servers = source_cluster.bootstrap_servers
    given = options(source_cluster, topic_name, startingOffsets="latest", subscribePattern=f"{topic_name}-[a-z]")
    del given["subscribe"]
    mp.create_topic(servers, f"{topic_name}-a", 2)
    mp.create_topic(servers, f"{topic_name}-A", 1)
    mp.produce(servers, f"{topic_name}-a", 2, 50)
    names = [f"{topic_name}-a", f"{topic_name}-b"]
    for turn in range(3):
        reader = (
            spark.readStream.format("sparkmirror").options(**given).schema("topic string, partition int, offset long")
        )
        writer = reader.load().writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.start(str(tmp_path / "rows"))
        query.processAllAvailable()  # the stream has begun
        if turn == 1:
            mp.create_topic(servers, names[1], 1)
            mp.produce(servers, names[1], 1, 7)
        mp.produce(servers, names[0], 2, 20)
        mp.produce(servers, f"{topic_name}-A", 1, 5)
        query.processAllAvailable()
        query.stop()
        assert query.exception() is None
    found = sorted(map(tuple, spark.read.parquet(str(tmp_path / "rows")).collect()))
    assert found == [
        *((names[0], partition, offset) for partition in (0, 1) for offset in range(25, 25 + 30)),
        *((names[1], 0, offset) for offset in range(7)),
    ]


@from_spark_4
def test_a_stream_that_lost_records_says_so(
    source_cluster: KafkaCluster, topic_name: str, spark: SparkSession, tmp_path: Path
) -> None:
    servers = source_cluster.bootstrap_servers
    mp.create_topic(servers, topic_name, 1)
    mp.produce(servers, topic_name, 1, 20)
    given = options(source_cluster, topic_name, startingOffsets="earliest")
    Stream(spark, given, tmp_path).run()
    mp.produce(servers, topic_name, 1, 30)
    lt.delete_records(source_cluster, topic_name, 0, 45)
    with pytest.raises(PySparkException, match="offsets 20 to 44 are gone by retention"):
        Stream(spark, given, tmp_path).run()
    going_on = Stream(spark, given | {"failOnDataLoss": "false"}, tmp_path)
    going_on.run()
    assert [row[4] for row in going_on.rows()] == [*range(20), *range(45, 50)]


@pytest.fixture
def load(source_cluster: KafkaCluster, topic_name: str) -> Iterator[None]:
    """A producer that writes to the topic all the time."""
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    stop = threading.Event()

    def write() -> None:
        producer = KafkaProducer(bootstrap_servers=source_cluster.bootstrap_servers)
        while not stop.wait(0.002):
            producer.send(topic_name, b"value", partition=0).get(30)
        producer.close()

    thread = threading.Thread(target=write)
    thread.start()
    yield
    stop.set()
    thread.join(60)


@from_spark_4
@pytest.mark.usefixtures("load")
@pytest.mark.parametrize("available_now", [False, True])
def test_a_stream_begins_at_the_latest_offsets_of_a_busy_topic(
    source_cluster: KafkaCluster, topic_name: str, spark: SparkSession, tmp_path: Path, *, available_now: bool
) -> None:
    """Its first micro-batch fails, and has the same records when the query starts again."""
    seen: list[list[int]] = []
    fails = True

    def take(batch: DataFrame, number: int) -> None:
        seen.append(sorted(row.offset for row in batch.select("offset").collect()))
        if number == 0 and fails:
            raise ValueError("it fails once")

    reader = spark.readStream.format("sparkmirror").options(**options(source_cluster, topic_name))
    writer = reader.load().writeStream.option("checkpointLocation", str(tmp_path)).foreachBatch(take)
    if available_now:
        writer = writer.trigger(availableNow=True)
    for _ in range(2):
        query = writer.start()
        with pytest.raises(PySparkException, match="it fails once"):
            query.awaitTermination(120)
    fails = False
    query = writer.start()
    if available_now:
        assert query.awaitTermination(120)
    else:
        mp.wait_for(lambda: len(seen) > 5, 60, "some micro-batches")
        query.stop()
    assert query.exception() is None
    first, again, third, *others = seen
    assert first == again == third
    every = [offset for each in (third, *others) for offset in each]
    assert every
    assert every == list(range(every[0], every[-1] + 1))


@from_spark_4
def test_a_first_micro_batch_is_repeated_as_it_was(
    source_cluster: KafkaCluster, topic_name: str, spark: SparkSession, tmp_path: Path
) -> None:
    """Partitions and records that come meanwhile are in the next one."""
    servers = source_cluster.bootstrap_servers
    mp.create_topic(servers, topic_name, 1)
    mp.produce(servers, topic_name, 1, 10)
    stream = Stream(spark, options(source_cluster, topic_name, startingOffsets="earliest"), tmp_path)
    stream.run()
    for path in (tmp_path / "checkpoint" / "commits", tmp_path / "rows"):  # as if the driver had died before
        shutil.rmtree(path)
    admin = KafkaAdminClient(bootstrap_servers=servers)
    admin.create_partitions({topic_name: 2})
    admin.close()
    mp.wait_for(lambda: len(mp.end_offsets(servers, topic_name, 2)) == 2, 30, "the new partition")
    mp.produce(servers, topic_name, 2, 6)
    assert stream.run() == 2
    assert [(row[3], row[4]) for row in stream.rows()] == [*((0, n) for n in range(13)), *((1, n) for n in range(3))]
