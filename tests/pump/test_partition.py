"""One partition's copy against a model of a target's leader: whatever happens, each record is there once, in order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model_broker import FRESH_AFTER_MS, FRESH_MS, OLD_MS, Source
from model_pump import Pump, World, a_world, assert_exact, running

from sparkmirror.exact.position.cause import Cause
from sparkmirror.exact.position.route import PartitionReading
from sparkmirror.pump.source_side import BACKFILL_OFFSETS
from sparkmirror.pump.stage import Stage
from sparkmirror.pump.trust import MAX_CONFIRMATION_AGE_S, Stamping

REFUSED_TIMESTAMP = 32
"""Only somebody who changes the target's settings can help."""


# --- a plain copy -------------------------------------------------------------------------------------


@pytest.mark.parametrize("timestamp_ms", [FRESH_MS, OLD_MS])
def test_a_copy_comes_to_its_end(timestamp_ms: int) -> None:
    world = a_world(timestamp_ms=timestamp_ms)
    pump = Pump(world)
    pump.finish()
    assert world.target.log == list(range(120))
    assert (pump.copy.progress.records, pump.copy.progress.upstream, pump.copy.progress.downstream) == (120, 120, 120)
    assert pump.pool.in_use == 0


def test_what_is_thousands_of_offsets_behind_is_backfill_until_it_has_caught_up() -> None:
    """Without a byte of it: a fetch that is full of others' records tells only where the log ends."""
    behind, near = Pump(World(Source([(1000, FRESH_MS)] * 6))), Pump(a_world())
    for pump in (behind, near):
        pump.start()
    assert behind.copy.backfilling
    assert not near.copy.backfilling
    for end, backfilling in ((BACKFILL_OFFSETS - 1, False), (BACKFILL_OFFSETS, True)):
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
    assert not pump.copy.is_idle, "it is claimed, and not sent"
    assert pump.send()


@pytest.mark.parametrize(("batches", "backfilling"), [(9, False), (10, True)])
def test_a_copy_that_starts_as_far_from_the_end_as_backfill_is_belongs_to_it(batches: int, backfilling: bool) -> None:
    size = BACKFILL_OFFSETS // 10
    pump = Pump(World(Source([(size, FRESH_MS)] * batches)))
    pump.start()
    assert pump.copy.backfilling is backfilling


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
    before = pump.copy.last_copied
    assert before is None
    pump.finish()
    assert pump.copy.progress.upstream == 20
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
    assert pump.copy.last_copied is None
    assert pump.ask()
    pump.hear()
    assert pump.copy.last_copied == (9, 9)


def test_the_last_record_copied_is_forgotten_where_the_source_has_another_one_there_now() -> None:
    """Its log was cut, or it was created again: the copy continues elsewhere than behind that record."""
    world = a_world()
    pump = running(world)
    assert pump.copy.last_copied == (29, 29)
    found = world.target.partition_reading(world.source, world.now)
    assert isinstance(found, PartitionReading)
    pump.copy.take(found, world.now)
    assert pump.copy.last_copied == (29, 29)
    pump.copy.take(replace(found, resume_at=25), world.now)
    assert pump.copy.last_copied is None


# --- one batch alone (R3) -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "stamping"),
    [
        ({"message.timestamp.type": "CreateTime"}, Stamping.CREATE_TIME),
        ({"message.timestamp.type": "LogAppendTime"}, Stamping.LOG_APPEND_TIME),
        ({}, Stamping.UNKNOWN),
    ],
)
def test_a_target_that_does_not_tell_whether_it_stamps_may_do_so(settings: dict[str, str], stamping: Stamping) -> None:
    """Without DESCRIBE_CONFIGS, each append time would seem to be of a rival's batch, for ever."""
    pump = running(a_world())
    assert pump.send()
    assert pump.serve()
    pump.answers[0] = pump.answers[0]._replace(log_append_time_ms=FRESH_MS)
    assert pump.receive()
    pump.ready()
    assert pump.copy.trust.stamping is Stamping.UNKNOWN, "the question may fail"
    assert pump.question is not None
    pump.copy.trust.learn(settings)
    assert pump.copy.trust.stamping is stamping


def test_an_end_that_is_reached_while_the_position_is_read_waits_for_it() -> None:
    """Of a partition that leaves: what was to be sent is dropped, so that nothing but the reading is on its way."""
    pump = running(a_world())
    pump.world.now += 2 * MAX_CONFIRMATION_AGE_S
    assert pump.ask()
    pump.copy.drop_unsent()
    pump.copy.end_at(30, pump.world.now)
    stages = [pump.copy.stage]
    assert pump.hear()
    assert [*stages, pump.copy.stage] == [Stage.RUNNING, Stage.DONE]
    assert_exact(pump.world)


def test_a_position_above_the_high_watermark_is_none() -> None:
    """An election in order may take its records: it is not told, not confirmed, not the end, and read again (R10)."""
    world = a_world(4)
    Pump(world, until=None).settle()
    world.target.lags()
    world.target.replicated = 30
    heir = Pump(world, 2, until=None)
    heir.start()
    assert (heir.copy.stage, heir.copy.progress.upstream) == (Stage.SEEKING, None)
    assert heir.copy.trouble.cause is Cause.NOT_ENOUGH_REPLICAS
    heir.copy.end_at(40, world.now)
    world.now = heir.copy.retry.at
    heir.start()
    assert heir.copy.stage is Stage.SEEKING
    world.target.elects()
    heir.finish()
    assert heir.copy.progress.upstream == 40
    assert world.target.log == list(range(40))


def test_a_copy_at_work_does_not_trust_a_position_above_the_high_watermark() -> None:
    pump = running(a_world())
    pump.world.now += 2 * MAX_CONFIRMATION_AGE_S
    pump.world.target.replicated = 20
    assert pump.ask()
    assert pump.hear()
    assert pump.copy.stage is Stage.SEEKING
    pump.world.target.catches_up()
    pump.finish()
    assert_exact(pump.world)


@pytest.mark.parametrize("idle_s", [1.0, 2 * MAX_CONFIRMATION_AGE_S])
def test_an_end_behind_which_nothing_is_to_be_copied_is_believed_only_from_a_position_that_is_young(
    idle_s: float,
) -> None:
    """The target may have lost what it acknowledged, and told nobody who sends nothing (R10)."""
    world = a_world(4)
    pump = Pump(world, until=None)
    pump.settle()
    stages = [pump.copy.stage]
    world.now += idle_s
    pump.copy.end_at(40, world.now)
    is_old = idle_s > MAX_CONFIRMATION_AGE_S
    assert [*stages, pump.copy.stage] == [Stage.RUNNING, Stage.SEEKING if is_old else Stage.DONE]
    if is_old:
        world.target.lose(10)
        pump.finish()
        assert world.target.log == list(range(40))


@pytest.mark.parametrize("idle_s", [1.0, 2 * MAX_CONFIRMATION_AGE_S])
def test_only_a_young_position_is_handed_over_without_a_reading(idle_s: float) -> None:
    """The next task would take an end for reached that the target may have lost since (R6, R10)."""
    pump = Pump(a_world(4), until=None)
    pump.settle()
    assert (pump.copy.settled(pump.world.now + idle_s) is None) is (idle_s > MAX_CONFIRMATION_AGE_S)


def test_a_loss_that_a_reading_shows_confirms_no_copy_at_work() -> None:
    """A rival's confirmed records lay behind this place and are gone: what comes next must be claimed as healing."""
    world = a_world()
    pump = running(world)
    queued = [batch.sequence for batch in pump.copy.queue]
    rival = Pump(world, 2 << 40, until=None, unclean=True)
    rival.settle()
    assert world.target.log == list(range(120))
    world.target.lose(90)
    world.now += 2 * MAX_CONFIRMATION_AGE_S
    assert (queued[0], len(world.target.log)) == (30, 30)
    pump.start()
    assert [batch.sequence for batch in pump.copy.queue] == [], "fetched again, to be claimed"
    pump.fetch()
    assert pump.copy.backlog.claims[0].claim.heals
    pump.finish()
    assert_exact(world)


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
    """Else, where the target keeps state for minutes only, the end of a round would send old records pipelined."""
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
    world.now = max(world.now, pump.copy.retry.at)
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
    world.now = pump.copy.retry.at
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
        world.now = max(world.now, pump.copy.retry.at)
        assert pump.ask()
        assert isinstance(pump.reading, PartitionReading)
        pump.reading = replace(pump.reading, replicated=replicated)
        pump.hear()
