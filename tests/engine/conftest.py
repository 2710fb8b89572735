"""The one Spark session of the run, and a mirror that tests start and stop in this process."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import mirror_process as mp
import pytest
from loaded_flow import LoadedFlow
from mirror_thread import run_mirror
from pyspark.sql import SparkSession

from sparkmirror.demo import KafkaCluster
from sparkmirror.demo.spark_cluster import standalone_cluster
from sparkmirror.engine.mirror import Mirror
from sparkmirror.engine.session import open_session

StartMirror = Callable[[str, Mapping[str, str]], AbstractContextManager[Mirror]]


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session with slots for the tests' flows: local, or with `--standalone` on a real cluster."""
    with contextlib.ExitStack() as stack:
        settings: Mapping[str, str] = {}
        if request.config.getoption("--standalone"):
            directory = tmp_path_factory.mktemp("spark", numbered=False)
            settings = stack.enter_context(standalone_cluster(directory))
        session = open_session(settings, tasks=4)
        yield session
        session.stop()


@pytest.fixture
def flow(source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path) -> LoadedFlow:
    """A flow between the session's clusters."""
    return LoadedFlow(source_cluster, target_cluster, topic_name, tmp_path)


@pytest.fixture
def start_mirror(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> StartMirror:
    """Run a flow A->B of some topics between the pair of clusters."""

    def running(topics: str, settings: Mapping[str, str]) -> AbstractContextManager[Mirror]:
        path = mp.write_properties(
            tmp_path / "mm2.properties",
            source_cluster.bootstrap_servers,
            target_cluster.bootstrap_servers,
            topics,
            settings,
        )
        return run_mirror(path, spark)

    return running
