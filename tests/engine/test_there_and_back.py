"""A migration there and back on real clusters: turns, stragglers, and offsets at the borders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lab import KafkaCluster
from pyspark.sql import SparkSession
from tests.support import mirror_process as mp
from tests.support.mirror_thread import run_mirror
from turn_case import PARTITIONS, TurnCase, late, state_of

from conftest import VerifyVerb
from sparkmirror.mirror.engine import lag_monitor, report_watch
from sparkmirror.mirror.sync.moved_writers import say_moved, take_back
from sparkmirror.mirror.sync.turns import NotTurned, start_turn

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
    """Stragglers come in each window: each is named, and none is copied, nor any record twice or not at all."""
    case.write("A", topic_name, 30)
    with run_mirror(case.file, spark) as mirror:
        mp.wait_for(case.is_level, 90, "B has all")
        mp.wait_for(lambda: state_of(mirror, "B->A") == "waits for its turn", 30, "the way back waits")
        with pytest.raises(NotTurned, match="B->A: it is not its turn"):
            list(say_moved(case.flow("B->A"), set(case.topics).__contains__))
        first = case.end_turn("A->B", case.topics)
        before_start = case.straggle("A", topic_name)
        assert start_turn(case.flow("B->A"), first.borders) == {(topic_name, 0): 1}
        start_turn(case.flow("B->A"), first.borders)
        before_first = case.straggle("A", topic_name)
        case.write("B", topic_name, 30)
        mp.wait_for(case.is_level, 60, "A has what was written at B")
        after_first = case.straggle("A", topic_name)
        case.write("B", topic_name, 20)
        mp.wait_for(case.is_level, 60, "A has the rest")
        stragglers = {before_start, before_first, after_first}
        # The last one is found by the place where the copies behind it came to lie.
        mp.wait_for(lambda: case.foreign("A", topic_name, 0) == stragglers, 30, "each straggler is named")
        mp.wait_for(lambda: late(mirror, "A->B") == {topic_name: 3}, 30, "no copy counts as late (F4.4)")
        (said,) = say_moved(case.flow("A->B"), set(case.topics).__contains__)
        assert said.accepted.keys() == set(range(PARTITIONS))
        mp.wait_for(lambda: late(mirror, "A->B") == {}, 30, "an operator has accepted the stragglers")
        case.turn("B->A", "A->B", case.topics)
        case.write("A", topic_name, 30)
        mp.wait_for(case.is_level, 60, "B has what was written at A")
        mp.wait_for(lambda: state_of(mirror, "A->B") == "caught up", 30, "nothing is left to do")
        mp.wait_for(lambda: state_of(mirror, "B->A") == "caught up", 30, "the copies at B are not late")
        assert late(mirror, "B->A") == {}
    for alias in ("A", "B"):
        for partition in range(PARTITIONS):
            assert case.numbers_at(alias, topic_name, partition) == list(range(case.numbers[topic_name, partition]))
    case.assert_translates(topic_name)


@pytest.mark.full
def test_published_ends_can_be_taken_back(spark: SparkSession, case: TurnCase, topic_name: str) -> None:
    """Until the opposite flow's turn begins: then only the next turn leads back."""
    forth, back = case.flow("A->B"), case.flow("B->A")
    chosen = {topic_name}.__contains__
    case.write("A", topic_name, 10)
    with run_mirror(case.file, spark) as mirror:
        mp.wait_for(case.is_level, 90, "B has all")
        case.end_turn("A->B", case.topics)
        assert list(take_back(forth, chosen)) == [topic_name]
        assert list(take_back(forth, chosen)) == []
        case.write("A", topic_name, 10)
        mp.wait_for(case.is_level, 60, "A is copied again")
        case.turn("A->B", "B->A", case.topics)
        with pytest.raises(NotTurned, match="A->B: it is not its turn"):
            list(take_back(forth, chosen))
        case.write("B", topic_name, 10)
        mp.wait_for(case.is_level, 60, "B is copied")
        case.turn("B->A", "A->B", case.topics)
        case.write("A", topic_name, 10)
        mp.wait_for(case.is_level, 60, "A is copied in its second turn")
        mp.wait_for(lambda: state_of(mirror, back.name) == "caught up", 30, "nothing is left to do")
    for alias in ("A", "B"):
        for partition in range(PARTITIONS):
            assert case.numbers_at(alias, topic_name, partition) == list(range(case.numbers[topic_name, partition]))
    case.assert_translates(topic_name)


@pytest.mark.full
def test_five_turns_under_load(
    spark: SparkSession,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
    verify_verb: VerifyVerb,
) -> None:
    """Plain, compacted and transactional topics; a straggler in each window of each turn."""
    topics = [topic_name, f"{topic_name}-compacted", f"{topic_name}-transactional"]
    for topic in topics:
        configs = {"cleanup.policy": "compact"} if topic.endswith("compacted") else {}
        mp.create_topic(source_cluster.bootstrap_servers, topic, PARTITIONS, configs)
    case = TurnCase(
        tmp_path,
        source_cluster,
        target_cluster,
        topics,
        {"consumer.isolation.level": "read_committed"}
        | {f"{alias}.consumer.isolation.level": "read_committed" for alias in ("A", "B")},
    )
    case.transactional = {topics[2]}
    sides = [("A->B", "A"), ("B->A", "B")]
    with run_mirror(case.file, spark) as mirror:
        for turn in range(5):
            (name, live), (opposite, other) = sides[turn % 2], sides[(turn + 1) % 2]
            _write_and_straggle(case, live, other if turn else "", 60 * (turn + 1))
            if turn < 4:
                drained = case.end_turn(name, topics)
                case.straggle(live, topics[0], 2)
                start_turn(case.flow(opposite), drained.borders)
                case.straggle(live, topics[0], 2)
                case.write(other, topics[0], 1)
        mp.wait_for(lambda: late(mirror, "B->A") == {topics[0]: 4}, 30, "B's stragglers since its last turn are late")
        case.write("A", topics[0], 1)
        mp.wait_for(case.is_level, 120, "the last straggler has a copy behind it, and so an entry in the ledger")
    for topic in topics:
        for partition in range(PARTITIONS):
            expected = list(range(case.numbers[topic, partition]))
            assert case.numbers_at("A", topic, partition) == expected, (topic, partition)
            assert case.numbers_at("B", topic, partition) == expected, (topic, partition)
            for alias in ("A", "B"):
                assert case.foreign(alias, topic, partition) <= set(case.stragglers.get((alias, topic, partition), ()))
                assert not case.unnamed(alias, topic, partition), (alias, topic, partition)
        case.assert_translates(topic)
    said = verify_verb(str(case.file), "-o", "json").stdout
    rows = [row["difference"] for row in map(json.loads, said.splitlines()) if "difference" in row]
    assert rows, "it names stragglers"
    for row in rows:
        source, target = row["flow"].split("->")
        alias, offset = (source, row["upstream"]) if row["kind"] == "missing" else (target, row["downstream"])
        assert offset in case.stragglers.get((alias, row["topic"], row["partition"]), ()), row


def _write_and_straggle(case: TurnCase, live: str, straggling: str, least: int) -> None:
    """Write some records to each partition, and a straggler before and after the copies begin."""
    plain, *_, transactional = case.topics
    with case.load(live):
        if straggling:
            case.straggle(straggling, plain, 1)
        mp.wait_for(lambda: min(case.numbers.values()) > least, 120, "some is written")
        mp.wait_for(lambda: case.is_begun("A") and case.is_begun("B"), 120, "some is copied")
        if straggling:
            case.straggle(straggling, plain, 1)
    case.abort(live, transactional)
    mp.wait_for(case.is_level, 120, "all is copied")
