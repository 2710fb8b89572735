"""Records older than the target keeps producer state: no state guards them, the quiet rule does (R5).

The target checks for expired state every second, 600 times as often as by default.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import KafkaCluster
from test_kills import run_killed
from tests.support import mirror_process as mp
from tests.support.loaded_flow import LoadedFlow, running

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

TWO_DAYS_MS = 2 * 86_400_000


@pytest.fixture(scope="module")
def forgetful_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    cluster = KafkaCluster(
        tmp_path_factory.mktemp("forgetful", numbered=False),
        properties={"producer.id.expiration.check.interval.ms": "1000"},
    )
    with running(cluster):
        yield cluster


@pytest.fixture
def flow(source_cluster: KafkaCluster, forgetful_target: KafkaCluster, topic_name: str, tmp_path: Path) -> LoadedFlow:
    return LoadedFlow(source_cluster, forgetful_target, topic_name, tmp_path)


def test_kills(flow: LoadedFlow) -> None:
    run_killed(flow, kills=6, age_ms=TWO_DAYS_MS)


def run_overlapping(flow: LoadedFlow) -> None:
    """Under load each successor starts while its predecessor still writes, with no lease between them."""
    with flow.load(age_ms=TWO_DAYS_MS):
        present = flow.start("--no-lease")
        try:
            for _ in range(6):
                flow.wait_for_progress()
                successor = flow.start("--no-lease")
                mp.wait_for(lambda: bool(successor.workers()), 180, "the successor's pumps")  # noqa: B023
                time.sleep(2)
                present.kill_all()
                present = successor
        finally:
            present.kill_all()


def test_overlapping_takeovers(flow: LoadedFlow) -> None:
    run_overlapping(flow)
    flow.finish()
