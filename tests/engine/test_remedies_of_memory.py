"""The remedy of a pump that holds much memory, followed on real clusters with batches of 80 MB."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaProducer
from lab import KafkaCluster
from pyspark.sql import SparkSession
from remedy_case import Case
from tests.support import mirror_process as mp
from tests.support.loaded_flow import running

from sparkmirror.look.doctor.findings import diagnose
from sparkmirror.mirror.engine.mirror import Mirror

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

SIZE, COUNT, LIMIT = 80_000_000, 3, 100_000_000
HEAP_MB = 1500
"""A broker has each such batch in its heap."""


@pytest.fixture
def case(tmp_path: Path, topic_name: str, spark: SparkSession) -> Iterator[Case]:
    """Clusters whose brokers have room for such batches."""
    source, target = (KafkaCluster(tmp_path / name, heap_mb=HEAP_MB) for name in ("source", "target"))
    with running(source), running(target):
        yield Case(source, target, topic_name, tmp_path, spark)


def write_batches(case: Case) -> None:
    """Of random bytes, which no codec makes smaller."""
    servers = case.source.bootstrap_servers
    with closing(
        KafkaProducer(bootstrap_servers=servers, max_request_size=LIMIT, request_timeout_ms=60_000)
    ) as producer:
        for _ in range(COUNT):
            producer.send(case.topic, os.urandom(SIZE), partition=0).get(60)


def seen_until(mirror: Mirror, done: Callable[[], bool]) -> list[str]:
    """Actions of the findings on memory, up to that moment."""
    actions: list[str] = []

    def is_done() -> bool:
        found = diagnose(mirror.observer.snapshot(newest=True))
        actions.extend(one.action for one in found if one.rule == "pump-memory")
        return done()

    mp.wait_for(is_done, 120, "all is copied")
    return actions


def test_batches_are_no_longer_recompressed(case: Case) -> None:
    """The same backlog once more: it passes through whole, and no pump holds too much."""
    mp.create_topic(case.source.bootstrap_servers, case.topic, 1, {"max.message.bytes": str(LIMIT)})
    write_batches(case)
    case.write(**{"tasks.max": "1", "B.producer.compression.type": "gzip"})
    with case.running() as mirror:
        actions = seen_until(mirror, lambda: case.copied() == COUNT)
    assert actions
    assert actions[0].startswith("Take compression.type out of the flow's producer settings")
    write_batches(case)
    case.write(**{"tasks.max": "1"})
    with case.running() as mirror:
        assert seen_until(mirror, lambda: case.copied() == 2 * COUNT) == []
