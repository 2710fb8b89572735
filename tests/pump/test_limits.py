"""The caps of a flow, with a clock of the test's: what passes, who waits, and who goes first."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.kafka.wire.buffers import FramePool
from sparkmirror.pump.limits import (
    STEP_S,
    Bucket,
    Lane,
    Limits,
)
from sparkmirror.pump.memory_budget import SMALLEST_FETCH_BYTES, MemoryBudget
from sparkmirror.pump.source_connections import SourceConnections

MB = 1 << 20
modest = settings(max_examples=200, deadline=None)
rates = st.floats(20_000, 1e9)


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def limits_of(clock: Clock, *, share: float = 1.0, pool: FramePool | None = None) -> Limits:
    return Limits(pool or FramePool(4 * MB, keep=2), MemoryBudget(64 * MB), share, clock)


class Fetcher:
    """One lane that has always more to fetch, `per_s` bytes a second at most; asks as a pump does."""

    def __init__(self, limits: Limits, *, backfill: bool, per_s: float = 1e12) -> None:
        self._limits = limits
        self._backfill = backfill
        self._per_s = per_s
        self._made = 0.0
        self.passed = 0
        self.longest_wait_s = 0.0
        self._waits_since: float | None = None

    def turn(self, now: float, elapsed_s: float) -> None:
        """Fetch once, if there is something and it is allowed."""
        self._made += self._per_s * elapsed_s
        most = self._limits.fetch_bytes(backfill=self._backfill) or 4 * MB
        size = min(most, int(self._made - self.passed))
        if size <= 0:
            return
        if self._limits.wait_s(backfill=self._backfill):
            self._waits_since = now if self._waits_since is None else self._waits_since
            self.longest_wait_s = max(self.longest_wait_s, now - self._waits_since)
            return
        self._waits_since = None
        self._limits.passed(size, backfill=self._backfill)
        self.passed += size


def run(clock: Clock, fetchers: list[Fetcher], seconds: float, step_s: float = 0.002) -> None:
    for _ in range(int(seconds / step_s)):
        clock.advance(step_s)
        for fetcher in fetchers:
            fetcher.turn(clock.now, step_s)


def test_without_a_rate_there_is_no_limit(clock: Clock) -> None:
    bucket = Bucket(clock)
    bucket.take(10**12)
    assert bucket.wait_s() == bucket.wait_s(0.5) == 0
    assert bucket.step_bytes is None


@modest
@given(rate=rates, sizes=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 3)), min_size=1, max_size=60))
def test_no_more_passes_than_the_rate_and_one_step(rate: float, sizes: list[tuple[float, float]]) -> None:
    """Whatever is asked for and however long nobody asks: idle time is not saved up beyond a step."""
    clock = Clock()
    bucket = Bucket(clock)
    bucket.set_rate(rate)
    step = bucket.step_bytes
    assert step is not None
    history: list[tuple[float, int]] = []
    for part, pause_s in sizes:
        clock.advance(pause_s + bucket.wait_s())
        if bucket.wait_s() == 0:
            history.append((clock.now, int(step * part)))
            bucket.take(history[-1][1])
    for first, (since, _) in enumerate(history):
        total = 0
        for at, size in history[first:]:
            total += size
            assert total <= rate * (at - since) + rate * STEP_S + step + 1


@modest
@given(rate=rates, sizes=st.lists(st.integers(1, 8 * MB), min_size=1, max_size=20), leave=st.floats(0, 1))
def test_whoever_waits_as_long_as_told_need_not_wait_again(rate: float, sizes: list[int], leave: float) -> None:
    clock = Clock()
    bucket = Bucket(clock)
    bucket.set_rate(rate)
    for size in sizes:
        bucket.take(size)
        wait_s = bucket.wait_s(leave)
        if wait_s:
            clock.advance(wait_s * 0.9)
            if wait_s > 0.02:
                assert bucket.wait_s(leave) > 0
            clock.advance(wait_s * 0.1 + 0.001)
        if leave < 0.99:  # a full bucket holds no more than all of a step
            assert bucket.wait_s(leave) == 0


@modest
@given(rate=rates, other=st.one_of(st.none(), rates), spent=st.integers(0, 8 * MB), elapsed_s=st.floats(0, 10))
def test_a_new_rate_counts_from_when_it_is_set(rate: float, other: float | None, spent: int, elapsed_s: float) -> None:
    """What was overdrawn at the old rate was earned at the old rate; from then on the new one counts."""
    clock = Clock()
    bucket = Bucket(clock)
    bucket.set_rate(rate)
    bucket.take(spent)
    clock.advance(elapsed_s)
    bucket.set_rate(other)
    if other is None:
        assert bucket.wait_s() == 0
        return
    debt = max(spent - rate * elapsed_s, 0)
    assert bucket.wait_s() == pytest.approx(debt / other, abs=0.0011, rel=1e-6)


def test_a_step_is_never_smaller_than_a_fetch_should_be(clock: Clock) -> None:
    bucket = Bucket(clock)
    bucket.set_rate(1000)
    assert bucket.step_bytes == SMALLEST_FETCH_BYTES
    bucket.set_rate(100e6)
    assert bucket.step_bytes == int(100e6 * STEP_S)


def test_a_pump_gets_its_share(clock: Clock) -> None:
    limits = limits_of(clock, share=0.25)
    limits.set_rates(40e6, 20e6)
    assert limits.fetch_bytes(backfill=False) == 10e6 * STEP_S
    assert limits.fetch_bytes(backfill=True) == 5e6 * STEP_S
    fetcher = Fetcher(limits, backfill=False)
    run(clock, [fetcher], 10)
    assert fetcher.passed == pytest.approx(100e6, rel=0.05)


def test_the_live_tail_goes_first_and_the_backfill_gets_the_rest(clock: Clock) -> None:
    limits = limits_of(clock)
    limits.set_rates(10e6, None)
    live = Fetcher(limits, backfill=False, per_s=3e6)
    history = Fetcher(limits, backfill=True)
    run(clock, [history, live], 20)
    assert live.passed == pytest.approx(60e6, rel=0.02)
    assert live.longest_wait_s < STEP_S
    assert history.passed == pytest.approx(140e6, rel=0.05)


def test_a_live_tail_that_fills_the_cap_leaves_the_backfill_nothing(clock: Clock) -> None:
    limits = limits_of(clock)
    limits.set_rates(10e6, None)
    live = Fetcher(limits, backfill=False, per_s=20e6)
    history = Fetcher(limits, backfill=True)
    run(clock, [history, live], 20)
    assert live.passed == pytest.approx(200e6, rel=0.05)
    assert history.passed < 10e6


@pytest.mark.parametrize("cap", [None, 50e6])
def test_the_backfill_has_a_cap_of_its_own(clock: Clock, cap: float | None) -> None:
    limits = limits_of(clock)
    limits.set_rates(cap, 2e6)
    live = Fetcher(limits, backfill=False, per_s=5e6)
    history = Fetcher(limits, backfill=True)
    run(clock, [history, live], 20)
    assert history.passed == pytest.approx(40e6, rel=0.05)
    assert live.passed == pytest.approx(100e6, rel=0.02)
    assert live.longest_wait_s < 0.05
    limits.set_rates(cap, 8e6)
    before = history.passed
    run(clock, [history, live], 20)
    assert history.passed - before == pytest.approx(160e6, rel=0.05)
    limits.set_rates(cap, None)
    before = history.passed
    run(clock, [history, live], 5)
    assert history.passed - before > 5 * 0.8 * ((cap or 1e9) - 5e6)


def test_the_backfill_stops_at_a_lower_mark_of_memory(clock: Clock) -> None:
    pool = FramePool(MB, keep=2)
    limits = limits_of(clock, pool=pool)
    for held in range(1, 65):
        pool.take(MB)
        assert limits.has_memory(backfill=True) == (held * MB <= 64 * MB * 3 / 8)
        assert limits.has_memory(backfill=False) == (held * MB <= 64 * MB / 2)


def test_a_lane_that_waits_for_its_cap_has_one_timer() -> None:
    """It is asked in each turn, and each timer would wake all the others."""
    connections = object.__new__(SourceConnections)
    timers: list[Callable[[], None]] = []
    limits = SimpleNamespace(has_memory=lambda **_: True, wait_s=lambda **_: 1.0)
    loop = SimpleNamespace(now=0.0, at=lambda _, call: timers.append(call))
    for name, value in {"_ending": False, "_limits": limits, "_loop": loop, "_waking": set()}.items():
        setattr(connections, name, value)
    lanes = Lane(1, backfill=False), Lane(1, backfill=True)
    for _ in range(5):
        assert not any(connections._may_fetch(lane) for lane in lanes)
    assert len(timers) == 2
    timers.pop()()
    for lane in lanes:
        connections._may_fetch(lane)
    assert len(timers) == 2
