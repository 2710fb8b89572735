"""The end of a copy is a boundary: nothing behind it is sent, whenever it is heard of, and what follows is exact.

An end comes from `topics done`, which `topics undo` takes back, and from `--once`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from model_broker import FRESH_MS, SOURCE_ID, Source
from model_pump import Pump, World, a_world, assert_exact
from played_run import LEADERS, PlayedRun
from test_events_in_any_order import SETTINGS, CleanedLogs, Copies, Gaps, LosingTargets, OldRecords
from tests.support.built import LZ4, Content, build, contents, read_back

from sparkmirror.exact.position.cause import Cause
from sparkmirror.kafka.wire import pieces, records, splice
from sparkmirror.kafka.wire.batches import ATTRIBUTES_AT, TRANSACTIONAL_BIT
from sparkmirror.kafka.wire.buffers import FramePool
from sparkmirror.kafka.wire.codecs import Codec
from sparkmirror.kafka.wire.pieces import RawRecord
from sparkmirror.kafka.wire.walk_loading import WALK
from sparkmirror.pump.batch import Batch
from sparkmirror.pump.intake import Intake
from sparkmirror.pump.messages.control import ControlState, DoneTopic
from sparkmirror.pump.receipt_of import receipt_of
from sparkmirror.pump.stage import Stage

NOW = 1_700_000_000_000


def plain(count: int, first: int = 0) -> Content:
    """Records at consecutive offsets."""
    kept = [RawRecord(first + at, NOW, None, b"%d" % (first + at), ()) for at in range(count)]
    return Content(2, 0, kept, first + count)


# --- what is made of an answer ------------------------------------------------------------------------


def stored(source: Sequence[Content], attributes: int = 0) -> bytes:
    """A source's log, with true checksums."""
    log = bytearray()
    for content in source:
        batch = bytearray(build(content))
        if content.magic == 2:
            batch[ATTRIBUTES_AT + 1] |= attributes
            struct.pack_into(">I", batch, ATTRIBUTES_AT - 4, crc32c(batch[ATTRIBUTES_AT:]))
        log += batch
    return bytes(log)


def taken(
    log: bytes,
    upstream: int,
    until: int,
    aborted: Sequence[tuple[int, int]] = (),
    *,
    into: list[RawRecord] | None = None,
    steps: list[int] | None = None,
    made_by: type[Intake] = Intake,
    **intake: Any,
) -> tuple[list[RawRecord], int]:
    """Take an answer in; return the records of the new batches, and the next offset to fetch.

    Both also come as they are made, in the lists `into` and `steps`.
    """
    frame = FramePool(1 << 20, keep=1).take(len(log))
    frame.view[: len(log)] = log
    prepared = made_by(**{"read_committed": False, "codec": None, "merge_tiny": True, **intake})
    prepared.until = until
    found: list[RawRecord] = [] if into is None else into
    for item in prepared.prepare(frame, frame.view[: len(log)], upstream, aborted):
        if isinstance(item, Batch):
            places = [run.upstream + at for run in item.runs for at in range(run.length)]
            view = bytearray(item.view)
            struct.pack_into(">q", view, 0, 0)
            struct.pack_into(">I", view, ATTRIBUTES_AT - 4, crc32c(view[ATTRIBUTES_AT:]))
            copied = read_back(view)
            found += [one._replace(offset=place) for one, place in zip(copied, places, strict=True)]
            item.frame.release()
        assert item.next_upstream >= upstream
        upstream = item.next_upstream
        if steps is not None:
            steps.append(upstream)
    frame.release()
    return found, upstream


@pytest.fixture(params=["at once", "piece by piece"])
def _in_pieces(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (records, pieces) if request.param == "piece by piece" else ():
            patch.setattr(module, "PIECE_RECORDS", 5)
            patch.setattr(module, "PIECE_BYTES", 2000)
        yield


@pytest.mark.usefixtures("_in_pieces")
@pytest.mark.parametrize("codec", [None, Codec(LZ4)], ids=["kept", "lz4"])
@settings(max_examples=60, deadline=None)
@given(source=contents(), merge_tiny=st.booleans(), where=st.integers(0, 1 << 30))
def test_an_answer_is_cut_at_the_end_and_nothing_is_lost_behind_it(
    codec: Codec | None, source: list[Content], merge_tiny: bool, where: int
) -> None:
    """Formats of all ages, gaps anywhere; who comes after the end gets the rest."""
    log, last = stored(source), source[-1].next_offset
    begin = min((one.offset for content in source for one in content.records), default=last - 3)
    until = begin + where % (last - begin + 2)
    wanted = [one for content in source for one in content.consumed()]
    found, upstream = taken(log, 0, until, codec=codec, merge_tiny=merge_tiny)
    assert found == [one for one in wanted if one.offset < until]
    assert upstream == until or last < until, "else the same is fetched again and again"
    rest, _ = taken(log, upstream, splice.NO_END, codec=codec, merge_tiny=merge_tiny) if upstream < last else ([], last)
    assert found + rest == wanted


@pytest.mark.parametrize("codec", [None, Codec(LZ4)], ids=["kept", "lz4"])
@pytest.mark.parametrize("merge_tiny", [True, False])
@pytest.mark.parametrize("compiled", [True, False])
def test_a_run_of_batches_of_one_record_each_is_cut(
    monkeypatch: pytest.MonkeyPatch, codec: Codec | None, merge_tiny: bool, compiled: bool
) -> None:
    """They are joined in one walk, which knows of no end."""
    monkeypatch.setattr(WALK, "ready", compiled)
    log = stored([plain(1, at) for at in range(200)])
    for until in (0, 1, 77, 199, 200, 250):
        found, upstream = taken(log, 0, until, codec=codec, merge_tiny=merge_tiny)
        assert [one.offset for one in found] == [*range(min(until, 200))]
        assert upstream == min(until, 200)


def test_a_run_of_batches_of_one_record_each_is_compressed_as_asked() -> None:
    """They are joined as they are only where no codec is wanted."""
    log = stored([plain(1, at) for at in range(200)])
    frame = FramePool(1 << 20, keep=1).take(len(log))
    frame.view[: len(log)] = log
    prepared = Intake(read_committed=False, codec=Codec(LZ4), merge_tiny=True)
    made = [item for item in prepared.prepare(frame, frame.view[: len(log)], 0, ()) if isinstance(item, Batch)]
    assert {item.view[ATTRIBUTES_AT + 1] & 7 for item in made} == {3}
    assert sum(item.count for item in made) == 200


def test_an_end_in_an_aborted_batch_is_the_end() -> None:
    """Nothing of it is copied; the next offset may not be behind the end, as nobody says what lies there."""
    log = stored([plain(10)]) + stored([plain(10, 10)], TRANSACTIONAL_BIT) + stored([plain(10, 20)])
    found, upstream = taken(log, 0, 15, [(77, 10)], read_committed=True)
    assert ([one.offset for one in found], upstream) == ([*range(10)], 15)
    found, upstream = taken(log, 15, splice.NO_END, [(77, 10)], read_committed=True)
    assert ([one.offset for one in found], upstream) == ([*range(20, 30)], 30)


def test_what_is_damaged_behind_the_end_is_not_looked_at() -> None:
    log = bytearray(stored([plain(10), plain(10, 15)]))
    log[-1] ^= 1
    found, upstream = taken(bytes(log), 0, 12)
    assert ([one.offset for one in found], upstream) == ([*range(10)], 12)


# --- one copy -----------------------------------------------------------------------------------------


def hears(pump: Pump, end: int | None) -> None:
    """The word on the topic's writers arrives."""
    pump.copy.end_at(end, pump.world.now)


def assert_rest_is_copied(pump: Pump) -> None:
    """Once the word is taken back, and exactly once."""
    hears(pump, None)
    for _ in range(3):
        pump.world.now = max(pump.world.now, pump.copy.retry.at)
        pump.settle()
    assert_exact(pump.world)
    assert len(pump.world.target.log) == pump.world.source.end
    assert pump.world.target.truth() == pump.world.target.copied


@pytest.mark.parametrize("merge_tiny", [True, False])
@pytest.mark.parametrize("size", [1, 2, 7, 40])
@pytest.mark.parametrize("end", [1, 19, 20, 21])
def test_nothing_behind_an_end_that_is_known_is_copied(size: int, merge_tiny: bool, end: int) -> None:
    """Fetched in one answer with what follows, also in one batch."""
    world = World(Source([(size, FRESH_MS)] * -(-40 // size)))
    pump = Pump(world, until=None, merge_tiny=merge_tiny)
    hears(pump, end)
    pump.start()
    pump.fetch(40)
    pump.settle()
    assert pump.copy.stage is Stage.DONE
    assert world.target.log == list(range(end))
    assert pump.copy.progress.upstream == end
    assert_rest_is_copied(pump)


@pytest.mark.parametrize("made", [2, 3, 100])
@pytest.mark.parametrize("sent", [0, 1, 3])
@pytest.mark.parametrize("end", [20, 25, 30, 55])
def test_what_is_not_sent_when_the_end_is_heard_of_is_dropped(made: int, sent: int, end: int) -> None:
    """Queued, or not made ready yet; what was sent can't be taken back, and the receipt tells it."""
    pump = Pump(a_world(), until=None)
    pump.start()
    pump.fetch(1)
    for step in (pump.claim, pump.claimed, pump.send, pump.serve, pump.receive):
        assert step()
    pump.fetch(9, made)
    for _ in range(sent):
        pump.send()
    sent_to = 10 + 10 * len(pump.copy.in_flight)
    hears(pump, end)
    pump.settle()
    assert pump.copy.stage is Stage.DONE
    assert pump.world.target.log == list(range(max(end, sent_to)))
    told = receipt_of("a->b", pump.copy, "done", "", Cause.NONE, 0)
    assert (told.upstream, told.downstream) == (max(end, sent_to), max(end, sent_to))
    assert_rest_is_copied(pump)


def test_an_answer_that_was_cut_at_one_end_is_fetched_again_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large batch is made ready piece by piece: what one piece has left out, no later piece brings."""
    for module in (records, pieces, splice):
        monkeypatch.setattr(module, "PIECE_RECORDS", 10)
    world = World(Source([(40, FRESH_MS), (1, FRESH_MS)]))
    world.source.compact(24, 100)
    pump = Pump(world, until=None)
    hears(pump, 25)
    pump.start()
    pump.fetch(1, 6)
    assert pump.copy.backlog.unprepared
    assert pump.copy.backlog.upstream == 24
    hears(pump, 35)
    while pump.prepare():
        pass
    pump.settle()
    pump.world.now = max(pump.world.now, pump.copy.retry.at)
    pump.settle()
    assert world.target.copied == [offset for offset in range(35) if offset != 24]


def test_an_end_before_what_cant_be_copied_is_reached() -> None:
    """It was fetched already, and would park the partition."""
    pump = Pump(a_world(), until=None)
    pump.start()
    pump.fetch(2)
    pump.copy.backlog.obstacle = "the record at source offset 20 is too large", Cause.TOO_LARGE
    hears(pump, 20)
    pump.settle()
    assert pump.copy.stage is Stage.DONE


def test_a_round_that_ends_inside_a_batch_is_continued_inside_it() -> None:
    """The next round, or the next process with `--once`, gets the whole batch again, and cuts off what is copied."""
    world = World(Source([(10, FRESH_MS)] * 4))
    for until in (7, 13, 13, 30, 31, 40):
        pump = Pump(world, until << 40, until=until, merge_tiny=until % 2 > 0)
        pump.finish()
        assert world.target.log == list(range(until))
    assert world.target.truth() == world.target.copied


# --- a topic that was created again -------------------------------------------------------------------


def word_on(topic_id: bytes) -> ControlState:
    """The word that the writers of the topic of this id have moved, at offset 20 of each partition."""
    state = ControlState()
    state.done["t"] = DoneTopic(source_topic_id=topic_id.hex(), ends=dict.fromkeys(LEADERS, 20))
    return state


@pytest.mark.parametrize("is_read_before", [True, False])
@pytest.mark.parametrize(("topic_id", "copied"), [(SOURCE_ID, 20), (b"o" * 16, 0)], ids=["the same", "an earlier one"])
def test_a_word_on_an_earlier_topic_ends_the_copy_of_the_present_one_before_its_first_record(
    monkeypatch: pytest.MonkeyPatch, topic_id: bytes, copied: int, is_read_before: bool
) -> None:
    run = PlayedRun(monkeypatch)
    if is_read_before:
        run.turn_until(lambda: len(run.readings) == len(LEADERS))
    run.hear(word_on(topic_id))

    def is_done() -> bool:
        for leader in set(LEADERS.values()):
            run.acknowledge(leader, {})
        return all(copy.stage is Stage.DONE for copy in run.pump.copies)

    run.turn_until(is_done)
    assert run.records() == [copied] * len(LEADERS)
    run.close()


# --- any order ----------------------------------------------------------------------------------------


class EndedCopies(Copies):
    """Ends that are heard of at any moment, other ones by rivals and heirs, and taken back."""

    def another(self, **known: Any) -> Pump:
        pump = super().another(**known)
        send = pump.copy.send

        def send_up_to_the_end(now: float) -> Batch:
            batch, goal = send(now), pump.copy.end.goal
            assert goal is None or batch.runs[-1].upstream + batch.runs[-1].length <= goal
            return batch

        pump.copy.send = send_up_to_the_end  # type: ignore[method-assign]
        return pump

    @rule(which=st.integers(0, 3), end=st.integers(0, 250))
    def is_ended(self, which: int, end: int) -> None:
        hears(self.pump(which), end)

    @rule(which=st.integers(0, 3), back=st.integers(-8, 8))
    def is_ended_nearby(self, which: int, back: int) -> None:
        """Where it is just now, so also between what is in flight, queued and fetched."""
        hears(self.pump(which), max(self.pump(which).copy.backlog.upstream - back, 0))

    @rule(which=st.integers(0, 3))
    def is_copied_on(self, which: int) -> None:
        hears(self.pump(which), None)

    @invariant()
    def who_is_done_has_copied_all_before_its_end(self) -> None:
        for pump in self.pumps:
            if pump.copy.stage is Stage.DONE:
                assert pump.copy.end.goal is not None
                self.is_there(pump.copy.end.goal)

    def is_there(self, end: int) -> None:
        assert {offset for offset in self.world.source.offsets if offset < end} <= set(self.world.target.copied)

    def teardown(self) -> None:
        for pump in self.pumps:
            hears(pump, None)
        super().teardown()


class EndedOldRecords(EndedCopies, OldRecords):
    """One pump, whose state goes at any moment."""


class EndedGaps(EndedCopies, Gaps):
    """Batches are merged and split."""


class EndedCleanedLogs(EndedCopies, CleanedLogs):
    """Rivals see different logs."""


class EndedLosingTargets(EndedCopies, LosingTargets):
    """What was there when the end was reached may be lost since."""

    def is_there(self, end: int) -> None:
        """Nobody looks again at a copy that is done."""


TestEndedCopies = EndedCopies.TestCase
TestEndedCopies.settings = SETTINGS
TestEndedOldRecords = EndedOldRecords.TestCase
TestEndedOldRecords.settings = SETTINGS
TestEndedGaps = EndedGaps.TestCase
TestEndedGaps.settings = SETTINGS
TestEndedCleanedLogs = EndedCleanedLogs.TestCase
TestEndedCleanedLogs.settings = SETTINGS
TestEndedLosingTargets = EndedLosingTargets.TestCase
TestEndedLosingTargets.settings = SETTINGS
