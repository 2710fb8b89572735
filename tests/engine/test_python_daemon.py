"""Spark's Python daemon with the pump in it: chosen where it is sure to start, and shared with its workers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sparkmirror.engine.pack import settings_for
from sparkmirror.engine.session import DAEMON, daemon_settings

MODULE = "sparkmirror.engine.python_daemon"
PUMP = "sparkmirror.pump.pump"
CLUSTER = {"spark.master": "spark://127.0.0.1:7077"}
PACK = settings_for(Path("/tmp/sparkmirror.tar.gz"))


@pytest.mark.parametrize(
    ("settings", "environment", "chosen"),
    [
        pytest.param({}, {}, True, id="local"),
        pytest.param({}, {"PYSPARK_PYTHON": sys.executable}, True, id="local-this-python"),
        pytest.param({}, {"PYSPARK_PYTHON": "/usr/bin/python3"}, False, id="local-another-python"),
        pytest.param({"spark.pyspark.python": "python3"}, {}, False, id="local-another-python-in-the-file"),
        pytest.param({}, {"PYSPARK_GATEWAY_PORT": "4711"}, False, id="spark-submit-with-its-own-files"),
        pytest.param(CLUSTER, {}, False, id="cluster"),
        pytest.param({**CLUSTER, **PACK}, {}, True, id="pack"),
        pytest.param({**CLUSTER, **PACK}, {"PYSPARK_GATEWAY_PORT": "4711"}, True, id="pack-by-spark-submit"),
        pytest.param({**CLUSTER, "spark.archives": PACK["spark.archives"]}, {}, False, id="pack-not-in-the-path"),
        pytest.param({**CLUSTER, **PACK, "spark.archives": "other.tgz#env"}, {}, False, id="another-archive"),
    ],
)
def test_the_daemon_is_chosen_where_it_finds_sparkmirror(
    settings: Mapping[str, str], environment: Mapping[str, str], chosen: bool
) -> None:
    assert daemon_settings(settings, environment) == ({DAEMON: MODULE} if chosen else {})


def test_a_daemon_may_fork() -> None:
    """Threads don't live on in a forked worker, and Spark reads the daemon's port from its output."""
    script = f"import os, sys, {MODULE}; print(len(os.listdir('/proc/self/task')), '{PUMP}' in sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={"OMP_NUM_THREADS": "1", "PYTHONPATH": ":".join(filter(None, sys.path))},  # as Spark's executors set it
    )
    assert ran.stdout == "1 True\n"


@pytest.mark.spark
def test_a_worker_is_forked_from_our_daemon(spark: SparkSession) -> None:
    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import gc
        import os

        for _ in batches:
            parent = Path(f"/proc/{os.getppid()}/cmdline").read_text()
            yield pa.RecordBatch.from_pylist([{"parent": parent, "frozen": gc.get_freeze_count()}])

    (row,) = spark.range(0, 1, 1, 1).mapInArrow(look, "parent string, frozen long").collect()
    assert MODULE in row.parent
    assert row.frozen > 10_000
