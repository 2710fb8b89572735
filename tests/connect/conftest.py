"""A worker over the session's brokers and Spark, and one flow's topics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import pytest
from lab import KafkaCluster
from pyspark.sql import SparkSession
from tests.support.connectors import RunningWorker, StartWorker

from sparkmirror.mirror.engine.session import open_session


@pytest.fixture(scope="package")
def spark() -> Iterator[SparkSession]:
    """A session with slots for the flows of one worker."""
    theirs = SparkSession.getActiveSession()  # the engine's tests may have one
    session = theirs or open_session({}, tasks=4)
    yield session
    if theirs is None:
        session.stop()


@pytest.fixture
def start_worker(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, spark: SparkSession
) -> Iterator[StartWorker]:
    """Start workers that end with the test."""
    with ExitStack() as stack:

        def start(settings: Mapping[str, str] | None = None, *, name: str = "worker:8083") -> RunningWorker:
            worker = RunningWorker(source_cluster, target_cluster, spark, settings, name)
            stack.callback(worker.close)
            return worker

        yield start
