"""Topics as tables: the data source next to Spark's own Kafka source, each in a Spark of its own.

A query reads a whole topic into Spark's sink `noop`, which does nothing. CPU is that of Spark and its Python workers,
without their start and a first small query.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from bench.accounting import Account
from bench.arena import Arena
from bench.memory import MemoryWatch
from bench.producing import Producer
from bench.tuning import Say
from bench.workloads import WORKLOADS
from sparkmirror.demo.jars import class_path
from sparkmirror.errors import SetupError

CONNECTOR = ("org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",)
"""Spark's own Kafka source: the newest release that is published whole."""
RECORDS = 10_000_000
_TOPIC, _WORKLOAD = "rows", WORKLOADS["json-lz4"]
_PRODUCING_S = 3_600
_WARM = 2_000
"""Records of each partition in the first query."""
_QUERIES = {
    "all columns": "",
    "key and offset": "key binary, offset long",
}
_SOURCES = ("kafka", "sparkmirror")
_PROGRAM = """
import json, sys, time
from pyspark.sql import SparkSession

name, options, warm, columns, jars = json.loads(sys.argv[1])
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.jars", jars)
spark = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.memory", "1g").getOrCreate()

def read(**more):
    reader = spark.read.format(name).options(**options, **more)
    if columns and name == "sparkmirror":
        frame = reader.schema(columns).load()
    else:
        frame = reader.load()
        if columns:
            frame = frame.select(*(column.split()[0] for column in columns.split(", ")))
    began = time.monotonic()
    frame.write.format("noop").mode("overwrite").save()
    return time.monotonic() - began

read(endingOffsets=warm)
print("warm", flush=True)
sys.stdin.readline()
print(read(), flush=True)
sys.stdin.readline()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One source's query over the topic."""

    query: str
    source: str
    records: int
    value_bytes: int
    wall_s: float
    cpu_s: float
    peak_memory_bytes: int
    """Sum of the processes' proportional set sizes."""


def measure_rows(arena: Arena, records: int, partitions: int, say: Say) -> list[Reading]:
    """Fill a topic and read it by each source. Raises `ProducingFailed` and `SetupError`."""
    jars = class_path(CONNECTOR).replace(os.pathsep, ",")
    arena.source.create_topic(_TOPIC, partitions)
    say(f"writing {records:,} records")
    producer = Producer(arena.directory, _WORKLOAD, arena.source.servers)
    producer.start(_TOPIC, records).wait(_PRODUCING_S)
    ends = arena.source.end_offsets(_TOPIC)
    lines = _WORKLOAD.lines()
    size = sum(ends.values()) * sum(map(len, lines)) // len(lines)
    readings: list[Reading] = []
    for query, columns in _QUERIES.items():
        for source in _SOURCES:
            say(f"reading {query} by {source}")
            options = {"kafka.bootstrap.servers": arena.source.servers, "subscribe": _TOPIC}
            warm = json.dumps({_TOPIC: {str(number): min(end, _WARM) for number, end in ends.items()}})
            asked = json.dumps([source, options, warm, columns, jars])
            arena.settle()
            account = arena.accounting.open(f"rows-{len(readings)}")
            try:
                wall_s, cpu_s, peak = _measure(account, asked)
            finally:
                account.close()
            readings.append(
                Reading(
                    query=query,
                    source=source,
                    records=sum(ends.values()),
                    value_bytes=size,
                    wall_s=wall_s,
                    cpu_s=cpu_s,
                    peak_memory_bytes=peak,
                )
            )
    return readings


def _measure(account: Account, asked: str) -> tuple[float, float, int]:
    """Wall seconds, CPU seconds and peak memory of a query."""
    command = account.command([sys.executable, "-c", _PROGRAM, asked])
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    ) as child:
        assert child.stdin is not None  # noqa: S101 - both were asked for
        assert child.stdout is not None  # noqa: S101
        if child.stdout.readline().strip() != "warm":
            raise SetupError("Spark ended before the first query")
        with MemoryWatch(account) as memory:
            before = account.cpu_s()
            child.stdin.write("\n")
            child.stdin.flush()
            told = child.stdout.readline()
            cpu_s = account.cpu_s() - before
        if not told.strip():
            raise SetupError("Spark ended in the query")
        child.stdin.write("\n")
        child.stdin.close()
        child.wait()
    return float(told), cpu_s, memory.peak_bytes


def markdown(readings: Sequence[Reading]) -> str:
    """A table with a line for each query; left of a slash is Spark's source."""
    lines = [
        "| | records, GB of values | wall, s | CPU s | CPU s/GB | times | peak memory, MB |",
        "|---|---|---|---|---|---|---|",
    ]
    for query in _QUERIES:
        theirs, ours = (
            next(each for each in readings if (each.query, each.source) == (query, name)) for name in _SOURCES
        )
        gigabytes = theirs.value_bytes / 1e9
        lines.append(
            f"| {query} | {theirs.records:,}, {gigabytes:.2f} | {theirs.wall_s:.1f} / {ours.wall_s:.1f} "
            f"| {theirs.cpu_s:.1f} / {ours.cpu_s:.1f} | {theirs.cpu_s / gigabytes:.2f} / {ours.cpu_s / gigabytes:.2f} "
            f"| {ours.cpu_s / theirs.cpu_s:.2f} | {theirs.peak_memory_bytes / 1e6:,.0f} / "
            f"{ours.peak_memory_bytes / 1e6:,.0f} |"
        )
    return "\n".join(lines) + "\n"
