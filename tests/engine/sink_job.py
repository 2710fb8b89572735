"""A streaming query into Kafka, in a process: `sink_job.py FACE SERVERS TOPIC FILES CHECKPOINT [KEY=VALUE ...]`.

FACE is `each` (`sm.Sink`), `format` (the data source) or `spark` (Spark's own Kafka sink, whose jars a setting names).
Each line of the files becomes a record; lines that begin with `b` go to TOPIC-b. The lines come twice, and a stateful
operator drops the second. Further words are Spark's settings. It ends when all files are read.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

import sparkmirror as sm

HEADERS = "array<struct<key: string, value: binary>>"
PARTITIONS = 4
PAD = 16 << 10
"""Bytes next to each row, so that five fill a Python worker's buffer, and are in the JVM before the next ones."""


def slow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows by fives, a moment apart: a task is killed in the middle of its rows."""
    for batch in batches:
        for first in range(0, batch.num_rows, 5):
            time.sleep(0.25)
            part = batch.slice(first, 5)
            pad = pa.array([b"-" * PAD] * part.num_rows, pa.binary())
            yield pa.RecordBatch.from_arrays([*part.columns, pad], names=[*part.schema.names, "pad"])


def slowly(frame: DataFrame) -> DataFrame:
    return frame.mapInArrow(slow, frame.limit(0).schema.add("pad", "binary")).drop("pad")


def writer_of(face: str, rows: DataFrame, servers: str) -> DataStreamWriter:
    if face == "each":
        sink = sm.Sink(servers)
        return rows.writeStream.foreachBatch(lambda frame, number: sink(slowly(frame.repartition(2)), number))
    if face == "format":
        gathered = rows.withColumn("partition", rows.number % PARTITIONS).repartition(2, "topic", "partition")
        return slowly(gathered).writeStream.format("sparkmirror").option("kafka.bootstrap.servers", servers)
    return slowly(rows.repartition(2)).writeStream.format("kafka").option("kafka.bootstrap.servers", servers)


def main(face: str, servers: str, topic: str, files: str, checkpoint: str, *settings: str) -> None:
    builder = SparkSession.builder.config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
    defaults = {
        "spark.master": "local[2,4]",
        "spark.driver.memory": "512m",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50",
    }
    for key, value in (defaults | dict(setting.split("=", 1) for setting in settings)).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    rows = (
        spark.readStream.format("text")
        .option("maxFilesPerTrigger", 1)
        .load(files)
        .dropDuplicates(["value"])
        .selectExpr(
            f"concat('{topic}', if(value like 'b%', '-b', '')) as topic",
            "value as key",
            "value",
            f"cast(array(struct('n', cast(value as binary))) as {HEADERS}) as headers",
            "cast(substring_index(value, '-', -1) as int) as number",
        )
    )
    writer = writer_of(face, rows, servers).option("checkpointLocation", checkpoint).trigger(availableNow=True)
    writer.start().awaitTermination()


main(*sys.argv[1:])
