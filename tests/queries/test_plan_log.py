"""Plans agreed in a topic of a real broker: of rival processes one counts, and a later batch shuts older ones out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.copied_flow import Side

from sparkmirror.errors import AttemptFenced, ClusterUnreachable
from sparkmirror.exact.durable.query_places import QueryPlaces
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.leader_epochs import EpochStart
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire.topic_ids import NO_ID
from sparkmirror.queries import plan_log
from sparkmirror.queries.copied_logs import CopiedLog
from sparkmirror.queries.plan_log import PlanLog, PlannedBatch, PlannedRange, TargetEnd

pytestmark = pytest.mark.broker


def batch(number: int, end: int) -> PlannedBatch:
    return PlannedBatch(number, {("t", 0): PlannedRange(10 * number, end, "0a", "0b")})


def plans(side: Side, topic: str, query: str = "q") -> PlanLog:
    return PlanLog(ClusterClient(side.config, "test"), topic, query)


def plans_read(side: Side, topic: str) -> PlanLog:
    log = plans(side, topic)
    log.newest()
    return log


def test_of_two_processes_the_first_proposal_counts(side: Side, topic_name: str) -> None:
    one, other = plans(side, topic_name), plans(side, topic_name)
    assert one.newest() is None
    assert one.agree(batch(0, 10)) == (batch(0, 10), True)
    assert other.agree(batch(0, 99)) == (batch(0, 10), False), "the other's is agreed on"
    assert one.agree(batch(0, 10)) == (batch(0, 10), False), "it was proposed before"
    one.finish(batch(0, 10))
    assert other.newest() == batch(0, 10)
    assert other.is_finished(batch(0, 10))
    assert not other.is_finished(batch(1, 20))


def test_a_process_that_slept_is_shut_out_by_the_next_batch(side: Side, topic_name: str) -> None:
    awake, asleep = plans(side, topic_name), plans(side, topic_name)
    awake.agree(batch(0, 10))
    assert asleep.newest() == batch(0, 10)
    awake.agree(batch(1, 20))
    awake.agree(batch(2, 30))
    with pytest.raises(AttemptFenced, match="another process has planned batch 2, this one batch 1"):
        asleep.agree(batch(1, 77))
    with pytest.raises(AttemptFenced, match="another process has planned batch 2, this one batch 0"):
        asleep.demand_newest(batch(0, 10))
    assert awake.demand_newest(batch(2, 99)) == batch(2, 30)
    assert plans(side, topic_name).newest() == batch(2, 30), "the late proposal changes nothing for those to come"
    assert awake.agree(batch(3, 40)) == (batch(3, 40), True)


def test_old_proposals_are_deleted_and_queries_are_apart(side: Side, topic_name: str) -> None:
    first, second = plans(side, topic_name), plans(side, topic_name, "other")
    for number in range(4):
        first.agree(batch(number, 10 * number + 10))
    second.agree(batch(0, 5))
    entries, _ = TopicLog(side.client, topic_name).read(0, 0)
    alive = {entry.key: entry.value for entry in entries}
    assert sum(value is not None for value in alive.values()) == 2, "one plan of each query"
    assert (plans(side, topic_name).newest(), plans(side, topic_name, "other").newest()) == (batch(3, 40), batch(0, 5))


EPOCHS = (EpochStart(1, 0), EpochStart(3, 15))
SOURCE_ID, TARGET_ID = b"\1" * 16, b"\2" * 16
PLANNED = PlannedRange(10, 20, SOURCE_ID.hex(), TARGET_ID.hex(), EPOCHS)


def places(number: int, upstream_end: int, epochs: tuple[EpochStart, ...], source_id: bytes = SOURCE_ID) -> QueryPlaces:
    return QueryPlaces(
        query="q",
        target=(TARGET_ID, 0),
        batch=number,
        part=0,
        source_topic_id=source_id,
        sequence=0,
        downstream=0,
        runs=(),
        upstream_end=upstream_end,
        epochs=epochs,
    )


def test_a_plan_keeps_its_records_leader_epochs(side: Side, topic_name: str) -> None:
    made = PlannedBatch(1, {("t", 0): PLANNED})
    assert plans(side, topic_name).agree(made).batch == made
    assert plans(side, topic_name).newest() == made
    assert PLANNED.passed.epochs == EPOCHS[1:]
    assert PLANNED.up_to(15) == PLANNED._replace(end=15, epochs=EPOCHS[:1])
    before = b'[["t", 0, 10, 20, "0a", "0b"]]'
    assert PlannedBatch.from_json(1, before).ranges["t", 0] == PlannedRange(10, 20, "0a", "0b"), "of before"


def test_what_is_copied_is_told_by_all_places(side: Side, topic_name: str) -> None:
    """Another process reads them; those of the source topic before it was created again do not count."""
    one = plans(side, topic_name)
    one.place([places(0, 10, (EpochStart(9, 0),), b"\7" * 16)], {})
    one.place([places(1, 10, (EpochStart(1, 0), EpochStart(2, 5)))], {})
    one.place([places(2, 15, (EpochStart(2, 5), EpochStart(3, 15)))], {})
    for log in (one, plans(side, topic_name)):
        log.newest()
        assert log.copied(("t", 0), PLANNED._replace(epochs=(EpochStart(3, 15), EpochStart(4, 18)))) == CopiedLog(
            20, (EpochStart(1, 0), EpochStart(2, 5), EpochStart(3, 15), EpochStart(4, 18))
        )
        assert log.copied(("t", 0), PLANNED._replace(epochs=())) == CopiedLog(20, ()), "not known"
        assert log.reached(PlannedBatch(2, {("t", 0): PLANNED})).ranges["t", 0] == PLANNED.up_to(15)
        assert log.reached(PlannedBatch(3, {("t", 0): PLANNED})).ranges["t", 0] == PLANNED


def test_places_of_before_the_topics_had_ids_count(side: Side, topic_name: str) -> None:
    one = plans(side, topic_name)
    one.place([places(1, 10, (EpochStart(1, 0), EpochStart(2, 5)), NO_ID)], {})
    one.place([places(2, 15, (EpochStart(3, 15),))], {})
    one.newest()
    assert one.copied(("t", 0), PLANNED._replace(epochs=())) == CopiedLog(20, ())
    epochs = EpochStart(3, 15), EpochStart(4, 18)
    assert one.copied(("t", 0), PLANNED._replace(epochs=epochs)).epochs == (EpochStart(1, 0), EpochStart(2, 5), *epochs)
    without = PLANNED._replace(topic_id=NO_ID.hex())
    assert one.reached(PlannedBatch(2, {("t", 0): without})).ranges["t", 0] == without.up_to(15)


def test_where_the_rows_end_outlives_the_process(side: Side, topic_name: str) -> None:
    one = plans(side, topic_name)
    first = TargetEnd("0b", CopiedLog(7, (EpochStart(2, 3),)))
    one.place([], {("A.t", 0): first, ("A.u", 1): first})
    second = first._replace(log=CopiedLog(9, ()))
    one.place([], {("A.u", 1): second})
    for log in (one, plans(side, topic_name)):
        log.newest()
        assert log.ends == {("A.t", 0): first, ("A.u", 1): second}
    assert plans(side, topic_name, "other").ends == {}


def test_a_batch_with_noted_ends_is_not_finished(side: Side, topic_name: str) -> None:
    """Others may be missing: they go to the topic in several parts."""
    one = plans(side, topic_name)
    one.agree(batch(4, 10))
    one.place([], {("A.t", 0): TargetEnd("0b", CopiedLog(9, ()))})
    assert not plans_read(side, topic_name).is_finished(batch(4, 10))
    one.finish(batch(4, 10))
    assert plans_read(side, topic_name).is_finished(batch(4, 10))


def test_the_agreed_proposals_begins_count(side: Side, topic_name: str) -> None:
    """Nobody attempts the batch before it, and others may have attempted it before a later one."""
    behind = CopiedLog(5, (EpochStart(2, 4),))
    begins = {("A.t", 1): TargetEnd("0b", behind), ("all", 0): TargetEnd("0c", CopiedLog(7, ()))}
    begins["A.t", 0] = TargetEnd("0b", CopiedLog(0, ()))
    first = replace(batch(0, 10), begins=begins)
    plans(side, topic_name).agree(first)
    late = replace(batch(0, 10), begins={("A.t", 1): TargetEnd("0b", CopiedLog(9, ()))})
    assert plans(side, topic_name).agree(late) == (first, False)


def test_the_agreed_proposals_time_is_known(side: Side, topic_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody attempts a batch before."""
    one, other = plans(side, topic_name), plans(side, topic_name)
    monkeypatch.setattr(plan_log, "wall_ms", iter([100, 90, 200]).__next__)
    one.agree(batch(0, 10))
    other.agree(batch(0, 99))
    assert [log.first_attempt_ms(batch(0, 10)) for log in (one, other, plans_read(side, topic_name))] == [100] * 3
    one.agree(batch(1, 10))
    assert [one.first_attempt_ms(batch(number, 10)) for number in range(2)] == [100, 200]
    one.newest()
    assert [one.first_attempt_ms(batch(number, 10)) for number in range(2)] == [0, 200]


def test_records_of_another_program_are_named(side: Side, topic_name: str) -> None:
    TopicLog(side.client, topic_name).append(0, [(b"{}", b"")])
    with pytest.raises(ClusterUnreachable, match="a record of another program at offset 0"):
        plans(side, topic_name).newest()
