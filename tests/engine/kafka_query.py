"""A streaming query of Spark's own Kafka source, in a process: `kafka_query.py SERVERS TOPIC CHECKPOINT OUT`.

With a fifth word, `on`, it runs until it is stopped (SIGTERM: `query.stop()`); else until all that is there is read.
The output is a file sink's, which is exactly once by itself.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from pyspark.sql import SparkSession

RECORDS_A_BATCH = 500


def main(servers: str, topic: str, checkpoint: str, out: str, until: str = "") -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", os.environ["SPARK_KAFKA_JARS"])
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "512m")
        .config("spark.sql.streaming.offsetLog.formatVersion", os.environ.get("OFFSET_LOG", "1"))
        .getOrCreate()
    )
    writer = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", RECORDS_A_BATCH)
        .option("kafka.isolation.level", "read_committed")
        .load()
        .selectExpr("cast(value as string) as value", "topic", "partition", "offset")
        .writeStream.format("json")
        .option("path", out)
        .option("checkpointLocation", checkpoint)
    )
    if not until:
        writer.trigger(availableNow=True).start().awaitTermination()
        return
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    query = writer.start()
    while query.isActive and not stopped:
        time.sleep(0.05)
    query.stop()


main(*sys.argv[1:])
