"""A streaming query moves to the target mid-stream, under load: no record is lost, none is read twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest
from kafka import KafkaProducer
from lab import KafkaCluster
from pyspark.sql import SparkSession
from tests.support import mirror_process as mp
from tests.support.mirror_thread import run_mirror

import sparkmirror as sm
from sparkmirror.demo.jars import class_path
from sparkmirror.errors import NotTranslated

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.full,
    pytest.mark.skipif(not pyspark.__version__.startswith("4."), reason="the connector is Scala 2.13's, for Spark 4"),
]

CONNECTOR = ("org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",)
"""Spark's own Kafka source: the newest release that is published whole."""
JOB = Path(__file__).with_name("kafka_query.py")


class Load:
    """Transactions on two partitions, every fourth aborted, until it is stopped."""

    def __init__(self, cluster: KafkaCluster, topic: str) -> None:
        self.committed: list[str] = []
        self._stop = threading.Event()
        self._producer = KafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers, transactional_id=f"{topic}-load", enable_idempotence=True
        )
        self._topic = topic
        self._thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        self._producer.init_transactions()
        number = 0
        while not self._stop.is_set():
            ids = [f"{number}-{index}" for index in range(5)]
            self._producer.begin_transaction()
            for index, name in enumerate(ids):
                self._producer.send(self._topic, value=name.encode(), partition=index % 2)
            if number % 4 == 3:
                self._producer.flush()
                self._producer.abort_transaction()
            else:
                self._producer.commit_transaction()
                self.committed += ids
            number += 1
            time.sleep(0.05)
        self._producer.close()

    @contextmanager
    def running(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join(60)


def query(servers: str, topic: str, checkpoint: Path, out: Path, *more: str, log: str = "1") -> subprocess.Popen[bytes]:
    jars = ",".join(class_path(CONNECTOR).split(os.pathsep))
    return subprocess.Popen(
        [sys.executable, str(JOB), servers, topic, str(checkpoint), str(out), *more],
        env={**os.environ, "SPARK_KAFKA_JARS": jars, "OFFSET_LOG": log},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=(checkpoint.parent / "query.log").open("ab"),
    )


def run_to_the_end(servers: str, topic: str, checkpoint: Path, out: Path, log: str) -> None:
    process = query(servers, topic, checkpoint, out, log=log)
    try:
        assert process.wait(180) == 0, (checkpoint.parent / "query.log").read_text()[-3000:]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("seed", range(10))
def test_each_record_is_read_once(
    seed: int,
    spark: SparkSession,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
) -> None:
    """Stopped or killed after some batches; the log of offsets is in either format."""
    source, target = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    mp.create_topic(source, topic_name, 2)
    file = mp.write_properties(
        tmp_path / "mm2.properties", source, target, topic_name, {"A.consumer.isolation.level": "read_committed"}
    )
    before, after, out = tmp_path / "ck", tmp_path / "ck-at-b", tmp_path / "out"
    log = str(1 + seed % 2)
    load = Load(source_cluster, topic_name)
    with run_mirror(file, spark):
        with load.running():
            process = query(source, topic_name, before, out, "on", log=log)
            commits = before / "commits"
            mp.wait_for(lambda: commits.exists() and len(list(commits.glob("[0-9]*"))) > 2 + seed, 120, "some batches")
            if seed % 3:
                process.terminate()
                process.wait(60)
            else:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(60)

            def is_rewritten() -> bool:
                try:
                    sm.rewrite_checkpoint(before, after, file)
                except NotTranslated:
                    return False
                return True

            mp.wait_for(is_rewritten, 60, "all that the query planned is copied")
            run_to_the_end(target, f"A.{topic_name}", after, out, log)
        mp.wait_for(lambda: copied(target, topic_name) == len(load.committed), 60, "all is copied")
        run_to_the_end(target, f"A.{topic_name}", after, out, log)
    rows = spark.read.json(str(out)).collect()
    assert Counter(row.value for row in rows) == Counter(load.committed)
    topics = Counter(row.topic for row in rows)
    assert set(topics) == {topic_name, f"A.{topic_name}"}, "it read from both"


def copied(target: str, topic: str) -> int:
    return sum(mp.end_offsets(target, f"A.{topic}", 2))
