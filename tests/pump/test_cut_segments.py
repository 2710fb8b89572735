"""The segments topic loses its newest records at any moment: nothing is copied twice, and the map is true or silent.

The order of writing counts: of a claim that was confirmed, the record before may be left. Records that somebody still
knows are written again (`durable.claim_log`): whether the pumps that live do so is left open here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule
from model_broker import FRESH_MS, OLD_MS, Source, TargetLog
from model_pump import Pump, World
from test_events_in_any_order import SETTINGS, Copies

from sparkmirror.exact.durable.claim_log import in_safe_order
from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.durable.noted_progress import NOTHING_REPORTED, ReportedProgress
from sparkmirror.exact.position.cause import Cause
from sparkmirror.exact.position.route import PartitionReading
from sparkmirror.pump.stage import Stage


class _Claims(list[Claim]):
    """Claims as they are now; one that is appended is written to the topic."""

    def __init__(self, target: CutTarget, claims: Iterable[Claim]) -> None:
        super().__init__(claims)
        self._target = target

    def append(self, claim: Claim) -> None:
        self._target.written.append((claim, False))


class CutTarget(TargetLog):
    """A target whose segments topic keeps its records in the order of writing, and loses the newest ones."""

    def __init__(self) -> None:
        self.written: list[tuple[Claim, bool]] = []
        """Each record; with True it retracts the claim."""
        super().__init__()

    @property
    def claims(self) -> list[Claim]:
        there: dict[tuple[int, int], Claim] = {}
        for claim, is_retracted in self.written:
            there.pop(claim.key, None)
            if not is_retracted:
                there[claim.key] = claim
        return _Claims(self, there.values())

    @claims.setter
    def claims(self, claims: Sequence[Claim]) -> None:
        assert not claims, "settle writes"

    def settle(self, confirmed: Iterable[Claim], false: Iterable[Claim]) -> None:
        false = list(false)
        by_key = {claim.key: claim for claim in false}
        for one in in_safe_order(confirmed, false):
            self.written.append((one, False) if isinstance(one, Claim) else (by_key[one.key], True))

    def cut(self, records: int) -> list[tuple[Claim, bool]]:
        lost = self.written[-records:]
        del self.written[-records:]
        return lost

    @property
    def is_doubted(self) -> bool:
        """Whether a claim is ended: the map says nothing of what is behind it."""
        return any(claim.ended for claim in self.claims)


class CutSegments(Copies):
    """Gaps from the beginning, rivals, and claims that are cut while the mirror runs, or between two pumps."""

    rivals = 1
    gaps = True
    rewrites = False
    """The pumps that live write again what they know; else they don't even notice."""

    def __init__(self) -> None:
        super().__init__()
        self.lost = False

    @initialize(
        sizes=st.lists(st.integers(1, 7), min_size=5, max_size=60),
        start=st.integers(0, 5),
        most=st.sampled_from([80, 120, 1000]),
    )
    def begin(self, sizes: list[int], start: int, most: int) -> None:
        self.world = World(Source([(size, self.timestamp_ms) for size in sizes], start), CutTarget())
        self.world.source.compact(start + 3, 4)
        self.world.source.compact(start + 20, 3)
        self.pumps = [self.another() for _ in range(1 + self.rivals)]

    @property
    def target(self) -> CutTarget:
        assert isinstance(self.world.target, CutTarget)
        return self.world.target

    @rule(records=st.integers(1, 12))
    def claims_are_cut(self, records: int) -> None:
        lost = self.target.cut(records)
        if self.rewrites:
            self.target.written += lost
            for pump in self.pumps:
                pump.reading = None
                pump.copy.asked_at = None
                if pump.copy.stage is Stage.RUNNING:
                    pump.copy.doubt("the segments topic has lost claims", self.world.now)
        else:
            self.lost = True

    def another(self, *, unclean: bool = False, reported: ReportedProgress = NOTHING_REPORTED) -> Pump:
        return super().another(unclean=unclean, reported=reported)

    def tells_what_a_reader_sees(self, settled: PartitionReading, reported: ReportedProgress) -> None:
        """A reader may have lost what the pump knows."""
        if not self.lost:
            super().tells_what_a_reader_sees(settled, reported)

    @invariant()
    def its_claims_tell_where_each_record_came_from(self) -> None:
        if not self.lost:
            super().its_claims_tell_where_each_record_came_from()

    def teardown(self) -> None:
        for pump in self.pumps:
            pump.finish(parks=True)
            assert pump.pool.in_use == 0
        self.each_record_is_there_once_in_order()
        parked = [pump.copy.trouble for pump in self.pumps if pump.copy.stage is Stage.PARKED]
        if not self.lost:
            assert not parked
            super().its_claims_tell_where_each_record_came_from()
        if not parked:
            assert set(self.world.target.copied) >= set(self.world.source.offsets)


class CutSegmentsOfOldRecords(CutSegments):
    """One pump alone, whose producer state goes at any moment."""

    rivals = 0
    timestamp_ms = OLD_MS


class CutSegmentsThatAreWrittenAgain(CutSegments):
    """Who lives writes again what was lost: no more than a doubt."""

    rewrites = True


TestCutSegments = CutSegments.TestCase
TestCutSegments.settings = SETTINGS
TestCutSegmentsOfOldRecords = CutSegmentsOfOldRecords.TestCase
TestCutSegmentsOfOldRecords.settings = SETTINGS
TestCutSegmentsThatAreWrittenAgain = CutSegmentsThatAreWrittenAgain.TestCase
TestCutSegmentsThatAreWrittenAgain.settings = SETTINGS


def copied_with_gaps() -> tuple[World, CutTarget]:
    """Three claims: the source's log has gaps behind the first and the second."""
    target = CutTarget()
    world = World(Source([(10, FRESH_MS)] * 8), target)
    world.source.compact(25, 4)
    world.source.compact(45, 4)
    Pump(world, until=None).settle()
    assert target.copied == world.source.offsets
    assert len(target.claims) == 3
    return world, target


def test_the_next_pump_notices_that_the_newest_claims_are_gone() -> None:
    """The oldest claim continues without end, and its position is right as far as the log's length goes."""
    world, target = copied_with_gaps()
    before = list(target.log)
    first = target.claims[0]
    target.written = [(first, False)]
    pump = Pump(world, 1 << 40, until=None)
    for _ in range(3):
        pump.settle()
        world.now = max(world.now, pump.copy.retry.at)
    assert pump.copy.stage is Stage.PARKED
    assert pump.copy.trouble.cause is Cause.CLAIMS_LOST
    assert f"target offset {len(before) - 1} is no copy of source offset" in pump.copy.trouble.reason
    assert target.log == before
    assert target.is_doubted, "nobody takes the claim for true behind its records"


def test_a_claim_that_is_ended_is_no_position_for_the_pump_after_next() -> None:
    """Though it has not compared anything itself."""
    world, target = copied_with_gaps()
    target.written = [(target.claims[0], False)]
    pump = Pump(world, 1 << 40, until=None)
    for _ in range(3):
        pump.settle()
        world.now = max(world.now, pump.copy.retry.at)
    world.source.compact(50, 1)  # there is nothing left to compare
    after = Pump(world, 2 << 40, until=None)
    after.settle()
    assert (after.copy.stage, after.copy.trouble.cause) == (Stage.PARKED, Cause.CLAIMS_LOST)


def test_a_claim_that_is_left_and_tells_the_truth_is_believed() -> None:
    """Only the confirmation is lost, or a claim that says what the one before says."""
    world, target = copied_with_gaps()
    target.cut(1)
    pump = Pump(world, 1 << 40, until=None)
    pump.settle()
    assert pump.copy.stage is Stage.RUNNING
    assert target.truth() == target.copied
