"""What a query takes for copied is what the source's log still has, whatever unclean elections do, or is a loss."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.support.elected_log import AT, ElectedLog, ModelLeader, first_difference

from sparkmirror.config import ClusterConfig, FlowConfig, LossPolicy
from sparkmirror.errors import ClusterTrouble
from sparkmirror.exact.position.cause import Cause
from sparkmirror.exact.position.loss_detection import target_truncated_for_good
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.kafka.cluster import epoch_history
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.epoch_history import EpochHistories, epoch_at, joined
from sparkmirror.kafka.cluster.leader_epochs import EpochStart
from sparkmirror.kafka.wire.splice import NO_END
from sparkmirror.queries.copied_logs import CopiedLog, LogsNow, cut_offsets
from sparkmirror.queries.plan_log import PlannedBatch
from sparkmirror.queries.source_ranges import QueriedLog, next_ranges, present, shortened

SERVERS = ClusterConfig(alias="A", bootstrap_servers=("a:1",))
FLOW = FlowConfig(
    source=SERVERS, target=SERVERS.model_copy(update={"alias": "B"}), loss=LossPolicy(truncated="continue")
)
ROUTE = PartitionPair("t", "A.t", 0)


class ModelQuery:
    """A query that plans a micro-batch, and reads it in another step, of a model's log."""

    def __init__(self, log: ElectedLog) -> None:
        self.log = log
        self.leader = ModelLeader(log)
        self.histories = EpochHistories(cast(ClusterClient, self.leader))
        self.view: list[int] = []
        """Epochs of the copied records that no loss names."""
        self.before: PlannedBatch | None = None
        self.begun: PlannedBatch | None = None
        self.seen: QueriedLog | None = None
        """The last look; None: to look again."""
        self.copied: tuple[EpochStart, ...] = ()
        self.losses = self.shortened = 0

    def look(self) -> QueriedLog:
        newest = self.begun or self.before
        topics = self.leader.topics()
        cut = None
        if newest is not None:
            copied = newest.ranges[AT].behind(self.copied)
            now = LogsNow(topics, {AT: len(self.log.log)}, lambda _: len(self.log.log))
            cut = cut_offsets(self.histories, now, {AT: copied})[AT]
        history = self.histories.read(topics, {AT: max((cut or 0) - 1, 0)})[AT]
        end = len(self.log.log)
        return QueriedLog(ROUTE, "0a", 0, end, NO_END, b"\1", 0, history=history, cut_at=cut)

    def plan(self, most: int) -> None:
        if self.begun is not None:
            return
        self.seen = self.look()
        following = next_ranges(self.before, [self.seen], FLOW, most)
        differs = first_difference(self.view, self.log.log)
        lost = [(each.kind.value, each.first, each.end) for each in following.losses]
        assert lost == ([("truncated", differs, len(self.view))] if differs < len(self.view) else [])
        self.losses += len(lost)
        del self.view[differs:]
        self.begun = following.batch
        self.seen = self.seen._replace(cut_at=None)

    def read(self) -> None:
        """Read what was planned, unless a record is of another log; then look first the next time."""
        if self.begun is None:
            return
        self.seen = self.seen or self.look()
        begun, disowned = shortened(self.begun, {AT: self.seen}, FLOW.loss)
        ranges, losses = present(begun, {AT: self.seen}, FLOW.loss)
        assert not losses
        for first, end in ranges.values():
            records = self.log.log[first:end]
            planned = [epoch_at(begun.ranges[AT].epochs, offset) for offset in range(first, end)]
            if records != planned:
                self.seen = None
                return
            assert first == len(self.view)
            self.view += records
        self.shortened += len(disowned)
        self.before, self.begun, self.seen = begun, None, None
        self.copied = joined(self.copied, begun.ranges[AT].epochs)


STEPS = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 8), st.just(0)),
    st.tuples(st.just("plan"), st.integers(1, 12), st.just(0)),
    st.tuples(st.just("read"), st.just(0), st.just(0)),
    st.tuples(st.just("leave"), st.just(0), st.just(0)),
    st.tuples(st.just("elect"), st.integers(0, 5), st.integers(0, 3)),
)


@settings(max_examples=500)
@given(st.lists(STEPS, min_size=5, max_size=50))
def test_a_query_has_each_record_of_the_sources_log_once(steps: list[tuple[str, int, int]]) -> None:
    log = ElectedLog()
    query = ModelQuery(log)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(epoch_history, "epoch_ends", query.leader.epoch_ends)
        for what, one, other in [*steps, *[("read", 0, 0), ("read", 0, 0), ("plan", 999, 0), ("read", 0, 0)]]:
            if what == "append":
                log.append(one)
            elif what == "leave":
                log.leave_behind()
            elif what == "elect":
                log.elect(one, other)
            elif what == "plan":
                query.plan(one)
            else:
                query.read()
    assert query.view == log.log
    event(f"{min(query.losses, 2)} losses, {min(query.shortened, 2)} shortened batches")


def test_a_log_that_has_grown_past_the_place_is_cut_where_it_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """40 records of both logs, 20 that the election took, and 50 of the next leader."""
    log = ElectedLog()
    log.append(40)
    log.leave_behind()
    log.append(20)
    query = ModelQuery(log)
    monkeypatch.setattr(epoch_history, "epoch_ends", query.leader.epoch_ends)
    query.plan(100)
    query.read()
    log.elect(0, 0)
    log.append(50)
    halting = FLOW.model_copy(update={"loss": LossPolicy()})
    following = next_ranges(query.before, [query.look()], halting)
    assert following.batch is None
    assert [(each.first, each.end, each.offsets, each.action) for each in following.losses] == [(40, 60, 20, "halted")]
    assert following.halted[AT].cause is Cause.TRUNCATED
    going_on = next_ranges(query.before, [query.look()], FLOW)
    assert going_on.batch is not None
    assert going_on.batch.ranges[AT][:2] == (40, 90)
    assert going_on.batch.ranges[AT].epochs == (EpochStart(1, 40),)


def test_a_cut_below_a_planned_micro_batch_is_told_once_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The micro-batch's own epoch begins with it, and nothing of it is left: what was copied before tells the cut."""
    log = ElectedLog()
    log.append(40)
    log.leave_behind()
    log.append(20)
    query = ModelQuery(log)
    monkeypatch.setattr(epoch_history, "epoch_ends", query.leader.epoch_ends)
    query.plan(100)
    query.read()
    log.leave_behind()
    log.elect(1, 0)
    log.append(30)
    query.plan(100)
    assert query.begun is not None
    assert query.begun.ranges[AT].epochs == (EpochStart(1, 60),)
    log.elect(0, 0)
    log.append(90)
    query.read()  # meets the other log
    query.read()
    assert query.before is not None
    assert (query.before.ranges[AT][:2], query.before.ranges[AT].epochs) == ((60, 60), ())
    query.plan(999)  # sees that the loss is [40, 60)
    query.read()
    assert (query.losses, query.shortened, query.view) == (1, 1, log.log)


def test_without_epochs_only_a_shorter_log_shows_a_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans of before have none; a high watermark that is behind is no cut."""
    log = ElectedLog()
    log.append(50)
    leader = ModelLeader(log)
    monkeypatch.setattr(epoch_history, "epoch_ends", leader.epoch_ends)

    def cut(end: int, watermark: int) -> int:
        now = LogsNow(leader.topics(), {AT: watermark}, lambda _: len(log.log))
        return cut_offsets(EpochHistories(cast(ClusterClient, leader)), now, {AT: CopiedLog(end, ())})[AT]

    assert [cut(40, 50), cut(50, 45), cut(60, 50)] == [40, 50, 50]


@pytest.mark.parametrize("epoch", [0, 7])
def test_a_topic_without_an_id_that_was_created_again_is_shorter(epoch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its leader epochs begin at 0, as the earlier topic's may have."""
    log = ElectedLog()
    log.append(40)
    leader = ModelLeader(log)
    monkeypatch.setattr(epoch_history, "epoch_ends", leader.epoch_ends)
    now = LogsNow(leader.topics(), {AT: 40}, lambda _: 40)
    copied = CopiedLog(100, (EpochStart(epoch, 0),))
    assert cut_offsets(EpochHistories(cast(ClusterClient, leader)), now, {AT: copied}) == {AT: 40}


def test_a_leader_that_does_not_know_the_epoch_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    log = ElectedLog()
    log.append(50)
    leader = ModelLeader(log)
    monkeypatch.setattr(epoch_history, "epoch_ends", leader.epoch_ends)
    now = LogsNow(leader.topics(), {AT: 50}, lambda _: 50)
    with pytest.raises(ClusterTrouble, match="t-0: its leader does not know leader epoch 7 now"):
        cut_offsets(EpochHistories(cast(ClusterClient, leader)), now, {AT: CopiedLog(40, (EpochStart(7, 30),))})


def test_a_partition_whose_copy_lost_records_gets_no_more() -> None:
    """Neither a new micro-batch nor the rest of one that was begun."""
    loss = target_truncated_for_good(ROUTE, b"\1", 40, 60)
    assert (loss.offsets, loss.action, loss.outcome.value) == (20, "halted", "may be lost")
    assert "target A.t-0 lost offsets 40 to 59, which it had acknowledged" in loss.words
    whole = QueriedLog(ROUTE, "0a", 0, 10, NO_END, b"\1", 0)
    begun = next_ranges(None, [whole], FLOW).batch
    assert begun is not None
    following = next_ranges(begun, [whole._replace(end=20, lost=loss)], FLOW)
    assert (following.batch, following.losses) == (None, (loss,))
    assert following.halted[AT].cause is Cause.TARGET_TRUNCATED
    left, losses = shortened(begun, {AT: whole._replace(lost=loss)}, FLOW.loss)
    assert (left.ranges[AT][:2], losses) == ((0, 0), [loss])
