"""Positions decided from readings, against a model of one flow's partition at its target."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.position.decision import Doubt, LogTail, Position, ProducerState, TargetReading, appended, decide
from sparkmirror.kafka.wire.batches import SEQUENCE_MODULUS
from sparkmirror.kafka.wire.splice import Run

NOW_MS = 1_700_000_000_000
EMPTY = TargetReading(
    log_start=0, log_end_before=0, state=None, tail=None, log_end_after=0, has_records=False, high_watermark=0
)


def claim(sequence: int, upstream: int, downstream: int, count: int = 0, source: bytes = b"s" * 16) -> Claim:
    """One that announced so many records."""
    return Claim(
        target_topic_id=b"t" * 16,
        partition=3,
        sequence=sequence,
        incarnation=1,
        producer_id=4000,
        producer_epoch=0,
        source_topic_id=source,
        source_leader_epoch=7,
        downstream=downstream,
        runs=(Run(upstream, count),),
    )


class Flow:
    """What a flow has written to one partition: dense segments, from any sequence on."""

    def __init__(self, first_sequence: int, upstream: int, downstream: int, runs: list[tuple[int, int]]) -> None:
        self.claims: list[Claim] = []
        self.sequence, self.upstream, self.downstream = first_sequence, upstream, downstream
        for gap, count in runs:
            self.upstream += gap
            self.claims.append(claim(self.sequence, self.upstream, self.downstream, count))
            self.append(count)

    def append(self, count: int) -> None:
        self.sequence += count
        self.upstream += count
        self.downstream += count

    @property
    def last_sequence(self) -> int:
        return (self.sequence - 1) % SEQUENCE_MODULUS

    def reading(self, seen_by: str, log_start: int = 0, before: int = 0, after: int = 0) -> TargetReading:
        """A reading; `before` and `after` are records that came between the log end and the state, and after it."""
        return TargetReading(
            log_start=log_start,
            log_end_before=self.downstream - before,
            state=ProducerState(self.last_sequence, NOW_MS) if seen_by == "state" else None,
            tail=LogTail(self.last_sequence, self.downstream, NOW_MS) if seen_by == "tail" else None,
            log_end_after=self.downstream + after,
            has_records=seen_by != "log end" and self.downstream + after > log_start,
            high_watermark=self.downstream,
        )


flows = st.builds(
    Flow,
    st.sampled_from([0, 1, 500, SEQUENCE_MODULUS - 5, SEQUENCE_MODULUS, 3 * SEQUENCE_MODULUS - 1]),
    st.integers(0, 10**12),
    st.integers(0, 10**12),
    st.lists(st.tuples(st.integers(1, 1000), st.integers(1, 10)), min_size=1, max_size=6),
)
modest = settings(max_examples=200, deadline=None)


def position(verdict: Position | Doubt) -> Position:
    assert isinstance(verdict, Position), verdict
    return verdict


def doubt(verdict: Position | Doubt) -> Doubt:
    assert isinstance(verdict, Doubt), verdict
    return verdict


# --- what is there is found ---------------------------------------------------------------------------


@modest
@given(flows, st.sampled_from(["state", "tail", "log end"]))
def test_the_position_follows_the_last_record(flow: Flow, seen_by: str) -> None:
    found = position(decide(flow.reading(seen_by), list(reversed(flow.claims))))
    assert (found.sequence, found.upstream, found.downstream) == (flow.sequence, flow.upstream, flow.downstream)
    assert (found.leader_epoch, found.source_topic_id, found.claim_due) == (7, b"s" * 16, False)
    assert found.newest_timestamp_ms == (NOW_MS if seen_by == "state" else None)


@modest
@given(flows, st.sampled_from(["state", "tail"]), st.integers(0, 50), st.integers(0, 50))
def test_a_rival_may_append_meanwhile(flow: Flow, seen_by: str, before: int, after: int) -> None:
    first = flow.claims[0]
    before = min(before, flow.sequence - first.sequence)
    found = position(decide(flow.reading(seen_by, before=before, after=after), flow.claims))
    assert (found.sequence, found.upstream) == (flow.sequence, flow.upstream)


@modest
@given(flows, st.integers(1, 50))
def test_a_log_that_grows_without_any_state_is_read_again(flow: Flow, after: int) -> None:
    assert doubt(decide(flow.reading("log end", after=after), flow.claims)).wait


@modest
@given(flows, st.data(), st.sampled_from(["state", "tail"]))
def test_a_target_that_lost_acknowledged_records_continues_where_it_is(
    flow: Flow, data: st.DataObject, seen: str
) -> None:
    first = flow.claims[0]
    lost = data.draw(st.integers(0, flow.sequence - first.sequence), "lost")
    kept = flow.sequence - lost
    covering = max((one for one in flow.claims if one.sequence < kept), key=lambda one: one.sequence, default=first)
    flow.append(-lost)
    found = position(decide(flow.reading(seen), flow.claims))
    assert (found.sequence, found.downstream) == (kept, flow.downstream)
    assert found.upstream == covering.upstream + kept - covering.sequence
    assert found.claim_due == (kept == first.sequence or kept - covering.sequence < covering.announced)


def test_a_claim_without_its_first_batch_already_says_where_to_begin() -> None:
    found = position(decide(EMPTY, [claim(0, 70, 0)]))
    assert (found.sequence, found.upstream, found.downstream) == (0, 70, 0)
    assert (found.claim_due, found.leader_epoch) == (True, -1)


# --- what doesn't fit is doubted ----------------------------------------------------------------------


@modest
@given(flows, st.sampled_from(["state", "tail"]), st.integers(1, 1000))
def test_foreign_records_are_counted(flow: Flow, seen_by: str, foreign: int) -> None:
    reading = flow.reading(seen_by)
    reading = replace(
        reading, log_end_before=reading.log_end_before + foreign, log_end_after=reading.log_end_after + foreign
    )
    found = doubt(decide(reading, flow.claims))
    assert not found.wait
    assert f"holds {foreign} record(s) more than this flow wrote" in found.reason


@modest
@given(flows, st.sampled_from(["state", "tail"]), st.integers(1, 1000))
def test_missing_records_are_counted(flow: Flow, seen_by: str, missing: int) -> None:
    reading = flow.reading(seen_by)
    reading = replace(
        reading, log_end_before=reading.log_end_before - missing, log_end_after=reading.log_end_after - missing
    )
    found = doubt(decide(reading, flow.claims))
    assert not found.wait
    assert f"holds {missing} record(s) fewer than this flow wrote" in found.reason


@modest
@given(flows, st.integers(1, 1000))
def test_a_log_of_foreign_records_alone_says_nothing_about_ours(flow: Flow, foreign: int) -> None:
    """Ours are deleted and the state is gone: the log end counts the foreign ones too (R9c: nobody else writes)."""
    end = flow.downstream + foreign
    reading = TargetReading(
        log_start=flow.downstream,
        log_end_before=end,
        state=None,
        tail=None,
        log_end_after=end,
        has_records=True,
        high_watermark=end,
    )
    assert not doubt(decide(reading, flow.claims)).wait


# --- a partition that the flow never wrote to ---------------------------------------------------------


@pytest.mark.parametrize("end", [0, 40])
def test_an_empty_partition_is_begun_at_its_log_end(end: int) -> None:
    reading = replace(EMPTY, log_start=end, log_end_before=end, log_end_after=end)
    assert decide(reading, []) == Position(
        sequence=0,
        upstream=None,
        downstream=end,
        claim_due=True,
        leader_epoch=-1,
        source_topic_id=None,
        newest_timestamp_ms=None,
    )


@pytest.mark.parametrize(
    "reading",
    [replace(EMPTY, state=ProducerState(9, NOW_MS)), replace(EMPTY, tail=LogTail(9, 10, NOW_MS), has_records=True)],
    ids=["state", "tail"],
)
def test_records_of_ours_without_a_claim_are_damage(reading: TargetReading) -> None:
    assert "segments topic does not know them" in doubt(decide(reading, [])).reason


def test_somebody_elses_partition_is_left_alone() -> None:
    reading = replace(EMPTY, log_start=5, log_end_before=9, log_end_after=9, has_records=True)
    assert "holds offsets 5 to 8" in doubt(decide(reading, [])).reason


@pytest.mark.parametrize("sequence", [0, 12])
def test_a_partition_that_was_taken_over_is_begun_where_the_claim_says(sequence: int) -> None:
    """As long as the log ends there: what somebody wrote since is not ours to step over."""
    reading = replace(EMPTY, log_end_before=9, log_end_after=9, has_records=True)
    start = claim(sequence, 70, 9)
    assert decide(reading, [start]) == Position(
        sequence=sequence,
        upstream=70,
        downstream=9,
        claim_due=True,
        leader_epoch=-1,
        source_topic_id=b"s" * 16,
        newest_timestamp_ms=None,
        end=9,
    )
    for end in (8, 10):
        moved = replace(reading, log_end_before=end, log_end_after=end)
        assert "none that this flow wrote" in doubt(decide(moved, [start])).reason


@pytest.mark.parametrize("sequence", [0, 12])
def test_of_a_partition_that_was_taken_over_all_that_we_copied_is_lost(sequence: int) -> None:
    """What is left was there before us, and the copy begins again behind it."""
    reading = replace(EMPTY, log_end_before=9, log_end_after=9, has_records=True)
    first = replace(claim(sequence, 70, 9, 30), confirmed=True)
    claims = [first, replace(claim(sequence + 30, 200, 39, 5), confirmed=True)]
    expected = Position(
        sequence=sequence,
        upstream=70,
        downstream=9,
        claim_due=True,
        leader_epoch=-1,
        source_topic_id=b"s" * 16,
        newest_timestamp_ms=None,
        end=9,
        lost=35,
        lost_to=44,
    )
    assert decide(reading, claims, whole=True) == expected
    if sequence:  # there may be an older claim: whoever has read only the newest is to read them all
        assert doubt(decide(reading, claims)).uncovered
    else:
        assert decide(reading, claims) == expected
    longer = replace(reading, log_end_before=10, log_end_after=10)
    assert "none that this flow wrote" in doubt(decide(longer, claims, whole=True)).reason


def test_an_end_that_alone_tells_is_one_that_our_records_have_come_to() -> None:
    """Below where we began nothing is ours; an operator's claim says itself where to continue."""
    first = replace(claim(0, 70, 9, 30), confirmed=True)

    def unseen(end: int, *claims: Claim) -> bool:
        position = decide(replace(EMPTY, log_start=end, log_end_before=end, log_end_after=end), claims, whole=True)
        assert isinstance(position, Position), position
        return position.unseen

    assert [unseen(end, first) for end in (0, 9, 10, 39)] == [False, False, True, True]
    second = claim(30, 200, 39, 5)
    assert unseen(40, first, second)
    assert not unseen(40, first, replace(second, altered=True))


# --- gaps, and what is claimed next -------------------------------------------------------------------

WITH_GAPS = Claim(
    target_topic_id=b"t" * 16,
    partition=3,
    sequence=0,
    incarnation=1,
    producer_id=4000,
    producer_epoch=0,
    source_topic_id=b"s" * 16,
    source_leader_epoch=7,
    downstream=0,
    runs=(Run(70, 4), Run(80, 6)),
)


def ended_at(sequence: int) -> TargetReading:
    return TargetReading(
        log_start=0,
        log_end_before=sequence,
        state=ProducerState(sequence - 1, NOW_MS),
        tail=None,
        log_end_after=sequence,
        has_records=True,
        high_watermark=sequence,
    )


@pytest.mark.parametrize(
    ("sequence", "upstream", "due"), [(3, 73, True), (4, 74, True), (5, 81, True), (10, 86, False), (12, 88, False)]
)
def test_a_position_lies_behind_the_last_record(sequence: int, upstream: int, due: bool) -> None:
    """At a gap that is where the gap begins: there may be records that the claim's pump did not see."""
    found = position(decide(ended_at(sequence), [WITH_GAPS]))
    assert (found.upstream, found.claim_due) == (upstream, due)


def test_a_claim_begins_with_its_own_record() -> None:
    """What it says of the offset before it is another claim's."""
    claims = [claim(0, 100, 0, 10), claim(10, 150, 10, 5)]
    assert position(decide(ended_at(10), claims)).upstream == 110
    assert position(decide(ended_at(11), claims)).upstream == 151


def test_an_older_claim_than_those_given_is_asked_for() -> None:
    found = doubt(decide(ended_at(5), [claim(10, 150, 10, 5)]))
    assert found.uncovered
    assert not found.wait


def test_foreign_records_at_the_end_are_stepped_over() -> None:
    reading = replace(ended_at(10), log_end_before=13, log_end_after=13)
    surplus = doubt(decide(reading, [claim(0, 100, 0, 10)]))
    assert surplus.surplus == 3
    found = position(decide(reading, [claim(0, 100, 0, 10)], foreign_tail=3))
    assert (found.sequence, found.upstream, found.downstream, found.claim_due) == (10, 110, 13, True)


# --- the sequence that the leader tells ---------------------------------------------------------------


@modest
@given(flows, st.sampled_from(["state", "tail", "log end"]))
def test_the_appended_sequence_is_unwrapped(flow: Flow, seen_by: str) -> None:
    expected = None if seen_by == "log end" else flow.sequence
    reading = flow.reading(seen_by)
    assert appended(reading.last_sequence, reading.log_end_after, flow.claims) == expected


def test_without_a_claim_the_sequence_is_near_the_first() -> None:
    assert appended(4, 1000, []) == 5
