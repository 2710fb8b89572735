"""One partition's copy against a model of a target's leader: faults, delays and rivals in any order."""

from __future__ import annotations

import contextlib
import itertools

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from model_broker import ERRORS, FOREIGN, FRESH_MS, MARKER, OLD_MS, ROUTE, Killed, Source, TargetLog
from model_pump import Pump, World

from sparkmirror.exact.durable.losses import LossKind
from sparkmirror.exact.durable.noted_progress import NOTHING_REPORTED, ReportedProgress
from sparkmirror.exact.position.route import PartitionReading
from sparkmirror.look.doctor.parked import WAITS
from sparkmirror.pump.stage import Stage


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
        self.world = World(Source([]))
        self.pumps: list[Pump] = []
        self.numbers = itertools.count(1)
        self.settled: dict[Pump, PartitionReading] = {}
        """Where a pump may begin without a reading: its connection has not broken since."""

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

    def another(self, *, unclean: bool = False, reported: ReportedProgress = NOTHING_REPORTED) -> Pump:
        number = next(self.numbers)
        return Pump(
            self.world,
            number << 40,
            in_flight=self.in_flight,
            unclean=unclean,
            merge_tiny=self.merges and number % 2 > 0,
            reported=reported,
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

    @precondition(lambda self: self.merges)
    @rule(which=st.integers(0, 3), size=st.sampled_from([0, 200, 400, 2000]))
    def joins(self, which: int, size: int) -> None:
        """Its line to the target has become long, or short again."""
        self.pump(which).copy.backlog.join(size)

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
        dead.dies()
        self.pumps[which % len(self.pumps)] = self.another(unclean=True)

    @rule(which=st.integers(0, 3), busy=st.booleans(), is_compared=st.booleans())
    def hands_over(self, which: int, busy: bool, is_compared: bool) -> None:
        """To the pump of another task, which waits only if one from before may be alive."""
        if busy:
            self.has_all_in_flight(which)
        former = self.pump(which)
        reported = former.leave()
        assert former.pool.in_use == 0
        self.what_is_told_is_there(reported)
        unclean = self.world.now < former.alone_at
        settled = None if unclean else former.copy.settled(self.world.now)
        pump = self.pumps[which % len(self.pumps)] = self.another(unclean=unclean, reported=reported)
        if settled is not None:
            self.settled[pump] = settled
            if is_compared:
                self.tells_what_a_reader_sees(settled, reported)

    def what_is_told_is_there(self, reported: ReportedProgress) -> None:
        passed = {offset for offset in self.world.source.offsets if offset < reported.upstream}
        assert passed <= set(self.world.target.copied)

    def tells_what_a_reader_sees(self, settled: PartitionReading, reported: ReportedProgress) -> None:
        """Unless another pump, or somebody else, has gone on since."""
        target = self.world.target
        read = target.partition_reading(self.world.source, self.world.now, target.identity, reported)
        if isinstance(read, PartitionReading) and read.position.downstream == settled.position.downstream:
            seen, told = read.position, settled.position
            assert (told.sequence, told.upstream, told.claim_due) == (seen.sequence, seen.upstream, seen.claim_due)
            assert (told.leader_epoch, told.end, settled.resume_at) == (seen.leader_epoch, seen.end, read.resume_at)

    @rule(which=st.integers(0, 3))
    def takes_over(self, which: int) -> None:
        """Where its former task said that it was: by now a rival may have gone on."""
        pump = self.pump(which)
        settled = self.settled.pop(pump, None)
        if settled is not None and not pump.has_asked:
            pump.take_over(settled)

    @rule(which=st.integers(0, 3), written=st.integers(0, 4))
    def dies_while_it_settles_claims(self, which: int, written: int) -> None:
        self.world.target.killed_after = written
        with contextlib.suppress(Killed):
            self.pump(which).ask()
        self.world.target.killed_after = -1
        self.dies(which)

    @precondition(lambda self: self.world.late)
    @rule(which=st.integers(0, 9))
    def arrives_late(self, which: int) -> None:
        """A request of a pump that died, or gave its connection up."""
        self.world.arrives_late(which)

    @precondition(lambda self: self.cleaned)
    @rule(first=st.integers(0, 100), step=st.integers(2, 5))
    def is_cleaned(self, first: int, step: int) -> None:
        self.world.source.compact(first, step)

    @rule(which=st.integers(0, 3), served=st.integers(0, 5))
    def loses_its_connection(self, which: int, served: int) -> None:
        self.settled.pop(self.pump(which), None)
        self.pump(which).lose(served)

    @rule(which=st.integers(0, 3))
    def goes_on(self, which: int) -> None:
        self.pump(which).settle()

    @rule(seconds=st.sampled_from([0.1, 1.0, 3.5, 6.0]))
    def time_passes(self, seconds: float) -> None:
        self.world.pass_time(seconds)

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
    def no_partition_is_parked_for_what_it_only_waits_for(self) -> None:
        """So the doctor has no rules on partitions that are parked for such a cause."""
        parked = [pump.copy.trouble for pump in self.pumps if pump.copy.stage is Stage.PARKED]
        assert all(trouble.reason and trouble.cause not in WAITS for trouble in parked)

    @invariant()
    def the_last_record_copied_is_where_it_is_said_to_be(self) -> None:
        for pump in self.pumps:
            last = pump.copy.last_copied
            assert last is None or self.world.target.log[last[1]] == last[0]

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
    """Logs into which release 0.1 wrote marker fences: old records, whose state goes at any moment."""

    rivals = 0
    timestamp_ms = OLD_MS

    @rule()
    def is_taken_over(self) -> None:
        """By a process of release 0.1, which fences all that are alive; they know nothing of it."""
        target = self.world.target
        if target.claims:  # else nothing may have been sent, and nobody is fenced
            target.is_succeeded()
            for producer in target.unfenced:
                target.fence(producer)
            self.pumps.append(self.another(unclean=True))

    @rule(which=st.integers(0, 3))
    def dies(self, which: int) -> None:
        """A pump dies that was fenced, or will be by its heir."""
        dead = self.pump(which)
        dead.dies()
        self.pumps.remove(dead)
        self.is_taken_over()
        if not self.pumps:
            self.pumps.append(self.another(unclean=True))

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

    @rule(records=st.integers(1, 30), more=st.integers(0, 3))
    def is_lost(self, records: int, more: int = 0) -> None:
        self.world.target.lose(records, more)
        self.settled.clear()
        for which, pump in enumerate(self.pumps):
            pump.reading = None
            pump.copy.asked_at = None
            pump.lose()
            if pump.copy.stage is Stage.RUNNING:
                pump.copy.doubt("the connection broke", self.world.now)
            elif pump.copy.stage is Stage.DONE:
                self.pumps[which] = self.heir(pump)
        self.world.late.clear()  # all of it is on its way to a broker that leads no more, and refuses it

    def what_is_told_is_there(self, reported: ReportedProgress) -> None:
        """What was lost since is found when the position is read."""

    def heir(self, pump: Pump) -> Pump:
        """Who comes after a pump that had come to its end."""
        return self.another()

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
        if self.pump(which).ask() and isinstance(self.pump(which).reading, PartitionReading):
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


class EmptiedLogs(LosingTargetsWithStrangers):
    """Retention takes all of a log, and the leader's state goes with it: only claims, notes and its end are left.

    What these can't tell parks with a reason; nothing is copied twice or left out. Nobody else fills up here exactly
    what was cut before a pump has heard of it, nor writes between the batches of a claim: nothing would tell.
    """

    rivals = 0
    timestamp_ms = OLD_MS

    def __init__(self) -> None:
        super().__init__()
        self.is_cut = False
        """And no pump knows."""

    @precondition(lambda self: self.world.target.copied)
    @rule()
    def is_emptied(self) -> None:
        self.world.target.empty()

    @rule(records=st.integers(1, 30), more=st.integers(0, 3))
    def is_lost(self, records: int, more: int = 0) -> None:
        super().is_lost(records, more)
        self.is_cut = True

    @precondition(lambda self: self.world.target.copied)
    @rule(records=st.integers(1, 3))
    def is_written_by_somebody_else(self, records: int) -> None:
        target = self.world.target
        copied = len(target.copied)
        known = {pump.copy.progress.appended[1] for pump in self.pumps}
        fills = self.is_cut and len(target.log) + records in known
        if not fills and all(claim.sequence + claim.announced <= copied for claim in target.claims):
            super().is_written_by_somebody_else(records)

    @rule(which=st.integers(0, 3))
    def hears(self, which: int) -> None:
        self.is_cut = self.is_cut and not self.pump(which).hear()

    @rule(which=st.integers(0, 3))
    def goes_on(self, which: int) -> None:
        self.asks(which)
        self.hears(which)
        super().goes_on(which)

    @rule(which=st.integers(0, 3))
    def dies(self, which: int) -> None:
        """What it knew was written down; nothing of it is on its way."""
        dead = self.pump(which)
        dead.requests.clear()
        dead.dies()
        self.pumps[which % len(self.pumps)] = self.heir(dead)

    def heir(self, pump: Pump) -> Pump:
        reported = pump.copy.progress.reported
        return Pump(self.world, next(self.numbers) << 40, in_flight=self.in_flight, reported=reported)

    def whose_is_what_is_known(self) -> None:
        """What can't be told is taken for ours, and parked by whoever hears of it."""

    @invariant()
    def its_claims_tell_where_each_record_came_from(self) -> None:
        if not self.world.target.ruling().undecided:
            super().its_claims_tell_where_each_record_came_from()

    def teardown(self) -> None:
        for pump in self.pumps:
            pump.finish(parks=True)
        self.each_record_is_there_once_in_order()
        self.its_claims_tell_where_each_record_came_from()
        if all(pump.copy.stage is Stage.DONE for pump in self.pumps):
            assert set(self.world.target.copied) >= set(self.world.source.offsets)


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


def strangers_between_two_claims(flow: LosingTargetsWithStrangers) -> None:
    """All of ours up to a place, two records of somebody else, and a confirmed claim of ours behind them."""
    flow.begin(sizes=[1] * 9, start=0, most=80)
    flow.goes_on(0)
    flow.is_lost(3)
    flow.world.target.is_written_by_somebody_else(2)
    flow.goes_on(0)
    flow.its_claims_tell_where_each_record_came_from()


def test_a_cut_right_behind_a_strangers_records_leaves_them_where_they_are() -> None:
    """The claim behind them says where the next record lands, though nothing of it is left."""
    flow = LosingTargetsWithStrangers()
    strangers_between_two_claims(flow)
    log = flow.world.target.log
    place = max(offset for offset, one in enumerate(log) if one == FOREIGN) + 1
    flow.is_lost(len(log) - place)
    assert len(log) == place
    flow.asks(0)
    reading = flow.pumps[0].reading
    assert isinstance(reading, PartitionReading)
    assert reading.position.downstream == place
    lost = [one for one in flow.world.target.ledger.read() if one.kind is LossKind.TARGET_TRUNCATED]
    assert lost[-1].first == place
    flow.teardown()


def test_a_cut_among_a_strangers_records_is_no_reason_to_take_them_for_ours() -> None:
    """The log was emptied since: what is noted of them counts as far as it goes."""
    flow = EmptiedLogs()
    strangers_between_two_claims(flow)
    log = flow.world.target.log
    place = max(offset for offset, one in enumerate(log) if one == FOREIGN)
    flow.is_lost(len(log) - place - 1, more=1)
    assert len(log) == place
    left = len(flow.world.target.copied)
    flow.is_emptied()
    found = flow.world.target.partition_reading(flow.world.source, flow.world.now)
    assert isinstance(found, PartitionReading)
    assert (found.position.sequence, found.position.downstream) == (left, place)
    flow.teardown()


def test_what_strangers_filled_up_before_anybody_looked_is_not_taken_for_ours_in_an_emptied_log() -> None:
    """It ends below what it had acknowledged, and strangers write to it: nothing tells how much of it was ours."""
    flow = EmptiedLogs()
    flow.begin(sizes=[1] * 9, start=0, most=80)
    flow.goes_on(0)
    flow.world.target.is_written_by_somebody_else(1)
    flow.dies(0)
    flow.goes_on(0)
    reported = flow.pumps[0].copy.progress.reported
    flow.is_lost(5)
    flow.world.target.is_written_by_somebody_else(3)
    flow.is_emptied()
    flow.pumps[0] = Pump(flow.world, 99 << 40, reported=reported)
    flow.goes_on(0)
    assert flow.pumps[0].copy.stage is Stage.PARKED
    assert "a foreign producer may have written in their place" in flow.pumps[0].copy.trouble.reason
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
TestStrangersInLogsThatAreEmptied = EmptiedLogs.TestCase
TestStrangersInLogsThatAreEmptied.settings = SETTINGS
