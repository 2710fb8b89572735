"""No record of a micro-batch is before the target's log ends in its plan, whatever unclean elections do."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.support.elected_log import AT, ID, ElectedLog, ModelLeader

from sparkmirror.errors import ClusterTrouble
from sparkmirror.kafka.cluster import epoch_history
from sparkmirror.kafka.cluster.client import ClusterClient, PartitionLeader, TopicLeaders
from sparkmirror.kafka.cluster.epoch_history import EpochHistories
from sparkmirror.queries.copied_logs import CopiedLog, LogsNow
from sparkmirror.queries.plan_log import PlannedBatch, TargetEnd
from sparkmirror.queries.query_logs import QueryLogs


class ModelLook:
    """A look at a model's log."""

    def __init__(self, log: ElectedLog) -> None:
        self.log = log
        self.leader = ModelLeader(log)
        self.logs = QueryLogs.__new__(QueryLogs)
        self.logs._histories = EpochHistories(cast(ClusterClient, self.leader))  # noqa: SLF001

    def look(self, watermark: int | None = None) -> QueryLogs:
        end = len(self.log.log) if watermark is None else watermark
        self.logs._there = LogsNow(self.leader.topics(), {AT: end}, lambda _: len(self.log.log))  # noqa: SLF001
        return self.logs

    def planned(self, watermark: int) -> PlannedBatch:
        logs = self.look(watermark)
        return PlannedBatch(0, {}, logs._ends_since(self.leader.topics()))  # noqa: SLF001


STEPS = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 8), st.just(0)),
    st.tuples(st.just("leave"), st.just(0), st.just(0)),
    st.tuples(st.just("elect"), st.integers(0, 5), st.integers(0, 3)),
)


def run(log: ElectedLog, steps: list[tuple[str, int, int]]) -> None:
    for what, one, other in steps:
        if what == "append":
            log.append(one)
        elif what == "leave":
            log.leave_behind()
        else:
            log.elect(one, other)


@settings(max_examples=500)
@given(st.lists(STEPS, max_size=12), st.integers(0, 4), st.lists(STEPS, max_size=12))
def test_all_records_since_the_plan_are_behind_its_ends(
    before: list[tuple[str, int, int]], unseen: int, after: list[tuple[str, int, int]]
) -> None:
    log = ElectedLog()
    query = ModelLook(log)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(epoch_history, "epoch_ends", query.leader.epoch_ends)
        run(log, before)
        there, epoch = len(log.log), log.epoch
        plan = query.planned(max(there - unseen, 0))
        batch = PlannedBatch.from_json(plan.number, plan.to_json())
        run(log, after)
        begin = query.look().begins(batch)[AT]
    since = [at for at, its in enumerate(log.log) if its > epoch or (its == epoch and at >= there)]
    assert begin <= min(since, default=len(log.log))
    assert begin <= batch.begins[AT].log.end
    if log.epoch == epoch:
        assert begin == max(there - unseen, 0)
    event(f"the log was cut: {begin < batch.begins[AT].log.end}")


def test_ends_that_another_leader_may_have_told_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    query = ModelLook(ElectedLog())
    monkeypatch.setattr(epoch_history, "epoch_ends", query.leader.epoch_ends)
    earlier = query.leader.topics()
    query.log.append(3)
    query.log.elect(0, 0)
    assert query.look()._ends_since(earlier) == {}  # noqa: SLF001
    assert query.look()._ends_since(query.leader.topics(topic_id=b"1" * 16)) == {}  # noqa: SLF001
    assert query.look()._ends_since(query.leader.topics())[AT].log.end == 3  # noqa: SLF001


@pytest.mark.parametrize(("topic_id", "error"), [(b"1" * 16, 0), (ID, 3)])
def test_a_topic_that_was_created_again_or_is_missing_tells_nothing(topic_id: bytes, error: int) -> None:
    query = ModelLook(ElectedLog())
    topic = TopicLeaders("t", topic_id, error, {0: PartitionLeader(1, 0)})
    query.logs._there = LogsNow({"t": topic}, {AT: 9}, lambda _: 9)  # noqa: SLF001
    assert query.logs.begins(PlannedBatch(0, {}, {AT: TargetEnd(ID.hex(), CopiedLog(9, ()))})) == {}


def test_a_partition_without_a_leader_is_waited_for() -> None:
    query = ModelLook(ElectedLog())
    topic = TopicLeaders("t", ID, 0, {0: PartitionLeader(-1, 0)})
    query.logs._there = LogsNow({"t": topic}, {}, lambda _: 9)  # noqa: SLF001
    with pytest.raises(ClusterTrouble, match="t-0: its leader at the target isn't known now"):
        query.logs.begins(PlannedBatch(0, {}, {AT: TargetEnd(ID.hex(), CopiedLog(9, ()))}))
