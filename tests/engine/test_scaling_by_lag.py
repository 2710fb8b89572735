"""A lag brings workers, and the throughput follows: the chart's own query, asked of a real Prometheus.

KEDA asks Prometheus so, and the rule of Kubernetes' autoscaler, which is played here, turns the answer into a number.
"""

from __future__ import annotations

import json
import math
import os
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from kafka import KafkaProducer
from test_scaling import cluster, tasks, wait_for_tasks
from tests.deploy.charts import NAMESPACE, rendered
from tests.support import mirror_process as mp
from tests.support.loaded_flow import PARTITIONS, LoadedFlow
from tests.support.prometheus_programs import fetched

from sparkmirror.demo.ports import free_ports
from sparkmirror.demo.spawn import spawn

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full, pytest.mark.alone]

RECORDS, RECORD_BYTES = 100_000, 1_000
WINDOW_S = 15.0
TOLERANCE = 0.1
"""Of Kubernetes' autoscaler: a metric that is so near to its target changes nothing."""
TWO_LETTERS = bytes(ord("a") + (number & 1) for number in range(256))
"""Makes random text of two letters: gzip's level 9 takes two CPU seconds or more for a megabyte.

So one worker has minutes to do.
"""


@dataclass(frozen=True)
class Scaling:
    """The lag's trigger of the chart's ScaledObject, and its bounds."""

    query: str
    target: float
    least: int
    most: int

    def wanted(self, answer: float, now: int) -> int:
        """Workers that Kubernetes' autoscaler asks for: as many times the present ones as the metric is its target."""
        ratio = answer / self.target
        asked = now if abs(ratio - 1) <= TOLERANCE else math.ceil(now * ratio)
        return min(max(asked, self.least), self.most)


@pytest.fixture(scope="module")
def scaling() -> Scaling:
    """As Helm makes it."""
    made = rendered("--set", "workers.max=3,workers.secret=spark")
    (scaled,) = (item for item in made if item["kind"] == "ScaledObject")
    (lag,) = (one for one in scaled["spec"]["triggers"] if one["type"] == "prometheus")
    assert lag["metricType"] == "Value"
    least, most = scaled["spec"]["minReplicaCount"], scaled["spec"]["maxReplicaCount"]
    return Scaling(lag["metadata"]["query"], float(lag["metadata"]["threshold"]), least, most)


@contextmanager
def prometheus(directory: Path, metrics_port: int) -> Iterator[str]:
    """One that scrapes the mirror each second, with the labels that both kinds of monitors give; yields its address."""
    job = {
        "job_name": "ours-sparkmirror",
        "static_configs": [
            {
                "targets": [f"127.0.0.1:{metrics_port}"],
                "labels": {"namespace": NAMESPACE, "pod": "ours-sparkmirror-7d4b9c6f5d-x2k8p"},
            }
        ],
    }
    file = directory / "prometheus.yml"
    file.write_text(yaml.safe_dump({"global": {"scrape_interval": "1s"}, "scrape_configs": [job]}))
    (port,) = free_ports(1)
    told = [f"--config.file={file}", f"--storage.tsdb.path={directory / 'tsdb'}"]
    process = spawn(
        [fetched("prometheus"), *told, f"--web.listen-address=127.0.0.1:{port}"], output=directory / "prometheus.log"
    )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def answer(address: str, query: str) -> float | None:
    """The number that the query has now; None without any, or if Prometheus does not answer yet."""
    try:
        url = f"{address}/api/v1/query?query={urllib.parse.quote(query)}"
        with urllib.request.urlopen(url, timeout=10) as read:  # noqa: S310 - http
            result = json.load(read)["data"]["result"]
    except OSError:
        return None
    return float(result[0]["value"][1]) if result else None


def fill(flow: LoadedFlow) -> None:
    producer = KafkaProducer(bootstrap_servers=flow.source.bootstrap_servers, compression_type="lz4", linger_ms=50)
    for number in range(RECORDS):
        value = os.urandom(RECORD_BYTES).translate(TWO_LETTERS)
        producer.send(flow.topic, value=value, partition=number % PARTITIONS)
    producer.flush()
    producer.close()


def copied(flow: LoadedFlow) -> int:
    return sum(mp.end_offsets(flow.target.direct_servers, f"A.{flow.topic}", PARTITIONS))


def rate(flow: LoadedFlow) -> float:
    """Records copied each second, over a window in which the backlog does not end."""
    before, began = copied(flow), time.monotonic()
    time.sleep(WINDOW_S)
    after = copied(flow)
    assert before < after < RECORDS, f"{before}, then {after} of {RECORDS}"
    return (after - before) / (time.monotonic() - began)


def test_a_lag_brings_workers_and_the_throughput_follows(flow: LoadedFlow, tmp_path: Path, scaling: Scaling) -> None:
    fill(flow)
    (page,) = free_ports(1)
    dear = {"B.producer.compression.type": "gzip", "B.producer.compression.gzip.level": "9"}
    with cluster(tmp_path) as spark, prometheus(tmp_path, page) as address:

        def now() -> float | None:
            return answer(address, scaling.query)

        assert now() is None, "nobody works: the number of workers stays"
        settings = {**spark.settings, **dear}
        properties = flow.write_properties("scaled.properties", flow.target.bootstrap_servers, settings)
        spark.join()
        with flow.start("--metrics-port", str(page), properties=properties) as mirror:
            mp.wait_for(lambda: tasks(mirror.log) == 1, 180, "one task")
            mp.wait_for(lambda: copied(flow) > 0, 180, "the first records")
            alone = rate(flow)
            mp.wait_for(lambda: (now() or 0.0) > 0, 60, "the query has an answer")
            lag_s = now()
            assert lag_s is not None
            wanted = scaling.wanted(lag_s, 1)
            assert wanted > 1, f"{lag_s} s to copy all"
            for _ in range(wanted - 1):
                spark.join()
            wait_for_tasks(flow, mirror.log, wanted)
            together = rate(flow)
            print(
                f"scaling: {lag_s:.0f} s to copy all asked for {wanted} workers; one copied {alone:.0f} records/s,"
                f" {wanted} copied {together:.0f}: {together / alone:.1f} times as many"
            )
            assert together > alone
            mp.wait_for(lambda: copied(flow) == RECORDS, 600, "all is copied")
            mp.wait_for(lambda: now() == 0, 60, "no lag")
            assert scaling.wanted(0.0, wanted) == scaling.least
            assert mirror.terminate() == 0
    flow.finish()
