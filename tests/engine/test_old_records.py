"""Records older than the target keeps producer state: no state guards them, the quiet rule does (R5).

The target checks for expired state every second, 600 times as often as by default.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import mirror_process as mp
import pytest
from test_kills import PARTITIONS, Progress, assert_identical, finish, run_killed

from sparkmirror.demo import KafkaCluster

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

TWO_DAYS_MS = 2 * 86_400_000


@pytest.fixture(scope="module")
def forgetful_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    cluster = KafkaCluster(
        tmp_path_factory.mktemp("forgetful", numbered=False),
        properties={"producer.id.expiration.check.interval.ms": "1000"},
    )
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.cleanup(keep_logs=True)


def test_kills(source_cluster: KafkaCluster, forgetful_target: KafkaCluster, topic_name: str, tmp_path: Path) -> None:
    run_killed(source_cluster, forgetful_target, topic_name, tmp_path, kills=6, age_ms=TWO_DAYS_MS)


def test_overlapping_takeovers(
    source_cluster: KafkaCluster, forgetful_target: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    """The successor starts while the predecessor still writes, with no lease between them."""
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, PARTITIONS)
    properties = mp.write_properties(
        tmp_path / "mm2.properties", source_cluster.bootstrap_servers, forgetful_target.bootstrap_servers, topic_name
    )
    progress = Progress(forgetful_target, topic_name)
    log = tmp_path / "mirror.log"
    with mp.load(source_cluster.bootstrap_servers, topic_name, PARTITIONS, age_ms=TWO_DAYS_MS):
        present = mp.MirrorProcess(properties, log, "--no-lease")
        try:
            for _ in range(6):
                progress.wait()
                successor = mp.MirrorProcess(properties, log, "--no-lease")
                mp.wait_for(lambda: bool(successor.workers()), 40, "the successor's pumps")  # noqa: B023
                time.sleep(2)
                present.kill_all()
                present = successor
        finally:
            present.kill_all()
    finish(properties, log)
    assert_identical(source_cluster, forgetful_target, topic_name)
