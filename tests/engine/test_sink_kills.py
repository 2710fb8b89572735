"""Streaming queries into Kafka under kills: workers, drivers, JVMs and brokers die, and each record is there once."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyspark
import pytest
from _pytest.mark import ParameterSet
from lab import KafkaCluster
from lab.spark_cluster import standalone_cluster
from sink_runs import KILLS, compared, run_killed

import sparkmirror

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

SRC = Path(sparkmirror.__file__).parents[1]


def by_format(seed: int) -> ParameterSet:
    is_older = pyspark.__version__.startswith("3.")
    return pytest.param(seed, "format", marks=pytest.mark.skipif(is_older, reason="Spark 3.5 has no such sinks"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """Three brokers, two replicas of each partition: a killed broker's partitions get another leader."""
    with KafkaCluster(
        tmp_path_factory.mktemp("three"), brokers=3, heap_mb=256, properties={"broker.session.timeout.ms": "3000"}
    ) as made:
        yield made


@pytest.fixture
def executors(tmp_path: Path) -> Iterator[Mapping[str, str]]:
    """Settings of a standalone cluster whose executors run this Python: a new one need not unpack an archive."""
    directory = tmp_path / "spark"
    directory.mkdir()
    with standalone_cluster(directory, archive=directory / "none") as settings:
        yield {
            **{
                key: value for key, value in settings.items() if not key.startswith(("spark.archives", "spark.pyspark"))
            },
            "spark.executorEnv.PYTHONPATH": str(SRC),
            "spark.pyspark.python": sys.executable,
            "spark.executorEnv.PYSPARK_PYTHON": sys.executable,
        }


@pytest.mark.parametrize(
    ("seed", "face"), [*((seed, "each") for seed in range(6)), *(by_format(seed) for seed in (6, 7))]
)
def test_each_record_is_there_once(
    seed: int, face: str, cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    """Eighty kills in eight queries."""
    kills = run_killed(seed, cluster, topic_name, tmp_path, face=face)
    assert compared(cluster, topic_name) == (0, 0), "none is twice, none is lost"
    assert kills.total() >= KILLS / 2


@pytest.mark.parametrize(("seed", "face"), [(20, "each"), (21, "each"), by_format(22)])
def test_leaders_that_move(seed: int, face: str, cluster: KafkaCluster, topic_name: str, tmp_path: Path) -> None:
    """Partitions get other replicas by reassignment, and so another leader, while rows are appended."""
    kills = run_killed(seed, cluster, topic_name, tmp_path, face=face, kinds=("leader",))
    assert compared(cluster, topic_name) == (0, 0), "none is twice, none is lost"
    assert kills["leader"] >= KILLS / 2


@pytest.mark.parametrize(("seed", "face"), [(30, "each"), (31, "each"), by_format(32)])
def test_executors_that_are_lost(
    seed: int, face: str, cluster: KafkaCluster, executors: Mapping[str, str], topic_name: str, tmp_path: Path
) -> None:
    """On a standalone cluster: Spark gives the tasks of a killed executor to others."""
    kills = run_killed(
        seed, cluster, topic_name, tmp_path, face=face, kinds=("executor",), settings=executors, longest_s=900
    )
    assert compared(cluster, topic_name) == (0, 0), "none is twice, none is lost"
    assert kills["executor"] >= KILLS / 2
