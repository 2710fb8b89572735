"""Records read, and written once, on the oldest PySpark of the range, whatever this Python has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pyspark
import pytest
from lab import KafkaCluster
from test_exactly_once_sink import PARTITIONS, records
from tests.support import mirror_process as mp

import pyspark_sparkmirror
from sparkmirror.demo.cache import cache_root, locked

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.skipif(find_spec("distutils") is None, reason="PySpark 3.5 imports distutils"),
]

VERSION = "3.5"
INSTALL_S, PROGRAM_S = 600, 300
SRC = Path(pyspark_sparkmirror.__file__).parent
PROGRAM = """
import json, sys
import pyspark, pyspark_sparkmirror
import sparkmirror as sm
from pyspark.sql import SparkSession
from sparkmirror.source.frames import read_records

servers, topic, copy, directory = sys.argv[1:]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.memory", "512m")
spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "includeHeaders": "true"}
rows = read_records(spark, options).select("key", "value", "headers")
for _ in range(2):
    placed = sm.append(rows, servers, copy, app_id=copy, version=1).collect()
stream = spark.readStream.format("text").load(directory + "/in")
writer = stream.writeStream.foreachBatch(sm.Sink(servers, topic=copy))
query = writer.option("checkpointLocation", directory + "/ck").trigger(availableNow=True).start()
query.awaitTermination()
found = [pyspark.__version__, hasattr(pyspark_sparkmirror, "DefaultSource")]
print(json.dumps([*found, read_records(spark, options, ["offset"]).count(), sum(row.earlier for row in placed)]))
spark.stop()
"""


def installed() -> str:
    """The directory that has PySpark alone, made in the cache once; its dependencies are this Python's."""
    if pyspark.__version__.startswith(f"{VERSION}."):
        return str(Path(pyspark.__path__[0]).parent)
    directory = cache_root() / "sparks" / f"{VERSION}-alone"
    stamp = directory / "sparkmirror-stamp"
    with locked(directory):
        if not stamp.exists():
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--target", str(directory)]
            subprocess.run([*command, f"pyspark=={VERSION}.*"], check=True, timeout=INSTALL_S, stdin=subprocess.DEVNULL)
            stamp.touch()
    return str(directory)


def test_records_are_read_and_written_once(target_cluster: KafkaCluster, topic_name: str, tmp_path: Path) -> None:
    servers, copy = target_cluster.bootstrap_servers, f"{topic_name}-copy"
    for name in (topic_name, copy):
        mp.create_topic(servers, name, PARTITIONS)
    mp.produce(servers, topic_name, PARTITIONS, 300)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "lines.txt").write_text("".join(f"line {number}\n" for number in range(40)))
    path = os.pathsep.join([installed(), str(SRC)])
    own = {key: value for key, value in os.environ.items() if not key.startswith("SPARK_")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, servers, topic_name, copy, str(tmp_path)],
        env=own | {"PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=PROGRAM_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    version, has_source, count, earlier = json.loads(done.stdout.splitlines()[-1])
    assert version.startswith(f"{VERSION}.")
    assert (has_source, count, earlier) == (False, 300, 300)
    wanted = Counter((record.key, record.value, str(record.headers)) for record in records(target_cluster, topic_name))
    wanted.update((None, f"line {number}".encode(), "[]") for number in range(40))
    seen = Counter((record.key, record.value, str(record.headers)) for record in records(target_cluster, copy))
    assert seen == wanted
