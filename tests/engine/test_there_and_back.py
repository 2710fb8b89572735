"""A migration there and back on real clusters: turns, stragglers, and offsets at the borders."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab import KafkaCluster
from pyspark.sql import SparkSession
from tests.support import mirror_process as mp
from tests.support.mirror_thread import run_mirror
from turn_case import PARTITIONS, TurnCase, state_of

from sparkmirror.mirror.engine import lag_monitor, report_watch
from sparkmirror.mirror.sync.turns import start_turn

pytestmark = [pytest.mark.broker, pytest.mark.spark]


@pytest.fixture(autouse=True)
def _hears_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_watch, "TICK_S", 0.3)
    monkeypatch.setattr(lag_monitor, "LOOK_S", 0.5)


@pytest.fixture
def case(source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path) -> TurnCase:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, PARTITIONS)
    return TurnCase(tmp_path, source_cluster, target_cluster, [topic_name])


def test_there_and_back_and_there_again(spark: SparkSession, case: TurnCase, topic_name: str) -> None:
    case.write("A", topic_name, 30)
    with run_mirror(case.file, spark) as mirror:
        mp.wait_for(lambda: case.is_level(), 90, "B has all")
        case.straggle("A", topic_name)  # before the end is published: an ordinary record of the turn
        del case.stragglers["A", topic_name, 0]
        first = case.end_turn("A->B", case.topics)
        before_start = case.straggle("A", topic_name)
        late = start_turn(case.flow("B->A"), first.borders)
        assert late == {(topic_name, 0): 1}
        assert start_turn(case.flow("B->A"), first.borders) == late
        before_first = case.straggle("A", topic_name)
        case.write("B", topic_name, 30)
        mp.wait_for(lambda: case.is_level(), 60, "A has what was written at B")
        after_first = case.straggle("A", topic_name)
        case.write("B", topic_name, 20)
        mp.wait_for(lambda: case.is_level(), 60, "A has the rest")
        assert {before_start, before_first, after_first} == case.foreign("A", topic_name, 0)
        case.turn("B->A", "A->B", case.topics)
        case.write("A", topic_name, 30)
        mp.wait_for(lambda: case.is_level(), 60, "B has what was written at A")
        mp.wait_for(lambda: state_of(mirror, "A->B") == "caught up", 30, "nothing is left to do")
    for alias in ("A", "B"):
        for partition in range(PARTITIONS):
            assert case.numbers_at(alias, topic_name, partition) == list(range(case.numbers[topic_name, partition]))
    case.assert_translates(topic_name)
