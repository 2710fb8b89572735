"""One copy against a leader whose followers lag, and whose muted connections append what was sent long ago."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from model_broker import FRESH_AFTER_MS, FRESH_MS, OLD_MS, Source, TargetLog
from model_pump import Pump, World
from test_events_in_any_order import Copies, LosingTargets

from sparkmirror.pump.quiet import LATE_S
from sparkmirror.pump.stage import Stage


def is_told_above(pump: Pump) -> bool:
    """Whether records count as copied that an election could take away, or has taken."""
    upstream, target = pump.copy.progress.upstream, pump.world.target
    if upstream is None or pump.copy.stage not in (Stage.RUNNING, Stage.DONE):
        return False
    there = set(target.log[: target.high_watermark])
    return any(offset < upstream and offset not in there for offset in pump.world.source.offsets)


class LaggingFollowers(Copies):
    """A follower in sync lags, and leads after an election in order; only who has sent something hears of it."""

    gaps = True

    @rule()
    def lags(self) -> None:
        self.world.target.lags()

    @rule()
    def catches_up(self) -> None:
        self.world.target.catches_up()

    @rule()
    def elects(self) -> None:
        self.world.target.elects()
        self.settled.clear()
        for pump in self.pumps:
            if pump.copy.in_flight:
                pump.lose()

    @invariant()
    def only_what_replicas_have_is_told(self) -> None:
        assert not any(is_told_above(pump) for pump in self.pumps)

    @rule(which=st.integers(0, 3), busy=st.booleans(), is_compared=st.booleans())
    def hands_over(self, which: int, busy: bool, is_compared: bool) -> None:
        if self.world.target.replicated is None:
            super().hands_over(which, busy, is_compared)

    @invariant()
    def its_claims_tell_where_each_record_came_from(self) -> None:
        """Where no follower lags: nobody judges by what is above the high watermark."""
        if self.world.target.replicated is None:
            super().its_claims_tell_where_each_record_came_from()

    def teardown(self) -> None:
        self.world.target.catches_up()
        super().teardown()


class SilentLosses(LosingTargets):
    """Acknowledged records are lost, and who sends nothing hears nothing: the watch over copies at rest tells."""

    @rule(records=st.integers(1, 30), more=st.integers(0, 3))
    def is_lost(self, records: int, more: int = 0) -> None:
        self.world.target.lose(records, more)
        self.settled.clear()
        for pump in self.pumps:
            pump.reading = None
            pump.copy.asked_at = None
            if pump.copy.in_flight or pump.copy.queue or pump.copy.backlog.unprepared:
                pump.lose()
                if pump.copy.stage is Stage.RUNNING:
                    pump.copy.doubt("the connection broke", self.world.now)
        if not self.world.target.stored:
            self.world.late.clear()  # no state would refuse it: what R5 can't see

    @rule(which=st.integers(0, 3))
    def is_looked_after(self, which: int) -> None:
        pump = self.pump(which)
        pump.watch()
        assert pump.copy.rests_at is None or not is_told_above(pump)

    def teardown(self) -> None:
        for pump in self.pumps:
            pump.finish()
            while pump.watch():
                pump.finish()
        super().teardown()


class MixedTimes(Copies):
    """Old records among fresh ones: a fresh batch may be late, and old ones take the state with them."""

    rivals = 0

    @initialize(
        batches=st.lists(st.tuples(st.integers(1, 7), st.sampled_from([FRESH_MS, OLD_MS])), min_size=5, max_size=60),
        start=st.integers(0, 5),
    )
    def begin(self, batches: list[tuple[int, int]], start: int) -> None:
        self.world = World(Source(batches, start), TargetLog())
        self.pumps = [self.another()]

    @rule(seconds=st.sampled_from([0.1, 3.5, 20.0, LATE_S / 2]))
    def time_passes(self, seconds: float) -> None:
        self.world.pass_time(seconds)

    @rule(which=st.integers(0, 9), passes=st.sampled_from([0.0, 7.5, LATE_S / 2]))
    def sends_again_what_is_late(self, which: int, passes: float) -> None:
        """The state of what was sent again expires before the first request arrives."""
        pump = self.pump(0)
        self.has_all_in_flight(0)
        pump.lose()
        pump.settle()
        self.world.pass_time(passes)
        pump.settle()
        if (self.world.target.newest_ms or FRESH_MS) < FRESH_AFTER_MS:
            self.world.target.expire()
        self.world.arrives_late(which)

    @precondition(lambda self: (self.world.target.newest_ms or FRESH_MS) < FRESH_AFTER_MS)
    @rule()
    def state_expires(self) -> None:
        self.world.target.expire()


SETTINGS = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestFollowersThatLag = LaggingFollowers.TestCase
TestFollowersThatLag.settings = SETTINGS
TestLossesInSilence = SilentLosses.TestCase
TestLossesInSilence.settings = SETTINGS
TestOldAmongFresh = MixedTimes.TestCase
TestOldAmongFresh.settings = SETTINGS
