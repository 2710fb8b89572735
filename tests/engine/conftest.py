"""The one Spark session of the run, and a mirror that tests start and stop in this process."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from lab import KafkaCluster
from lab.spark_cluster import standalone_cluster
from pyspark.sql import SparkSession
from remedy_case import Case
from tests.support import mirror_process as mp
from tests.support.in_process import sparkmirror
from tests.support.loaded_flow import LoadedFlow
from tests.support.mirror_thread import run_mirror

from sparkmirror.frames import mirror_watch
from sparkmirror.mirror.engine import lag_monitor, session
from sparkmirror.mirror.engine.mirror import Mirror
from sparkmirror.mirror.sync import topics

StartMirror = Callable[[str, Mapping[str, str]], AbstractContextManager[Mirror]]
VerifyVerb = Callable[..., CompletedProcess[str]]


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session with slots for the tests' flows: local, or with `--standalone` on a real cluster."""
    with contextlib.ExitStack() as stack:
        settings: Mapping[str, str] = {}
        if request.config.getoption("--standalone"):
            directory = tmp_path_factory.mktemp("spark", numbered=False)
            settings = stack.enter_context(standalone_cluster(directory))
        spark = session.open_session(settings, tasks=4)
        yield spark
        spark.stop()


@pytest.fixture(autouse=True)
def _looks_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What brokers of tests were asked for is soon there, and nothing is copied while records are counted."""
    monkeypatch.setattr(import_module("sparkmirror.frames.verify"), "DUE_PAUSE_S", 0.2)
    monkeypatch.setattr(mirror_watch, "SILENT_S", 0.2)
    monkeypatch.setattr(topics, "LED_PAUSE_S", 0.02)


@pytest.fixture
def flow(source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path) -> LoadedFlow:
    """A flow between the session's clusters."""
    return LoadedFlow(source_cluster, target_cluster, topic_name, tmp_path)


@pytest.fixture
def remedy_case(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> Case:
    """A file whose mirror looks at lags each second."""
    monkeypatch.setattr(lag_monitor, "LOOK_S", 1.0)
    return Case(source_cluster, target_cluster, topic_name, tmp_path, spark)


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


@pytest.fixture
def verify_verb(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> VerifyVerb:
    """Run `sparkmirror verify` in this process, on the run's session; `run_command` starts one with a Spark of its own.

    The verb would stop the session that it has opened.
    """
    monkeypatch.setattr(session, "open_session", lambda *_, **__: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)

    def run(*arguments: str) -> CompletedProcess[str]:
        return sparkmirror("verify", *arguments)

    return run
