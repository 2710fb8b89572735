"""One partition's copy next to pumps that may still be alive, and what only a rival explains (R2, R5)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model_broker import FRESH_MS, OLD_MS, TARGET_ID, Source, refused
from model_pump import Pump, World, a_world, assert_exact, running

from sparkmirror.exact.durable.losses import LossKind
from sparkmirror.exact.durable.noted_progress import ReportedProgress
from sparkmirror.exact.position.cause import Cause
from sparkmirror.exact.position.route import PartitionReading
from sparkmirror.pump.quiet import GRACE_S, LATE_S
from sparkmirror.pump.stage import Stage
from sparkmirror.pump.trust import MAX_CONFIRMATION_AGE_S, Stamping


def asked(pump: Pump) -> PartitionReading:
    """The answer on where it stands, which is still on its way to it."""
    assert pump.ask()
    assert isinstance(pump.reading, PartitionReading)
    return pump.reading


def asked_after_a_break() -> tuple[Pump, PartitionReading]:
    """A pump at work whose connection broke, and the same."""
    world = a_world()
    pump = running(world)
    pump.lose()
    world.now = max(world.now, pump.copy.retry.at)
    return pump, asked(pump)


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


def test_after_a_loss_at_the_source_even_fresh_records_wait() -> None:
    """A predecessor that lives may have fetched other records for the same sequences, and no check tells them apart."""
    world = a_world()
    running(world)
    heir = Pump(world, 2, unclean=True)
    heir.reading = replace(asked(heir), resume_at=35)
    heir.hear()
    assert (heir.copy.stage, heir.copy.trouble.cause) == (Stage.SEEKING, Cause.PREDECESSOR)
    assert heir.copy.retry.at == world.now + GRACE_S


@pytest.mark.parametrize("unclean", [True, False])
def test_after_an_unclean_takeover_what_comes_first_is_claimed(unclean: bool) -> None:
    """A predecessor that lives may continue from the same claim; of two that do, the log could not tell which (R14)."""
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
    began_at = world.now
    heir = Pump(world, 2, unclean=True)
    heir.start()
    heir.fetch(2, pieces=1)
    world.now += MAX_CONFIRMATION_AGE_S + 0.1  # its claim takes so long
    assert heir.ask()
    heir.prepare()
    assert heir.copy.stage is Stage.SEEKING
    world.now += 0.1
    heir.hear()
    assert (heir.copy.stage, heir.copy.retry.at) == (Stage.SEEKING, began_at + LATE_S)
    world.now = heir.copy.retry.at
    heir.start()
    assert heir.copy.fetch_position() is not None
    heir.finish()
    assert_exact(world)


def test_an_unclean_copy_waits_when_it_comes_to_old_records() -> None:
    world, heir = old_after_fresh()
    heir.serve()
    heir.receive()
    assert not heir.ask()
    world.now += LATE_S - 0.1
    assert not heir.ask(), "a predecessor's pipelined request may arrive as late"
    world.now += 0.1
    heir.finish()
    assert world.target.log == list(range(80))
    assert heir.pool.in_use == 0


def test_a_lost_connection_does_not_cut_the_quiet_time_short() -> None:
    world, heir = old_after_fresh()
    quiet_since = world.now
    heir.lose(served=1)
    heir.settle()
    while heir.copy.stage is not Stage.DONE:
        world.now = max(world.now, heir.copy.retry.at)
        heir.settle()
    old_appends = world.target.appended_at[4:]
    assert min(old_appends) >= quiet_since + LATE_S
    assert_exact(world)


@pytest.mark.parametrize("timestamp_ms", [OLD_MS, FRESH_MS])
def test_what_a_broken_connection_may_still_bring_is_waited_for(timestamp_ms: int) -> None:
    """No state tells it from the batch that is sent again, if both are old and the state expires in between."""
    world = a_world(timestamp_ms=timestamp_ms)
    pump = running(world)
    assert pump.send()
    pump.lose()
    lost_at, copied = world.now, len(world.target.log)
    pump.settle()
    is_guarded = timestamp_ms == FRESH_MS
    assert (len(world.target.log) > copied) is is_guarded
    assert pump.copy.may_be_written_to(world.now)
    if not is_guarded:
        world.target.expire()
        world.arrives_late()
    pump.finish()
    assert (min(world.target.appended_at[4:]) >= lost_at + GRACE_S) is not is_guarded
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
    assert "a rival had already written source offset 30" in pump.copy.trouble.reason
    assert pump.copy.progress.records == 30


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
    pump.ready()
    assert pump.confirming == []
    assert pump.copy.last_copied is None
    pump.start()
    assert pump.copy.last_copied is None
    position = pump.copy.fetch_position()
    assert position is not None
    assert position.offset == 60


def test_a_target_that_does_not_tell_whether_it_stamps_has_each_batch_looked_up() -> None:
    """A rival has appended as many records, but others: its source was compacted before it read there."""
    world = a_world()
    pump = running(world)
    pump.copy.trust.stamping = Stamping.UNKNOWN
    rival = Pump(World(Source([(10, FRESH_MS)] * 3, start=60), world.target), 1 << 40)
    rival.start()
    rival.fetch(1)
    rival.claim()
    rival.claimed()
    for one in (rival, pump):
        assert one.send()
        assert one.serve()
    assert pump.receive()
    pump.ready()
    assert pump.question is not None, "the right to read the settings may have come"
    pump.start()
    position = pump.copy.fetch_position()
    assert position is not None
    assert position.offset == 70


def test_a_target_that_stamps_and_does_not_tell_gets_every_batch() -> None:
    world = a_world()
    pump = Pump(world)
    pump.copy.trust.stamping = Stamping.UNKNOWN
    append = world.target.append
    world.target.append = lambda sent, now: append(sent, now)._replace(log_append_time_ms=FRESH_MS)  # type: ignore[method-assign]
    pump.finish()
    assert pump.copy.stage is Stage.DONE
    assert_exact(world)


def test_a_rival_beside_a_target_that_does_not_tell_whether_it_stamps() -> None:
    """First it appends the same, then as many others: its source was compacted before it read there."""
    world = a_world()
    world.source.cleaned = True
    pump = running(world)
    cleaned = Source([(10, FRESH_MS)] * 12)
    cleaned.compact(50, 2)

    def sends(*, rival_batches: int) -> bool:
        """The pump sends one too; is it answered with a time?"""
        while pump.ask() or pump.hear() or pump.fetch():
            pass
        if rival_batches:
            rival = Pump(World(cleaned, world.target), len(world.target.log) << 40, merge_tiny=True)
            rival.start()
            rival.fetch(rival_batches)
            rival.claim()
            rival.claimed()
            assert rival.send()
            assert rival.serve()
        assert pump.send()
        assert pump.serve()
        timed = pump.answers[0].log_append_time_ms >= 0
        assert pump.receive()
        pump.ready()
        assert pump.question is not None
        pump.copy.trust.learn({})
        return timed

    assert sends(rival_batches=1)
    assert not sends(rival_batches=0)
    assert sends(rival_batches=2)
    assert world.target.log[50:] == list(range(51, 70, 2))
    pump.finish()
    assert world.target.log == [*range(50), *range(51, 70, 2), *range(70, 120)]


def test_the_last_batch_is_looked_up_before_its_copy_is_done() -> None:
    """With `--once`: else a rival's batch would count as the end of the copy."""
    world = a_world(batches=4)
    pump = running(world)
    pump.copy.trust.stamping = Stamping.UNKNOWN
    append = world.target.append
    world.target.append = lambda sent, now: append(sent, now)._replace(log_append_time_ms=FRESH_MS)  # type: ignore[method-assign]
    assert pump.send()
    assert pump.serve()
    assert pump.receive()
    assert (pump.copy.stage, pump.copy.last_copied) == (Stage.SEEKING, None)
    pump.start()
    assert (pump.copy.stage, pump.copy.last_copied) == (Stage.DONE, (39, 39))
    assert_exact(world)


def test_a_batch_that_lands_elsewhere_is_a_doubt() -> None:
    pump = running(a_world())
    pump.send()
    pump.requests.clear()
    pump.answers.append(refused(0, base_offset=31))
    pump.receive()
    assert pump.copy.stage is Stage.SEEKING
    assert "landed at 31, not at 30" in pump.copy.trouble.reason


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
    assert f"landed at {landed}, not at 30" in pump.copy.trouble.reason
    assert not pump.ask(), "what is in flight comes back first"
    while pump.receive():
        assert not pump.send()
    assert pump.copy.stage is Stage.SEEKING
    assert (pump.copy.progress.records, pump.copy.progress.downstream, pump.copy.progress.appended[1]) == (30, 30, 30)
    for _ in range(20):
        world.now += 0.5
        assert [pump.fetch(), pump.send()] == [False, False]
    assert pump.ask()
    assert [pump.fetch(), pump.send()] == [False, False], "it is asked, but not told"
    pump.hear()
    assert pump.copy.progress.downstream == 60
    assert pump.fetch()
    assert [pump.send(), pump.send()] == [True, False]
    pump.finish()
    assert world.target.log == list(range(120))


def test_a_position_is_confirmed_only_where_it_leads_to_the_same_record() -> None:
    """A rival's claim for the same sequence may have begun at another source offset."""
    world = a_world()
    pump = running(world)
    world.now += MAX_CONFIRMATION_AGE_S + 1
    reading = asked(pump)
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
    reading = asked(pump)
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
        world.now = max(world.now, pump.copy.retry.at) + MAX_CONFIRMATION_AGE_S + 1
        reading = asked(pump)
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
    pump.copy.source.from_latest = True  # the model knows no other start
    pump.copy.progress.appended = b"o" * 16, 30
    pump.start()
    assert pump.copy.progress.upstream is None
    assert "its target topic is a new one" in pump.copy.trouble.reason
    pump.copy.progress.appended = b"", -1
    pump.world.now = pump.copy.retry.at
    pump.start()
    assert pump.copy.progress.upstream == pump.world.source.end


def test_what_the_leader_told_of_our_records_is_known_from_then_on() -> None:
    world = a_world()
    pump = running(world)
    assert pump.copy.progress.appended[1] == 30
    other = Pump(world, 2)
    other.copy.progress.appended = pump.copy.progress.appended[0], 10
    other.start()
    assert other.copy.progress.appended == (pump.copy.progress.appended[0], 30)
    other = Pump(world, 3, reported=ReportedProgress(target_topic_id=TARGET_ID.hex(), appended=40))
    other.start()
    assert other.copy.progress.appended == (pump.copy.progress.appended[0], 30), "what was lost is named, and gone"
    (loss,) = world.target.ledger.read()
    assert (loss.kind, loss.first, loss.end) == (LossKind.TARGET_TRUNCATED, 30, 40)


@pytest.mark.parametrize(
    ("known", "why"),
    [
        (30, "offsets 30 to 32 may have been a foreign producer's"),
        (33, ""),
        (-1, ""),
    ],
)
def test_an_empty_log_that_ends_behind_what_is_known_to_be_ours_is_parked(known: int, why: str) -> None:
    pump, reading = asked_after_a_break()
    pump.copy.progress.appended = (reading.target_topic_id, known)
    pump.reading = replace(reading, position=replace(reading.position, end=33, supposed=True))
    pump.hear()
    assert (pump.copy.stage is Stage.PARKED) == bool(why)
    assert why in pump.copy.trouble.reason


def test_where_we_were_fenced_an_empty_log_alone_tells_nothing() -> None:
    """A marker may have gone with the records before anybody noted it: it would be taken for one of them."""
    pump, reading = asked_after_a_break()
    pump.copy.progress.appended = reading.target_topic_id, -1
    pump.copy.progress._was_fenced = True  # noqa: SLF001 - the copy's identity has nobody before it
    pump.reading = replace(reading, position=replace(reading.position, end=33, supposed=True))
    pump.hear()
    assert pump.copy.stage is Stage.PARKED
    assert "markers of a fence" in pump.copy.trouble.reason


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
