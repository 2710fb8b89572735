"""Executors as pods of a node: a backlog is copied by one of them, then by three, and each record is there once.

Each executor may use a fifth of a core, so that three are more than one on a machine of two cores.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from tests.deploy.node.kube_node import KubeNode, is_ready, wait_for
from tests.deploy.node.node_brokers import Brokers
from tests.deploy.node.node_release import Release, metrics

pytestmark = pytest.mark.full

NAMESPACE = "executors"
TOPIC = "parcels"
PARTITIONS = 3
RECORDS, RECORD_BYTES = 75_000, 20_000
WINDOW_S = 20.0
STARTED_S = 300.0
"""An executor is a JVM and a Python process, and has a fifth of a core to start them."""
EXECUTORS = "spark-role=executor"
CPU = {"spark.kubernetes.executor.limit.cores": "200m", "spark.kubernetes.executor.request.cores": "100m"}


@pytest.fixture
def release(
    node: KubeNode, clusters: Brokers, image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Release]:
    clusters.create_topic(TOPIC, PARTITIONS)
    began = time.monotonic()
    clusters.fill(TOPIC, PARTITIONS, RECORDS, RECORD_BYTES)
    print(f"executors: {RECORDS * RECORD_BYTES / 1e9:.1f} GB written in {time.monotonic() - began:.1f} s")
    # Compressed again, and by the dearest codec, a record costs executors much more CPU than brokers and network
    lines = "backup.producer.compression.type = gzip\n"
    with Release(node, NAMESPACE, TOPIC, tmp_path_factory.mktemp("executors"), image, PARTITIONS, lines) as made:
        yield made


def test_three_executors_copy_more_than_one(release: Release, clusters: Brokers) -> None:
    release.set(replicaCount=1, spark={"executors": 1, "settings": CPU})
    wait_for_tasks(release, 1)
    wait_until_each_has_moved(clusters)
    alone = rate(clusters)
    began = time.monotonic()
    release.set(spark={"executors": 3})
    wait_for_tasks(release, 3)
    wait_until_each_has_moved(clusters)
    print(f"executors: three work {time.monotonic() - began:.1f} s after the upgrade was begun")
    together = rate(clusters)
    print(f"executors: one copied {alone:.1f} MB/s, three {together:.1f} MB/s: {together / alone:.1f} times as much")
    clusters.wait_until_copied(TOPIC, PARTITIONS)
    assert clusters.assert_copied(TOPIC) == RECORDS
    assert together > 1.5 * alone


def wait_for_tasks(release: Release, count: int) -> None:
    """Until so many executors are ready, and so many tasks of the newest pod are at work."""

    def all_work() -> bool:
        executors = [pod for pod in release.node.pods(NAMESPACE, EXECUTORS) if is_ready(pod)]
        return len(executors) == count and max(map(tasks, addresses(release)), default=0) == count

    def tasks(address: str) -> int:
        read = re.findall(r"^sparkmirror_spark_tasks(?:\{.*\})? (\d+)", metrics(release.node, address), re.MULTILINE)
        return int(read[0]) if read else 0

    wait_for(all_work, STARTED_S, f"{count} executors work")


def wait_until_each_has_moved(clusters: Brokers) -> None:
    before = clusters.copied_of_each(TOPIC, PARTITIONS)

    def all_have() -> bool:
        now = clusters.copied_of_each(TOPIC, PARTITIONS)
        return all(end > old for end, old in zip(now, before, strict=True))

    wait_for(all_have, STARTED_S, "each partition is copied on")


def addresses(release: Release) -> list[str]:
    return [pod["status"]["podIP"] for pod in release.node.pods(NAMESPACE, "app.kubernetes.io/component=mirror")]


def rate(clusters: Brokers) -> float:
    """10^6 bytes of records each second, over a window in which the backlog does not end."""
    before, began = clusters.copied(TOPIC, PARTITIONS), time.monotonic()
    time.sleep(WINDOW_S)
    records = clusters.copied(TOPIC, PARTITIONS) - before
    seconds = time.monotonic() - began
    assert records > 0
    assert before + records < RECORDS, "the backlog ended: it is too short for this machine"
    return records * RECORD_BYTES / seconds / 1e6
