"""One partition's copy against a model of a target's leader: whatever happens, each record is there once, in order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model_broker import (
    FRESH_AFTER_MS,
    FRESH_MS,
    OLD_MS,
    TARGET_ID,
    Pump,
    Source,
    World,
    refused,
)

from sparkmirror.offsets.losses import LossKind
from sparkmirror.offsets.route import Bearings, Remembered
from sparkmirror.pump.partition import BACKFILL_OFFSETS, MAX_CONFIRMATION_AGE_S, Stage
from sparkmirror.pump.quiet import GRACE_S

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
    other = Pump(world, 3, remembered=Remembered(appended=(TARGET_ID, 40)))
    other.start()
    assert other.copy.appended == (pump.copy.appended[0], 30), "what was lost is named, and gone"
    (loss,) = world.target.ledger.read()
    assert (loss.kind, loss.first, loss.end) == (LossKind.TARGET_TRUNCATED, 30, 40)


@pytest.mark.parametrize(
    ("known", "why"),
    [
        (30, "offsets 30 to 32 may have been somebody else's"),
        (33, ""),
        (-1, ""),
    ],
)
def test_an_empty_log_that_ends_behind_what_is_known_to_be_ours_is_parked(known: int, why: str) -> None:
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
    assert (pump.copy.stage is Stage.PARKED) == bool(why)
    assert why in pump.copy.reason


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
