"""The data source next to Spark's own Kafka source: the same schema and rows, in a session that has its jars."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pyspark
import pytest
from lab import KafkaCluster
from test_every_batch import transactional
from tests.support import mirror_process as mp

from sparkmirror.demo.jars import class_path

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.full,
    pytest.mark.skipif(not pyspark.__version__.startswith("4."), reason="the connector is Scala 2.13's, for Spark 4"),
]

CONNECTOR = ("org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",)
PROGRAM = """
import json, sys
from pyspark.sql import SparkSession

options, cases = json.loads(sys.argv[1]), json.loads(sys.argv[2])
builder = SparkSession.builder.master("local[2]").config("spark.jars", sys.argv[3])
spark = builder.config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1").getOrCreate()
told = []
for case in cases:
    rows = {}
    for name in ("kafka", "sparkmirror"):
        frame = spark.read.format(name).options(**options, **case).load()
        found = frame.collect()
        rows[name] = sorted(map(repr, found)), frame.schema.simpleString()
    told.append([len(rows["kafka"][0]), rows["kafka"] == rows["sparkmirror"]])
print(json.dumps(told))
spark.stop()
"""


def test_rows_are_those_of_sparks_kafka_source(source_cluster: KafkaCluster, topic_name: str) -> None:
    servers = source_cluster.bootstrap_servers
    mp.create_topic(servers, topic_name, 2)
    for codec in ("lz4", "zstd", "gzip", "snappy", None):
        mp.produce(servers, topic_name, 2, 200, codec=codec)
    for _ in transactional(source_cluster, topic_name, 6):
        pass
    cases: list[dict[str, str]] = [
        {},
        {"includeHeaders": "true"},
        {"kafka.isolation.level": "read_committed", "minPartitions": "7"},
        {"startingOffsets": json.dumps({topic_name: {"0": 17, "1": -2}})},
        {"endingOffsets": json.dumps({topic_name: {"0": 317, "1": 5}}), "maxRecordsPerPartition": "50"},
        {"startingTimestamp": "1"},
    ]
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic_name}
    jars = class_path(CONNECTOR).replace(os.pathsep, ",")
    arguments = (json.dumps(options), json.dumps(cases), jars)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told == [[count, True] for count in (1030, 1030, 1020, 1013, 322, 1030)]
