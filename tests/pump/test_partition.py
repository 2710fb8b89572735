"""One partition's copy against a model of a target's leader: whatever happens, each record is there once, in order."""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from model_broker import (
    FRESH_AFTER_MS,
    FRESH_MS,
    MARKER,
    OLD_MS,
    ROUTE,
    Killed,
    Pump,
    Source,
    TargetLog,
    World,
    refused,
)

from sparkmirror.offsets.route import Bearings
from sparkmirror.pump.partition import BACKFILL_OFFSETS, MAX_CONFIRMATION_AGE_S, Stage
from sparkmirror.pump.quiet import GRACE_S

ERRORS = (6, 7, 10, 19, 56)
"""Not the leader, timed out (but appended), too large, too few replicas, a full disk."""

REFUSED_TIMESTAMP = 32
"""Only somebody who changes the target's settings can help."""


def a_world(batches: int = 12, timestamp_ms: int = FRESH_MS) -> World:
    return World(Source([(10, timestamp_ms)] * batches))


def running(world: World, *, unclean: bool = False) -> Pump:
    """A pump that has copied its first three batches and has fetched more."""
    pump = Pump(world, unclean=unclean)
    pump.start()
    if unclean and pump.copy.stage is Stage.SEEKING:
        world.now += GRACE_S
        pump.start()
    pump.fetch()
    pump.claim()
    pump.claimed()
    for _ in range(3):
        pump.send()
        pump.serve()
        pump.receive()
    pump.fetch()
    assert len(world.target.log) == 30
    return pump


def assert_exact(world: World) -> None:
    assert world.target.log == list(range(len(world.target.log)))


# --- a plain copy -------------------------------------------------------------------------------------


@pytest.mark.parametrize("timestamp_ms", [FRESH_MS, OLD_MS])
def test_a_copy_comes_to_its_end(timestamp_ms: int) -> None:
    world = a_world(timestamp_ms=timestamp_ms)
    pump = Pump(world)
    pump.finish()
    assert world.target.log == list(range(120))
    assert (pump.copy.records, pump.copy.acked_upstream, pump.copy.acked_downstream) == (120, 120, 120)
    assert pump.pool.in_use == 0


def test_what_is_thousands_of_offsets_behind_is_backfill_until_it_has_caught_up() -> None:
    """Without a byte of it: a fetch that is full of others' records tells only where the log ends."""
    behind, near = Pump(World(Source([(1000, FRESH_MS)] * 6))), Pump(a_world())
    for pump in (behind, near):
        pump.start()
    assert behind.copy.backfilling
    assert not near.copy.backfilling
    for end, backfilling in ((120, False), (120 + BACKFILL_OFFSETS, True)):
        frame = near.pool.take(64)
        near.copy.feed(frame, frame.view[:0], end)
        near.copy.prepare(near.world.now, lambda: False)
        assert near.copy.backfilling is backfilling
    behind.settle()
    assert len(behind.world.target.log) == 6000
    assert not behind.copy.backfilling


def test_the_claim_is_durable_before_the_first_batch_is_sent() -> None:
    pump = Pump(a_world())
    pump.start()
    pump.fetch()
    assert not pump.send()
    pump.claim()
    assert not pump.send()
    pump.claimed()
    assert pump.send()


def test_what_is_ready_is_sent_while_the_rest_of_an_answer_is_not() -> None:
    pump = Pump(a_world(batches=7))
    pump.start()
    pump.fetch(6, pieces=2)
    assert pump.copy.fetch_position() is None, "what is here comes first"
    assert (pump.claim(), pump.claimed(), len(pump.copy.queue)) == (True, True, 2)
    while pump.send():
        pump.serve()
        pump.receive()
    assert pump.world.target.log == list(range(20))
    assert pump.copy.backlog.unprepared
    pump.prepare()
    while pump.send():
        pump.serve()
        pump.receive()
    assert pump.world.target.log == list(range(60))
    position = pump.copy.fetch_position()
    assert position is not None
    assert position.offset == 60
    assert pump.pool.in_use == 0


def test_a_doubt_drops_what_is_not_made_ready_too() -> None:
    pump = Pump(a_world(batches=6))
    pump.start()
    pump.fetch(6, pieces=2)
    pump.copy.doubt("a lost connection", pump.world.now)
    assert not pump.copy.backlog.unprepared
    assert pump.pool.in_use == 0
    pump.finish()
    assert_exact(pump.world)


def test_the_source_log_may_start_anywhere() -> None:
    world = World(Source([(10, FRESH_MS)] * 3, start=1000))
    Pump(world).finish()
    assert world.target.log == list(range(1000, 1030))


def test_the_last_record_copied_is_not_what_was_passed_over_behind_it() -> None:
    """A gap, or a marker: the next offset is further on, but no record stands right before it."""
    world = a_world(batches=3)
    world.source.compact(5, 7)
    pump = Pump(world, until=20)
    assert pump.copy.last_copied == (-1, -1)
    pump.finish()
    assert pump.copy.acked_upstream == 20
    assert pump.copy.last_copied == (18, 16)
    assert world.target.log[16] == 18


def test_the_last_record_copied_is_not_known_before_a_silent_acknowledgement_is_looked_up() -> None:
    world = a_world(timestamp_ms=-1)
    pump = Pump(world)
    pump.start()
    pump.fetch()
    pump.claim()
    pump.claimed()
    pump.send()
    pump.serve()
    pump.receive()
    assert pump.copy.last_copied == (-1, -1)
    assert pump.ask()
    pump.hear()
    assert pump.copy.last_copied == (9, 9)


def test_the_last_record_copied_is_forgotten_where_the_source_has_another_one_there_now() -> None:
    """Its log was cut, or it was created again: the copy goes on elsewhere than behind that record."""
    world = a_world()
    pump = running(world)
    assert pump.copy.last_copied == (29, 29)
    found = world.target.bearings(world.source, world.now)
    assert isinstance(found, Bearings)
    pump.copy.take(found, world.now)
    assert pump.copy.last_copied == (29, 29)
    pump.copy.take(replace(found, resume_at=25), world.now)
    assert pump.copy.last_copied == (-1, -1)


# --- one batch alone (R3) -----------------------------------------------------------------------------


def test_the_first_batch_goes_alone_then_five_are_in_flight() -> None:
    pump = Pump(a_world())
    pump.start()
    pump.fetch(9)
    pump.claim()
    pump.claimed()
    assert [pump.send(), pump.send()] == [True, False]
    pump.serve()
    pump.receive()
    assert [pump.send() for _ in range(6)] == [True] * 5 + [False]


def test_what_was_fresh_at_the_start_is_old_when_the_pump_has_run_for_long() -> None:
    """Else, where the target keeps state for minutes only, the end of an epoch would send old records pipelined."""
    world = a_world()
    pump = running(world)
    assert pump.copy.sendable(world.now)
    while pump.copy.sendable(world.now):
        pump.send()
    assert len(pump.copy.in_flight) > 1
    for _ in range(len(pump.copy.in_flight)):
        pump.serve()
        pump.receive()
    world.now += (FRESH_MS - FRESH_AFTER_MS) / 1000 + 1
    pump.fetch()
    assert pump.ask()
    assert pump.hear()
    pump.send()
    assert not pump.copy.sendable(world.now)
    pump.serve()
    pump.receive()
    pump.send()
    assert not pump.copy.sendable(world.now)


@pytest.mark.parametrize("error", [6, 10, 19, 45, 56])
def test_after_a_refused_first_batch_nothing_is_sent_before_a_new_reading(error: int) -> None:
    world = a_world()
    pump = Pump(world)
    pump.start()
    pump.fetch()
    pump.claim()
    pump.claimed()
    pump.send()
    pump.serve(error)
    pump.receive()
    for _ in range(50):
        world.now += 0.5
        pump.fetch()
        assert not pump.send()
    pump.finish()
    assert_exact(world)


@pytest.mark.parametrize("error", [6, 7, 10, 19, 56])
def test_after_a_refusal_what_is_in_flight_is_drained_and_one_batch_goes_alone(error: int) -> None:
    world = a_world()
    pump = running(world)
    assert [pump.send() for _ in range(3)] == [True] * 3
    pump.serve(error)
    pump.serve()
    pump.receive()
    assert not pump.ask()
    pump.receive()
    pump.serve()
    pump.receive()
    world.now = max(world.now, pump.copy.seek_at)
    pump.start()
    pump.fetch()
    assert [pump.send(), pump.send()] == [True, False]
    pump.finish()
    assert_exact(world)
    assert pump.pool.in_use == 0


def test_a_parked_partition_is_not_read_while_something_is_in_flight() -> None:
    world = a_world()
    pump = running(world)
    pump.send()
    pump.send()
    pump.serve(REFUSED_TIMESTAMP)
    pump.receive()
    assert pump.copy.stage is Stage.PARKED
    world.now = pump.copy.seek_at
    assert not pump.ask()
    pump.serve()
    pump.receive()
    assert pump.ask()


def test_a_refusal_that_state_does_not_survive_loses_nothing() -> None:
    """Unguarded, the state may go between two batches in flight: then the second one is taken as a first one."""
    world = a_world(timestamp_ms=OLD_MS)
    pump = running(world)
    sent = [pump.send() for _ in range(3)]
    assert any(sent)
    pump.serve(19)
    world.target.expire()
    while pump.serve() or pump.receive():
        pass
    assert_exact(world)
    pump.finish()
    assert world.target.log == list(range(120))


def test_old_records_wait_until_nothing_is_in_flight() -> None:
    """Their arrival may be the end of the leader's state (R4)."""
    world = World(Source([(10, FRESH_MS)] * 5 + [(10, OLD_MS)] * 4))
    pump = running(world)
    assert [pump.send() for _ in range(3)] == [True, True, False]
    pump.serve()
    pump.receive()
    assert not pump.send()
    pump.serve()
    pump.receive()
    assert [pump.send(), pump.send()] == [True, False]


def test_over_a_log_that_is_cleaned_one_batch_goes_at_a_time() -> None:
    """A rival may have seen other records: ours would be a duplicate to the leader, but the next one would be taken."""
    world = a_world()
    world.source.cleaned = True
    pump = running(world)
    for _ in range(3):
        assert [pump.send(), pump.send()] == [True, False]
        pump.serve()
        pump.receive()


# --- the age of a position (R6) -----------------------------------------------------------------------


def test_a_position_that_is_too_old_is_read_again_before_anything_is_sent() -> None:
    world = a_world()
    pump = running(world)
    world.now += MAX_CONFIRMATION_AGE_S + 0.01
    assert not pump.send()
    pump.start()
    assert [pump.send(), pump.send()] == [True, False]


def test_a_claim_that_took_long_confirms_no_position() -> None:
    world = a_world()
    pump = Pump(world)
    pump.start()
    pump.fetch()
    pump.claim()
    world.now += MAX_CONFIRMATION_AGE_S + 1
    pump.claimed()
    assert not pump.send()
    pump.finish()
    assert_exact(world)


def test_a_reading_that_arrives_late_confirms_nothing() -> None:
    """It says what was true when it was asked, and its pump may have been suspended since."""
    world = a_world()
    pump = Pump(world)
    assert pump.ask()
    world.now += 3600
    pump.hear()
    pump.fetch()
    pump.claim()
    pump.claimed()
    assert not pump.send()
    pump.finish()
    assert_exact(world)


def test_an_acknowledgement_that_lay_in_the_socket_confirms_nothing() -> None:
    world = a_world(timestamp_ms=OLD_MS)
    pump = running(world)
    pump.send()
    pump.serve()
    world.now += 3600  # suspended
    rival = Pump(world, 2)
    rival.finish()
    world.target.expire()
    pump.receive()
    assert not pump.send()
    pump.serve()
    assert_exact(world)


# --- what is done (R10) -------------------------------------------------------------------------------


def test_what_the_leader_has_is_not_done_before_its_replicas_have_it() -> None:
    """The position is the leader's word: with it all this may vanish, while `--once` would have ended."""
    world = a_world()
    pump = running(world)
    while len(world.target.log) < 120:
        pump.fetch()
        while pump.send():
            pass
        pump.serve()
        if len(world.target.log) < 120:
            pump.receive()
    pump.lose()
    assert pump.copy.stage is not Stage.DONE
    for replicated in (False, False, True):
        world.now = max(world.now, pump.copy.seek_at)
        assert pump.ask()
        assert isinstance(pump.reading, Bearings)
        pump.reading = replace(pump.reading, replicated=replicated)
        pump.hear()


# --- the quiet rule (R5) ------------------------------------------------------------------------------


def test_unclean_and_unguarded_waits_for_two_equal_readings() -> None:
    world = a_world(timestamp_ms=OLD_MS)
    predecessor = running(world)
    heir = Pump(world, 2, unclean=True)
    heir.start()
    assert heir.copy.stage is Stage.SEEKING
    world.now += GRACE_S - 0.1
    assert not heir.ask()
    world.now += 0.1
    predecessor.world.target.append(bytes(predecessor.copy.send(world.now).view), world.now)  # it was still alive
    heir.start()
    assert heir.copy.stage is Stage.SEEKING
    world.now += GRACE_S
    heir.start()
    assert heir.fetch()
    heir.finish()
    assert world.target.log == list(range(120))


def test_unclean_and_guarded_does_not_wait() -> None:
    world = a_world()
    running(world)
    heir = Pump(world, 2, unclean=True)
    heir.start()
    assert heir.copy.stage is Stage.RUNNING
    heir.fetch()
    heir.claim()
    heir.claimed()
    assert heir.send()


@pytest.mark.parametrize("unclean", [True, False])
def test_after_an_unclean_takeover_what_comes_first_is_claimed(unclean: bool) -> None:
    """A predecessor that lives may go on from the same claim; of two that do the log could not tell which did (R14)."""
    world = a_world()
    running(world)
    heir = Pump(world, 2, unclean=unclean)
    heir.start()
    heir.fetch()
    assert bool(heir.copy.backlog.claims) == unclean
    heir.finish()
    assert_exact(world)


def old_after_fresh() -> tuple[World, Pump]:
    """An heir in flight with fresh records, about to meet old ones."""
    world = World(Source([(10, FRESH_MS)] * 4 + [(10, OLD_MS)] * 4))
    running(world)
    heir = Pump(world, 2, unclean=True)
    heir.start()
    heir.fetch(1)
    heir.claim()
    heir.claimed()
    assert heir.send()
    heir.fetch(1)
    assert heir.copy.stage is Stage.DRAINING
    return world, heir


def test_a_reading_from_before_the_quiet_time_does_not_end_it() -> None:
    """Nobody moved the position between two looks, but they were not far enough apart."""
    world = World(Source([(10, FRESH_MS)] * 4 + [(10, OLD_MS)] * 4))
    running(world)
    heir = Pump(world, 2, unclean=True)
    heir.start()
    heir.fetch(2, pieces=1)
    world.now += MAX_CONFIRMATION_AGE_S + 0.1  # its claim takes so long
    assert heir.ask()
    heir.prepare()
    assert heir.copy.stage is Stage.SEEKING
    quiet_since = world.now
    world.now += 0.1
    heir.hear()
    assert (heir.copy.stage, heir.copy.seek_at) == (Stage.SEEKING, quiet_since + GRACE_S)
    world.now = heir.copy.seek_at
    heir.start()
    assert heir.copy.fetch_position() is not None
    heir.finish()
    assert_exact(world)


def test_an_unclean_copy_waits_when_it_comes_to_old_records() -> None:
    world, heir = old_after_fresh()
    heir.serve()
    heir.receive()
    assert not heir.ask()
    world.now += GRACE_S
    heir.finish()
    assert world.target.log == list(range(80))
    assert heir.pool.in_use == 0


def test_a_lost_connection_does_not_cut_the_quiet_time_short() -> None:
    world, heir = old_after_fresh()
    quiet_since = world.now
    heir.lose(served=1)
    heir.settle()
    while heir.copy.stage is not Stage.DONE:
        world.now = max(world.now, heir.copy.seek_at)
        heir.settle()
    old_appends = world.target.appended_at[4:]
    assert min(old_appends) >= quiet_since + GRACE_S
    assert_exact(world)


# --- rivals (R2) --------------------------------------------------------------------------------------


def test_a_duplicate_success_is_a_rivals_and_is_read_again() -> None:
    world = a_world()
    pump = running(world)
    rival = Pump(world, 2)
    rival.start()
    rival.fetch()
    rival.send()
    rival.serve()
    pump.send()
    pump.serve()
    pump.receive()
    assert pump.copy.stage is Stage.SEEKING
    assert "a rival had already written source offset 30" in pump.copy.reason
    assert pump.copy.records == 30


def test_without_timestamps_an_acknowledgement_proves_nothing() -> None:
    """That of a duplicate is as that of a new batch: its claim is not confirmed, and the log is asked."""
    world = World(Source([(10, -1)] * 3))
    pump = Pump(world, until=None)
    rival = Pump(World(Source([(10, -1)] * 3, start=50), world.target), 1 << 40)
    for one in (pump, rival):
        one.start()
        one.fetch(1)
        one.claim()
        one.claimed()
    for one in (rival, pump):
        one.send()
        one.serve()
    pump.receive()
    assert pump.copy.confirmed == []
    assert pump.copy.last_copied == (-1, -1)
    pump.start()
    assert pump.copy.last_copied == (-1, -1)
    position = pump.copy.fetch_position()
    assert position is not None
    assert position.offset == 60


def test_a_batch_that_lands_elsewhere_is_a_doubt() -> None:
    pump = running(a_world())
    pump.send()
    pump.requests.clear()
    pump.answers.append(refused(0, base_offset=31))
    pump.receive()
    assert pump.copy.stage is Stage.SEEKING
    assert "landed at 31, not at 30" in pump.copy.reason


@pytest.mark.parametrize("landed", [0, 29, 31, 40])
def test_after_a_batch_that_lands_elsewhere_nothing_is_believed_before_a_new_reading(landed: int) -> None:
    """Below: a duplicate, or a log that was cut or is another topic's by now; above: somebody else's records (R18)."""
    world = a_world()
    pump = running(world)
    assert [pump.send() for _ in range(3)] == [True] * 3
    for _ in range(3):
        pump.serve()
    pump.answers[0] = pump.answers[0]._replace(base_offset=landed)
    pump.receive()
    assert f"landed at {landed}, not at 30" in pump.copy.reason
    assert not pump.ask(), "what is in flight comes back first"
    while pump.receive():
        assert not pump.send()
    assert pump.copy.stage is Stage.SEEKING
    assert (pump.copy.records, pump.copy.acked_downstream, pump.copy.appended[1]) == (30, 30, 30)
    for _ in range(20):
        world.now += 0.5
        assert [pump.fetch(), pump.send()] == [False, False]
    assert pump.ask()
    assert [pump.fetch(), pump.send()] == [False, False], "it is asked, but not told"
    pump.hear()
    assert pump.copy.acked_downstream == 60
    assert pump.fetch()
    assert [pump.send(), pump.send()] == [True, False]
    pump.finish()
    assert world.target.log == list(range(120))


def test_a_position_is_confirmed_only_where_it_leads_to_the_same_record() -> None:
    """A rival's claim for the same sequence may have begun at another source offset."""
    world = a_world()
    pump = running(world)
    world.now += MAX_CONFIRMATION_AGE_S + 1
    assert pump.ask()
    reading = pump.reading
    assert isinstance(reading, Bearings)
    pump.reading = replace(reading, position=replace(reading.position, upstream=50), resume_at=50)
    pump.hear()
    assert not pump.send()
    pump.fetch()
    assert pump.copy.queue[0].upstream == 50


@pytest.mark.parametrize("source_id", [b"n" * 16, None])
def test_what_was_fetched_of_a_source_topic_that_is_gone_is_not_sent(source_id: bytes | None) -> None:
    """It was created again while a queue waited: what leads to the queue's first record is no confirmation."""
    world = a_world()
    pump = running(world)
    assert pump.copy.queue
    world.now += MAX_CONFIRMATION_AGE_S + 1
    assert pump.ask()
    reading = pump.reading
    assert isinstance(reading, Bearings)
    pump.reading = replace(reading, resume_at=0, source_topic_id=source_id or reading.source_topic_id)
    pump.hear()
    assert not pump.copy.queue
    position = pump.copy.fetch_position()
    assert position is not None
    assert position.offset == 0


def test_what_was_fetched_behind_a_seam_is_sent_though_its_position_has_to_be_read_again() -> None:
    """Until the first batch behind it is there the position is still that of the source topic before."""
    world = a_world()
    pump = running(world)
    pump.copy.drop_queue()
    pump.lose()
    for _ in range(3):
        world.now = max(world.now, pump.copy.seek_at) + MAX_CONFIRMATION_AGE_S + 1
        assert pump.ask()
        reading = pump.reading
        assert isinstance(reading, Bearings)
        seam = replace(reading.position, upstream=500, claim_due=True)
        pump.reading = replace(reading, position=seam, resume_at=0, source_topic_id=b"n" * 16)
        pump.hear()
        pump.fetch()
        pump.claim()
        pump.claimed()
    assert pump.copy.queue
    assert pump.send()


def test_a_copy_from_the_end_does_not_begin_at_todays_end_of_a_target_that_is_new() -> None:
    """Where it began is looked up by the driver, and claimed."""
    pump = Pump(a_world())
    pump.copy._from_latest = True  # noqa: SLF001 - the model knows no other start
    pump.copy.appended = b"o" * 16, 30
    pump.start()
    assert pump.copy.acked_upstream == -1
    assert "its target topic is a new one" in pump.copy.reason
    pump.copy.appended = b"", -1
    pump.world.now = pump.copy.seek_at
    pump.start()
    assert pump.copy.acked_upstream == pump.world.source.end


def test_what_the_leader_told_of_our_records_is_known_from_then_on() -> None:
    world = a_world()
    pump = running(world)
    assert pump.copy.appended[1] == 30
    other = Pump(world, 2)
    other.copy.appended = pump.copy.appended[0], 10
    other.start()
    assert other.copy.appended == (pump.copy.appended[0], 30)


@pytest.mark.parametrize(("known", "goes_on"), [(30, False), (33, True), (34, True), (-1, True)])
def test_an_empty_log_that_ends_behind_what_is_known_to_be_ours_is_parked(known: int, goes_on: bool) -> None:
    world = a_world()
    pump = running(world)
    pump.lose()
    world.now = max(world.now, pump.copy.seek_at)
    assert pump.ask()
    reading = pump.reading
    assert isinstance(reading, Bearings)
    pump.copy.appended = (reading.target_topic_id, known)
    pump.reading = replace(reading, position=replace(reading.position, end=33, supposed=True))
    pump.hear()
    assert (pump.copy.stage is Stage.PARKED) != goes_on
    if not goes_on:
        assert "offsets 30 to 32 may have been somebody else's" in pump.copy.reason


def test_where_we_were_fenced_an_empty_log_alone_tells_nothing() -> None:
    """A marker may have gone with the records before anybody noted it: it would be taken for one of them."""
    world = a_world()
    pump = running(world)
    pump.lose()
    world.now = max(world.now, pump.copy.seek_at)
    assert pump.ask()
    reading = pump.reading
    assert isinstance(reading, Bearings)
    pump.copy.appended = reading.target_topic_id, -1
    pump.copy._was_fenced = True  # noqa: SLF001 - the copy's identity has nobody before it
    pump.reading = replace(reading, position=replace(reading.position, end=33, supposed=True))
    pump.hear()
    assert pump.copy.stage is Stage.PARKED
    assert "markers of a fence" in pump.copy.reason


def test_a_rivals_claim_alone_moves_nothing() -> None:
    world = a_world()
    pump = Pump(world)
    pump.start()
    pump.fetch()
    world.now += MAX_CONFIRMATION_AGE_S + 1
    rival = Pump(World(Source([(10, FRESH_MS)] * 3, start=50), world.target), 2)
    rival.start()
    rival.fetch()
    rival.claim()
    pump.start()
    pump.claim()
    pump.claimed()
    assert pump.send()
    assert pump.copy.in_flight[0].upstream == 0


# --- anything in any order ----------------------------------------------------------------------------


class Copies(RuleBasedStateMachine):
    """Faults, delays and rivals in any order; at the end the faults stop and all is there."""

    rivals = 1
    timestamp_ms = FRESH_MS
    in_flight = 5
    merges = False
    """Every other pump merges tiny batches."""
    gaps = False
    """The source's log has some from the beginning."""
    cleaned = False
    """Its cleaner makes more while it is copied."""

    def __init__(self) -> None:
        super().__init__()
        self.world = a_world()
        self.pumps: list[Pump] = []
        self.numbers = itertools.count(1)
        self.zombies: list[bytes] = []
        """What pumps that died had sent."""

    @initialize(
        sizes=st.lists(st.integers(1, 7), min_size=5, max_size=60),
        start=st.integers(0, 5),
        most=st.sampled_from([80, 120, 1000]),
    )
    def begin(self, sizes: list[int], start: int, most: int) -> None:
        self.world = World(Source([(size, self.timestamp_ms) for size in sizes], start), TargetLog())
        self.world.source.cleaned = self.cleaned
        if self.gaps:
            self.world.source.compact(start + 3, 4)
            self.world.source.compact(start + 20, 3)
        if self.merges:
            self.world.target.max_bytes = most
        self.pumps = [self.another() for _ in range(1 + self.rivals)]

    def another(self, *, unclean: bool = False) -> Pump:
        number = next(self.numbers)
        return Pump(
            self.world,
            number << 40,
            in_flight=self.in_flight,
            unclean=unclean,
            merge_tiny=self.merges and number % 2 > 0,
        )

    def pump(self, which: int) -> Pump:
        return self.pumps[which % len(self.pumps)]

    @rule(which=st.integers(0, 3))
    def asks(self, which: int) -> None:
        self.pump(which).ask()

    @rule(which=st.integers(0, 3))
    def hears(self, which: int) -> None:
        self.pump(which).hear()

    @rule(which=st.integers(0, 3), batches=st.integers(1, 12), pieces=st.integers(1, 12))
    def fetches(self, which: int, batches: int, pieces: int) -> None:
        self.pump(which).fetch(batches, pieces)

    @rule(which=st.integers(0, 3), pieces=st.integers(1, 5))
    def prepares(self, which: int, pieces: int) -> None:
        self.pump(which).prepare(pieces)

    @rule(which=st.integers(0, 3))
    def claims(self, which: int) -> None:
        self.pump(which).claim()

    @rule(which=st.integers(0, 3))
    def hears_of_its_claim(self, which: int) -> None:
        self.pump(which).claimed()

    @rule(which=st.integers(0, 3), times=st.integers(1, 5))
    def sends(self, which: int, times: int) -> None:
        pump = self.pump(which)
        for _ in range(times):
            if pump.send():
                assert len(pump.copy.in_flight) <= self.in_flight

    @rule(which=st.integers(0, 3))
    def has_all_in_flight(self, which: int) -> None:
        pump = self.pump(which)
        for step in (pump.ask, pump.hear, pump.fetch, pump.claim, pump.claimed, pump.send, pump.serve, pump.receive):
            step()
        pump.fetch(6)
        while pump.send():
            pass

    @rule(which=st.integers(0, 3), times=st.integers(1, 5))
    def is_served(self, which: int, times: int) -> None:
        for _ in range(times):
            self.pump(which).serve()

    @rule(which=st.integers(0, 3), error=st.sampled_from(ERRORS))
    def is_refused(self, which: int, error: int) -> None:
        self.pump(which).serve(error)

    @rule(which=st.integers(0, 3), times=st.integers(1, 5))
    def receives(self, which: int, times: int) -> None:
        for _ in range(times):
            self.pump(which).receive()

    @rule(which=st.integers(0, 3))
    def confirms(self, which: int) -> None:
        self.pump(which).confirm()

    @rule(which=st.integers(0, 3))
    def dies(self, which: int) -> None:
        """What it has sent may arrive yet; an heir takes over, who knows nothing of it."""
        dead = self.pump(which)
        self.zombies += dead.requests
        dead.copy.give_up()
        self.pumps[which % len(self.pumps)] = self.another(unclean=True)

    @rule(which=st.integers(0, 3), written=st.integers(0, 4))
    def dies_while_it_settles_claims(self, which: int, written: int) -> None:
        self.world.target.killed_after = written
        with contextlib.suppress(Killed):
            self.pump(which).ask()
        self.world.target.killed_after = -1
        self.dies(which)

    @precondition(lambda self: self.zombies and self.timestamp_ms == FRESH_MS)
    @rule()
    def arrives_late(self) -> None:
        self.world.target.append(self.zombies.pop(0), self.world.now)

    @precondition(lambda self: self.cleaned)
    @rule(first=st.integers(0, 100), step=st.integers(2, 5))
    def is_cleaned(self, first: int, step: int) -> None:
        self.world.source.compact(first, step)

    @rule(which=st.integers(0, 3), served=st.integers(0, 5))
    def loses_its_connection(self, which: int, served: int) -> None:
        self.pump(which).lose(served)

    @rule(which=st.integers(0, 3))
    def goes_on(self, which: int) -> None:
        self.pump(which).settle()

    @rule(seconds=st.sampled_from([0.1, 1.0, 3.5, 6.0]))
    def time_passes(self, seconds: float) -> None:
        self.world.now += seconds

    @precondition(lambda self: self.timestamp_ms == OLD_MS)
    @rule()
    def state_expires(self) -> None:
        self.world.target.expire()

    @invariant()
    def each_record_is_there_once_in_order(self) -> None:
        log, source = self.world.target.copied, self.world.source
        assert log == sorted(set(log))
        if log:
            assert set(log) >= {offset for offset in source.offsets if offset <= log[-1]}

    @invariant()
    def its_claims_tell_where_each_record_came_from(self) -> None:
        assert self.world.target.truth() == self.world.target.copied

    @invariant()
    def the_last_record_copied_is_where_it_is_said_to_be(self) -> None:
        for pump in self.pumps:
            upstream, downstream = pump.copy.last_copied
            assert upstream < 0 or self.world.target.log[downstream] == upstream

    def teardown(self) -> None:
        for pump in self.pumps:
            pump.finish()
            assert pump.pool.in_use == 0
        self.each_record_is_there_once_in_order()
        self.its_claims_tell_where_each_record_came_from()
        assert set(self.world.target.copied) >= set(self.world.source.offsets)


class OldRecords(Copies):
    """State goes at any moment; one pump alone."""

    rivals = 0
    timestamp_ms = OLD_MS


class Fences(Copies):
    """Old records, whose state goes at any moment, and who was fenced lives on (R16): nobody waits for anybody."""

    rivals = 0
    timestamp_ms = OLD_MS

    @rule()
    def is_taken_over(self) -> None:
        """By somebody who fences all; those are as alive as before, and know nothing of it."""
        target = self.world.target
        if target.claims:  # else nobody may have sent anything, and there is nobody to be fenced
            target.is_succeeded()
            for producer in target.unfenced:
                target.fence(producer)
            self.pumps.append(self.another(unclean=True))

    def another(self, *, unclean: bool = False) -> Pump:
        fenced = bool(self.world.target.identity.former)
        return Pump(self.world, next(self.numbers) << 40, unclean=unclean, fenced=fenced)

    @rule(which=st.integers(0, 3))
    def dies(self, which: int) -> None:
        """Whoever that is was fenced, or will be by its heir."""
        dead = self.pump(which)
        self.zombies += dead.requests
        dead.copy.give_up()
        self.pumps.remove(dead)
        self.is_taken_over()
        if not self.pumps:
            self.pumps.append(self.another(unclean=True))

    @precondition(lambda self: self.zombies)
    @rule()
    def arrives_late(self) -> None:
        self.world.target.append(self.zombies.pop(0), self.world.now)

    def teardown(self) -> None:
        """Who was fenced has ended."""
        for pump in self.pumps[:-1]:
            pump.copy.give_up()
        del self.pumps[:-1]
        super().teardown()


class Gaps(Copies):
    """As transaction markers leave them; batches are merged, and what is too large is split."""

    merges = gaps = True


class CleanedLogs(Copies):
    """Rivals see different logs: the cleaner has been there between their fetches."""

    rivals = 2
    merges = gaps = cleaned = True


class LosingTargets(CleanedLogs):
    """Unclean elections at the target, too: what was acknowledged and confirmed is gone, and all connections break."""

    rivals = 1

    @rule(records=st.integers(1, 30))
    def is_lost(self, records: int) -> None:
        self.world.target.lose(records)
        self.zombies.clear()
        for which, pump in enumerate(self.pumps):
            pump.reading = None
            pump.copy.asked_at = None
            pump.lose()
            if pump.copy.stage is Stage.RUNNING:
                pump.copy.doubt("the connection broke", self.world.now)
            elif pump.copy.stage is Stage.DONE:
                self.pumps[which] = self.another()

    @invariant()
    def the_last_record_copied_is_where_it_is_said_to_be(self) -> None:
        """Until somebody has looked again it is not known that it is gone."""


class Strangers(Gaps):
    """Somebody else writes to the target, too: behind our first record, at any moment."""

    @precondition(lambda self: self.world.target.copied)
    @rule(records=st.integers(1, 3))
    def is_written_by_somebody_else(self, records: int) -> None:
        self.world.target.is_written_by_somebody_else(records)

    @rule(which=st.integers(0, 3))
    def asks(self, which: int) -> None:
        if self.pump(which).ask() and isinstance(self.pump(which).reading, Bearings):
            self.whose_is_what_is_known()

    @invariant()
    def nothing_is_taken_for_lost(self) -> None:
        assert not self.world.target.said_lost

    def whose_is_what_is_known(self) -> None:
        log = self.world.target.log
        assert self.world.target.places() == [offset for offset, one in enumerate(log) if one >= 0]
        noted = {
            offset: one.fence
            for one in self.world.target.notes.known(ROUTE.target)
            for offset in range(one.first, one.end)
        }
        assert noted == {offset: one == MARKER for offset, one in enumerate(log) if one < 0}

    def teardown(self) -> None:
        super().teardown()
        if self.another().ask():
            self.whose_is_what_is_known()


class FencesAmongStrangers(Fences, Strangers):
    """Markers and somebody else's records side by side, told apart."""


class LosingTargetsWithStrangers(LosingTargets, Strangers):
    """What somebody else wrote may be lost as well."""

    @invariant()
    def nothing_is_taken_for_lost(self) -> None:
        """It may well be."""


def test_what_lay_behind_a_strangers_records_is_found_where_they_are_lost_as_well() -> None:
    """Lost, copied again behind a stranger's record, and lost with it: older claims say that it lies farther back."""
    flow = LosingTargetsWithStrangers()
    flow.begin(sizes=[1, 1, 1, 1, 1], start=0, most=80)
    flow.goes_on(which=0)
    flow.is_lost(records=3)
    flow.is_written_by_somebody_else(records=1)
    flow.goes_on(which=0)
    flow.is_lost(records=4)
    assert not flow.world.target.log
    flow.goes_on(which=0)
    assert flow.world.target.places() == [0, 1, 2, 3]
    flow.teardown()


def test_what_strangers_wrote_is_not_known_any_more_when_the_target_has_lost_it() -> None:
    """Ours take its place: taken for theirs, they would be copied again when the log is emptied and its state gone."""
    flow = LosingTargetsWithStrangers()
    flow.begin(sizes=[1] * 9, start=0, most=80)
    flow.goes_on(which=0)
    flow.is_written_by_somebody_else(records=2)
    flow.dies(which=0)
    flow.asks(which=0)
    target = flow.world.target
    assert target.notes.known(ROUTE.target) == [(len(target.log) - 2, len(target.log), False)]
    flow.is_lost(records=1)
    flow.asks(which=0)
    assert target.notes.known(ROUTE.target) == []
    flow.teardown()
    assert -1 not in target.log


def test_strangers_who_write_where_our_lost_records_were_are_told_from_them() -> None:
    """As far as older claims lead, the log is somebody else's now; our last sequence tells that."""
    flow = LosingTargetsWithStrangers()
    flow.begin(sizes=[1] * 11, start=0, most=80)
    flow.goes_on(which=0)
    flow.is_lost(records=6)
    flow.is_written_by_somebody_else(records=1)
    flow.goes_on(which=0)
    flow.is_lost(records=7)
    flow.is_written_by_somebody_else(records=2)
    flow.teardown()


SETTINGS = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestRivalsWithFreshRecords = Copies.TestCase
TestRivalsWithFreshRecords.settings = SETTINGS
TestOnePumpWithOldRecords = OldRecords.TestCase
TestOnePumpWithOldRecords.settings = SETTINGS
TestFencedWithOldRecords = Fences.TestCase
TestFencedWithOldRecords.settings = SETTINGS
TestLogsWithGaps = Gaps.TestCase
TestLogsWithGaps.settings = SETTINGS
TestLogsThatAreCleaned = CleanedLogs.TestCase
TestLogsThatAreCleaned.settings = SETTINGS
TestTargetsThatLose = LosingTargets.TestCase
TestTargetsThatLose.settings = SETTINGS
TestStrangersInTheCopy = Strangers.TestCase
TestStrangersInTheCopy.settings = SETTINGS
TestFencesAmongStrangers = FencesAmongStrangers.TestCase
TestFencesAmongStrangers.settings = SETTINGS
TestStrangersInWhatIsLost = LosingTargetsWithStrangers.TestCase
TestStrangersInWhatIsLost.settings = SETTINGS
