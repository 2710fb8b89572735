"""Which queries keep the places of records: Spark's own plans tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, concat, explode, lit, split

from sparkmirror.mirror.engine import session
from sparkmirror.queries.kept_places import keeps_places

pytestmark = pytest.mark.spark

ROWS = "key binary, value binary, topic string, partition int, offset long"


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    made = session.open_session({}, tasks=1)
    yield made
    made.stop()


@pytest.fixture
def records(spark: SparkSession) -> DataFrame:
    rows = spark.createDataFrame([(b"k", b"v", "t", 0, 5)], ROWS)
    made = rows.withColumn("topic", concat(lit("A."), col("topic")))
    made.createOrReplaceTempView("records")
    return made


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM records",
        "SELECT topic, partition, offset, reverse(value) AS value FROM records WHERE offset % 2 = 1",
        "SELECT r.offset, r.topic, r.partition, upper(r.value) AS value FROM records AS r WHERE r.value IS NOT NULL",
    ],
)
def test_selecting_and_filtering_keeps_places(spark: SparkSession, records: DataFrame, sql: str) -> None:
    assert keeps_places(records, spark.sql(sql))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT topic, pmod(hash(key), 4) AS partition, offset, value FROM records",
        "SELECT topic, partition, offset + 1 AS offset, value FROM records",
        "SELECT 'other' AS topic, partition, offset, value FROM records",
        "SELECT topic, partition, value FROM records",
        "WITH some AS (SELECT * FROM records) SELECT topic, partition, offset, value FROM some",
        "SELECT topic, partition, offset, explode(split(cast(value AS string), ',')) AS value FROM records",
        "SELECT topic, partition, offset, value FROM records UNION ALL SELECT topic, 1, offset, value FROM records",
        "SELECT r.topic, r.partition, r.offset, r.value FROM records r JOIN records o ON r.key = o.key",
        "SELECT topic, partition, max(offset) AS offset, max(value) AS value FROM records GROUP BY topic, partition",
        "SELECT DISTINCT topic, partition, offset, value FROM records",
        "SELECT topic, partition, offset, value FROM records LIMIT 1",
    ],
)
def test_whatever_else_a_query_does_keeps_none(spark: SparkSession, records: DataFrame, sql: str) -> None:
    assert not keeps_places(records, spark.sql(sql))


@pytest.mark.parametrize(
    ("change", "keeps"),
    [
        (lambda rows: rows.where("key IS NOT NULL").withColumn("value", concat(col("value"), lit("x"))), True),
        (lambda rows: rows.drop("key"), True),
        (lambda rows: rows.withColumn("value", explode(split(col("value").cast("string"), ","))), False),
        (lambda rows: rows.withColumn("offset", col("offset")), False),
        (lambda rows: rows.withColumn("offset", col("offset").cast("int")), False),
        (lambda rows: rows.mapInArrow(lambda batches: batches, rows.schema), False),
    ],
)
def test_functions_of_dataframes(records: DataFrame, change: Callable[[DataFrame], DataFrame], keeps: bool) -> None:
    assert keeps_places(records, change(records)) is keeps
