"""Somebody else writes to a target partition: found, stepped over, and told from our own records twice."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka import KafkaProducer
from tests.support.copied_flow import COPIED, Flow, built

from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.durable.losses import LossKind
from sparkmirror.exact.position.foreign import Explained, ForeignRecords, explain, foreign_tail, told_apart
from sparkmirror.exact.position.log_probe import LogProbe
from sparkmirror.exact.position.matching import StoredBatch
from sparkmirror.exact.position.reader import PositionReader
from sparkmirror.kafka.wire.splice import Run

# --- a log in memory ----------------------------------------------------------------------------------

OURS, FOREIGN = "ours", "foreign"
modest = settings(max_examples=200, deadline=None)
WHERE = ("us.orders", 0)
CLAIM = Claim(
    target_topic_id=b"t" * 16,
    partition=0,
    sequence=0,
    incarnation=1,
    producer_id=4000,
    producer_epoch=0,
    source_topic_id=b"s" * 16,
    source_leader_epoch=0,
    downstream=0,
    runs=(Run(100, 5), Run(200, 5)),
    confirmed=True,
)


class Log:
    """Batches, ours and somebody else's, as a `LogProbe` shows them."""

    def __init__(self, batches: list[tuple[str, int]], start: int = 0) -> None:
        self.ours: list[StoredBatch] = []
        self.start = start
        self.gone = range(0)
        """What compaction took."""
        self.end = self.sequence = 0
        self.searched = 0
        for whose, count in batches:
            if whose == OURS:
                self.ours.append(StoredBatch(self.sequence, self.end, count, count, 100, 0, 0, 0, 0))
                self.sequence += count
            self.end += count

    def next_of_ours(self, where: tuple[str, int], offset: int, near: int) -> StoredBatch | None:
        self.searched += 1
        if offset < self.start:
            return None  # out of range
        return next((one for one in self.ours if one.offset + one.span > offset), None)

    def foreign_only(self, where: tuple[str, int], offset: int, end: int) -> bool:
        return not any(offset < one.offset + one.span and one.offset < end for one in self.ours)

    def foreign_throughout(self, where: tuple[str, int], offset: int, end: int) -> bool:
        return self.foreign_only(where, offset, end) and not any(offset <= one < end for one in self.gone)

    def explain(self, *, from_the_log: bool = False) -> Explained | None:
        probe = cast("LogProbe", self)
        shown_to = self.ours[-1].offset + self.ours[-1].span if from_the_log else None
        return explain(probe, WHERE, (CLAIM,), self.sequence, self.start, self.end, shown_to=shown_to)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([OURS, FOREIGN]), st.integers(1, 6)), min_size=1, max_size=30), st.integers(0, 9)
)
def test_every_foreign_stretch_is_found(batches: list[tuple[str, int]], deleted: int) -> None:
    """Whatever lies before the log's start, unless nobody else wrote there."""
    log = Log([(OURS, 10), *batches], start=min(deleted, 9))
    found = log.explain()
    assert found is not None
    assert log.explain(from_the_log=True) == found
    true = [CLAIM, *found.claims]
    for batch in log.ours:
        for ahead in range(batch.span):
            sequence = batch.sequence + ahead
            claim = max((one for one in true if one.sequence <= sequence), key=lambda one: one.sequence)
            assert claim.downstream + sequence - claim.sequence == batch.offset + ahead
            assert claim.upstream_of(sequence) == CLAIM.upstream_of(sequence)
    ours = {one.offset + n for one in log.ours for n in range(one.span)}
    stretches = {offset for one in found.stretches for offset in range(one.first, one.end)}
    assert stretches == set(range(log.end)) - ours
    assert found.tail == log.end - max(ours) - 1
    assert all(claim.confirmed for claim in found.claims)


def test_what_lies_behind_all_of_ours_is_found_without_a_search() -> None:
    """As a fence's marker in each of thousands of partitions."""
    log = Log([(OURS, 10), (OURS, 3), (FOREIGN, 1)])
    found = log.explain(from_the_log=True)
    assert found == Explained((), (ForeignRecords(13, 14),), 1)
    assert log.searched == 0


@pytest.mark.parametrize("again", [0, 5, 8])
def test_our_records_twice_are_not_somebody_elses(again: int) -> None:
    """A rival's batch was taken, too, when the leader had no state of ours; it may have other borders."""
    log = Log([(OURS, 5), (OURS, 5), (OURS, 10 - again)])
    log.ours[2], log.sequence = log.ours[2]._replace(sequence=again), 10
    assert log.explain() is None


@modest
@given(st.data(), st.integers(0, 30), st.lists(st.tuples(st.booleans(), st.integers(1, 6)), min_size=1, max_size=6))
def test_behind_what_was_noted_first_nothing_is_ours(
    data: st.DataObject, ours: int, foreign: list[tuple[bool, int]]
) -> None:
    """Some stretches were noted, others not; what the log still shows of them is another matter."""
    begin = data.draw(st.integers(0, ours), "the newest claim's begin")
    known: list[tuple[int, int]] = []
    unknown: list[tuple[int, int]] = []
    at = ours
    for noted, count in [(True, 1), *foreign]:
        (known if noted else unknown).append((at, at + count))
        at += count
    older = [ForeignRecords(first, begin) for first in range(begin)][-1:]
    found = foreign_tail([*older, *(ForeignRecords(*one) for one in known)], begin, at)
    assert found.offsets == at - ours
    assert {offset for one in found.unknown for offset in range(one.first, one.end)} == {
        offset for one in unknown for offset in range(*one)
    }
    assert foreign_tail([ForeignRecords(*one) for one in known], begin, ours + 1) == (1, ()), "the log was cut"


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6))), st.integers(0, 20), st.integers(1, 20))
def test_fences_are_told_from_strangers(fences: list[tuple[int, int]], first: int, length: int) -> None:
    """Known twice, in any order, or partly outside: each offset is a fence's or somebody else's."""
    marked = {offset for begin, count in fences for offset in range(begin, begin + count)}
    stretch = ForeignRecords(first, first + length)
    parts = told_apart(stretch, [(begin, begin + count) for begin, count in fences])
    assert [offset for part in parts for offset in range(part.first, part.end)] == list(range(first, first + length))
    assert all((offset in marked) == part.fence for part in parts for offset in range(part.first, part.end))


def test_where_nobody_else_is_known_the_log_holds_what_it_holds() -> None:
    assert foreign_tail([], 0, 9) == (0, ())
    assert foreign_tail([ForeignRecords(0, 4)], 4, 9) == (0, ())


@pytest.mark.parametrize("by_the_log", [True, False])
@pytest.mark.parametrize("gone", [range(0), range(8, 10), range(11, 12)])
def test_where_compaction_took_something_the_log_does_not_tell_whose_it_was(by_the_log: bool, gone: range) -> None:
    """Its tail seems to be somebody else's, but our last batch may have been there; the leader's state would know."""
    log = Log([(OURS, 8), (OURS, 2), (FOREIGN, 4)])
    log.gone = gone
    log.ours = [one for one in log.ours if one.offset not in gone]
    log.sequence = sum(one.span for one in log.ours) if by_the_log else 10
    found = log.explain(from_the_log=by_the_log)
    assert (found is None) == (by_the_log and bool(gone))
    if found is not None:
        assert (found.tail, found.stretches) == (4, (ForeignRecords(10, 14),))


# --- a real one ---------------------------------------------------------------------------------------


def somebody_else(flow: Flow, count: int) -> None:
    """A producer of its own, idempotent as they are by default."""
    producer = KafkaProducer(bootstrap_servers=list(flow.target.config.bootstrap_servers))
    for _ in range(count):
        producer.send(flow.target_topic, b"foreign", partition=0)
    producer.flush()
    producer.close()


def foreign(flow: Flow) -> list[tuple[int, int]]:
    return [(one.first, one.end) for one in flow.losses() if one.kind is LossKind.FOREIGN]


@pytest.mark.broker
def test_what_somebody_else_wrote_at_the_end_is_stepped_over(flow: Flow) -> None:
    flow.copy()
    somebody_else(flow, 4)
    found = flow.partition_reading()
    assert (found.position.sequence, found.position.upstream, found.position.downstream) == (COPIED, COPIED, 34)
    assert found.position.claim_due
    assert foreign(flow) == [(COPIED, COPIED + 4)]
    assert "a foreign producer wrote offsets 30 to 33" in flow.losses()[0].words


@pytest.mark.broker
def test_what_somebody_else_wrote_among_ours_is_stepped_over(flow: Flow) -> None:
    """And every offset still translates: what we found out is claimed."""
    flow.copy()
    somebody_else(flow, 4)
    flow.target.append(flow.target_topic, 5, flow.producer(COPIED))
    somebody_else(flow, 2)
    flow.target.append(flow.target_topic, 5, flow.producer(COPIED + 5))
    for _ in range(2):
        found = flow.partition_reading().position
        assert (found.sequence, found.upstream, found.downstream) == (COPIED + 10, COPIED + 10, COPIED + 16)
    assert foreign(flow) == [(30, 34), (39, 41)]
    claims = sorted((one.sequence, one.downstream, one.upstream, one.confirmed) for one in flow.claims())
    assert claims == [(0, 0, 0, True), (30, 34, 30, True), (35, 41, 35, True)]


@pytest.mark.broker
def test_what_somebody_else_wrote_before_a_claimed_batch_is_told_too(flow: Flow) -> None:
    """The claim says itself where its batch was found: nothing is left over that would have to be explained."""
    flow.copy()
    batch = built([b"ours"] * 5, flow.producer(COPIED))
    flow.claim(flow.announce(COPIED, 1 << 40, (batch, (Run(40, 5),))))
    somebody_else(flow, 4)
    flow.target.send(flow.target_topic, batch)
    found = flow.partition_reading().position
    assert (found.sequence, found.upstream, found.downstream) == (COPIED + 5, 45, COPIED + 9)
    assert foreign(flow) == [(30, 34)]


@pytest.mark.broker
def test_it_is_in_the_ledger_though_nothing_else_came_of_the_reading(
    flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the claim behind it is confirmed, nobody looks for the stretch again."""
    flow.copy()
    batch = built([b"ours"] * 5, flow.producer(COPIED))
    flow.claim(flow.announce(COPIED, 1 << 40, (batch, (Run(40, 5),))))
    somebody_else(flow, 4)
    flow.target.send(flow.target_topic, batch)

    def cut_off(*_: object) -> None:
        raise ConnectionError("the source is away")

    with monkeypatch.context() as patch:
        patch.setattr(PositionReader, "_epoch_ends", cut_off)
        assert "the source is away" in flow.refusal().reason
    assert any(claim.confirmed for claim in flow.claims() if claim.sequence == COPIED)
    assert flow.partition_reading().position.sequence == COPIED + 5
    assert foreign(flow) == [(30, 34)]


@pytest.mark.broker
def test_deleted_records_do_not_hide_what_somebody_else_wrote(flow: Flow) -> None:
    flow.copy()
    somebody_else(flow, 4)
    flow.target.append(flow.target_topic, 5, flow.producer(COPIED))
    flow.target.delete_records(flow.target_topic, 25)
    found = flow.partition_reading().position
    assert (found.sequence, found.downstream) == (COPIED + 5, COPIED + 9)
    assert foreign(flow) == [(30, 34)]


@pytest.mark.broker
def test_another_epoch_of_our_own_id_is_somebody_else(flow: Flow) -> None:
    """It replaces our state: the tail of the log has to tell (R9b)."""
    flow.copy()
    for sequence in (0, 2):
        flow.target.append(flow.target_topic, 2, (flow.identity.producer_id, 1, sequence))
    found = flow.partition_reading().position
    assert (found.sequence, found.upstream, found.downstream) == (COPIED, COPIED, COPIED + 4)
    assert found.newest_timestamp_ms is None
