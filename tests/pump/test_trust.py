"""How many batches may be in flight, by what the leader's answers were worth so far (R3, R4, R6, R15, R19)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model_broker import FRESH_AFTER_MS, FRESH_MS, OLD_MS
from model_pump import Pump, a_world

from sparkmirror.exact.durable.claims import Claim
from sparkmirror.kafka.wire.buffers import FramePool
from sparkmirror.kafka.wire.splice import Run
from sparkmirror.pump.batch import Batch, PendingClaim
from sparkmirror.pump.trust import (
    ASK_AGAIN_S,
    MAX_CONFIRMATION_AGE_S,
    Freshness,
    NextReading,
    Pace,
    Stamping,
    Trust,
)

NOW = 1000.0
MOST = 5


def a_batch(timestamp_ms: int, claim: PendingClaim | None = None) -> Batch:
    frame = FramePool(1 << 10, keep=1).take(100)
    batch = Batch(frame, frame.view[:100], 0, (Run(0, 10),), 10, 10, timestamp_ms, timestamp_ms, -1)
    batch.claim = claim
    batch.sent_at = NOW
    return batch


@pytest.fixture
def trust() -> Trust:
    """A position was read just now."""
    made = Trust(Freshness(FRESH_AFTER_MS, NOW), MOST)
    made.start(NOW, FRESH_MS)
    return made


@pytest.fixture
def claim() -> Claim:
    pump = Pump(a_world())
    pump.start()
    pump.fetch()
    return pump.ready().claims[0].claim


def most(trust: Trust, head: Batch, *, compacted: bool = False) -> int:
    return trust.most_in_flight(head, NOW, compacted=compacted)


def test_a_batch_is_allowed_up_to_the_limit_and_until_the_position_is_stale(trust: Trust) -> None:
    trust.note(a_batch(FRESH_MS), NOW)
    trust.note(a_batch(FRESH_MS), NOW)
    assert [trust.allows(a_batch(FRESH_MS), flying, NOW, compacted=False) for flying in (0, MOST - 1, MOST)] == [
        True,
        True,
        False,
    ]
    assert [trust.allows(a_batch(FRESH_MS), flying, NOW, compacted=True) for flying in (0, 1)] == [True, False]
    stale = NOW + MAX_CONFIRMATION_AGE_S + 0.001
    assert not trust.allows(a_batch(FRESH_MS), 0, stale, compacted=False)


def test_the_first_batch_goes_alone_and_then_as_many_as_may(trust: Trust) -> None:
    assert most(trust, a_batch(FRESH_MS)) == 1
    assert not trust.note(a_batch(FRESH_MS), NOW)
    assert most(trust, a_batch(FRESH_MS)) == MOST


def test_a_confirmed_position_is_as_a_new_one(trust: Trust) -> None:
    trust.note(a_batch(FRESH_MS), NOW)
    trust.confirm(NOW, None)
    assert most(trust, a_batch(FRESH_MS)) == 1


def test_a_fresh_batch_behind_old_ones_goes_alone(trust: Trust) -> None:
    """The leader's state may have gone with the old ones (R4)."""
    trust.note(a_batch(FRESH_MS), NOW)
    assert most(trust, a_batch(OLD_MS)) == 1
    trust.note(a_batch(OLD_MS), NOW)
    assert most(trust, a_batch(FRESH_MS)) == 1
    trust.note(a_batch(FRESH_MS), NOW)
    assert most(trust, a_batch(FRESH_MS)) == MOST


def test_what_was_fresh_grows_old(trust: Trust) -> None:
    later = NOW + (FRESH_MS - FRESH_AFTER_MS) / 1000 + 1
    trust.note(a_batch(FRESH_MS), NOW)
    assert trust.most_in_flight(a_batch(FRESH_MS), later, compacted=False) == 1


def test_over_a_log_that_is_cleaned_one_goes_at_a_time(trust: Trust) -> None:
    trust.note(a_batch(FRESH_MS), NOW)
    assert most(trust, a_batch(FRESH_MS), compacted=True) == 1


def test_without_a_word_on_duplicates_a_claimed_batch_goes_alone(trust: Trust, claim: Claim) -> None:
    """A rival may have sent another batch of the same sequences (R15)."""
    trust.note(a_batch(FRESH_MS), NOW)
    trust.stamping = Stamping.LOG_APPEND_TIME
    assert most(trust, a_batch(FRESH_MS)) == MOST
    assert most(trust, a_batch(FRESH_MS, PendingClaim(claim))) == 1


@pytest.mark.parametrize(("claimed", "looked_up"), [(True, True), (False, False)])
def test_without_a_word_on_duplicates_a_claimed_batch_is_looked_up(
    trust: Trust, claim: Claim, claimed: bool, looked_up: bool
) -> None:
    trust.note(a_batch(FRESH_MS), NOW)
    trust.stamping = Stamping.LOG_APPEND_TIME
    assert trust.note(a_batch(FRESH_MS, PendingClaim(claim) if claimed else None), NOW) is looked_up
    assert not trust.is_claim_proven


def test_the_first_batch_without_a_word_on_duplicates_is_looked_up_and_then_all_may_go(trust: Trust) -> None:
    """The look-up has proved it; else each batch would be looked up."""
    trust.stamping = Stamping.LOG_APPEND_TIME
    assert trust.note(a_batch(FRESH_MS), NOW)
    trust.next_reading = NextReading.LOOK_UP
    trust.start(NOW, FRESH_MS)
    assert (trust.pace, trust.next_reading) == (Pace.FULL, NextReading.START)
    assert not trust.note(a_batch(FRESH_MS), NOW)


@pytest.mark.parametrize("state_ms", [OLD_MS, None])
def test_after_a_look_up_nothing_is_pipelined_over_a_state_that_may_go(trust: Trust, state_ms: int | None) -> None:
    """The leader may drop it, refuse the next batch, and append the one behind it."""
    trust.next_reading = NextReading.LOOK_UP
    trust.start(NOW, state_ms)
    assert not trust.allows(a_batch(FRESH_MS), 1, NOW, compacted=False)
    trust.note(a_batch(FRESH_MS), NOW)
    assert trust.allows(a_batch(FRESH_MS), 1, NOW, compacted=False)


@pytest.mark.parametrize(("timed", "looked_up"), [(True, True), (False, False)])
def test_while_it_is_unknown_why_answers_have_times_each_such_answer_is_looked_up(
    trust: Trust, timed: bool, looked_up: bool
) -> None:
    """Either the target stamps records, or a rival has appended the batch. One that stamps times each answer."""
    trust.note(a_batch(FRESH_MS), NOW)
    trust.stamping = Stamping.UNKNOWN
    assert most(trust, a_batch(FRESH_MS)) == 1
    assert trust.note(a_batch(FRESH_MS), NOW, timed=timed) is looked_up
    assert trust.is_claim_proven is not timed
    assert trust.stamping is (Stamping.UNKNOWN if timed else Stamping.CREATE_TIME)
    assert most(trust, a_batch(FRESH_MS)) == (1 if timed else MOST)


def test_settings_that_were_not_told_are_asked_for_again_now_and_then(trust: Trust) -> None:
    """Each time is a request of its own for each partition, before its position is read."""
    assert not trust.must_ask(NOW)
    trust.stamping = Stamping.UNKNOWN
    times = (NOW, NOW + 1, NOW + ASK_AGAIN_S - 1, NOW + ASK_AGAIN_S, NOW + ASK_AGAIN_S + 1)
    assert [trust.must_ask(now) for now in times] == [True, False, False, True, False]


def test_the_first_batch_after_a_loss_is_looked_up(trust: Trust, claim: Claim) -> None:
    assert trust.note(a_batch(FRESH_MS, PendingClaim(replace(claim, heals=True))), NOW)
    assert not trust.is_claim_proven


def test_a_claim_is_proven_by_the_answers_to_all_its_batches(trust: Trust, claim: Claim) -> None:
    proven = []
    pending = PendingClaim(claim)
    for timestamp_ms, completed in ((FRESH_MS, pending), (-1, None), (FRESH_MS, None), (FRESH_MS, PendingClaim(claim))):
        trust.note(a_batch(timestamp_ms, completed), NOW)
        proven.append(trust.is_claim_proven)
    assert proven == [True, False, False, True], "after a silent answer a batch of it may be a rival's"


def test_a_position_is_stale_when_nothing_confirmed_it_for_long(trust: Trust) -> None:
    assert not trust.is_stale(NOW + MAX_CONFIRMATION_AGE_S)
    assert trust.is_stale(NOW + MAX_CONFIRMATION_AGE_S + 0.01)
    late = a_batch(FRESH_MS)
    late.sent_at = NOW + 2
    trust.note(late, NOW + 60)
    assert not trust.is_stale(NOW + MAX_CONFIRMATION_AGE_S + 2)
    assert trust.is_stale(NOW + 60), "from when it was sent, not from when its answer was read"


@pytest.mark.parametrize(
    ("state_ms", "newest_ms", "guarded"),
    [(FRESH_MS, FRESH_MS, True), (None, FRESH_MS, False), (OLD_MS, FRESH_MS, False), (FRESH_MS, OLD_MS, False)],
)
def test_a_batch_is_guarded_if_the_state_before_it_and_after_it_is_fresh(
    trust: Trust, state_ms: int | None, newest_ms: int, guarded: bool
) -> None:
    trust.start(NOW, state_ms)
    assert trust.is_guarded(a_batch(newest_ms), NOW) is guarded
    trust.confirm(NOW, state_ms)
    assert trust.is_guarded(a_batch(newest_ms), NOW) is guarded


def test_what_guards_a_batch_is_the_state_that_the_last_one_sent_leaves(trust: Trust) -> None:
    """Also before it is acknowledged: a fresh batch behind an old one that is in flight would be read late."""
    trust.sent(a_batch(OLD_MS))
    assert not trust.is_guarded(a_batch(FRESH_MS), NOW)
    trust.sent(a_batch(FRESH_MS))
    assert trust.is_guarded(a_batch(FRESH_MS), NOW)
