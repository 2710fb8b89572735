"""The window of a line: bandwidth times delay, within memory; and no change on a short line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.pump.memory_budget import FETCH_BYTES
from sparkmirror.pump.window import (
    GAIN,
    MOST_CONNECTIONS,
    SHORT_S,
    Line,
    LineMeter,
    LineWindow,
    WindowReason,
    batch_bytes,
    connections_for,
    window,
)

MB = 1 << 20
many = settings(max_examples=500, deadline=None)
round_trips = st.one_of(st.none(), st.floats(0, 2))
rates = st.floats(0, 1e10)
sizes = st.integers(1, 256 * MB)
pressures = st.floats(-1, 2)


@many
@given(round_trip_s=round_trips, rate=rates, usual=sizes, most=sizes, pressure=pressures)
def test_a_window_is_never_over_the_bound_and_never_below_the_usual_size(
    round_trip_s: float | None, rate: float, usual: int, most: int, pressure: float
) -> None:
    chosen = window(Line(round_trip_s, rate), usual=usual, most=most, pressure=pressure)
    assert min(usual, most) <= chosen.size <= most


@many
@given(round_trip_s=st.one_of(st.none(), st.floats(0, SHORT_S * 0.999)), rate=rates, most=sizes, pressure=pressures)
def test_a_short_line_gets_the_usual_size(round_trip_s: float | None, rate: float, most: int, pressure: float) -> None:
    chosen = window(Line(round_trip_s, rate), usual=FETCH_BYTES, most=most, pressure=pressure)
    assert chosen == LineWindow(min(FETCH_BYTES, most), WindowReason.SHORT)


@many
@given(
    line=st.builds(Line, st.floats(SHORT_S, 2), rates),
    usual=sizes,
    most=sizes,
    pressures=st.tuples(pressures, pressures),
)
def test_a_window_shrinks_as_memory_gets_short(
    line: Line, usual: int, most: int, pressures: tuple[float, float]
) -> None:
    low, high = (window(line, usual=usual, most=most, pressure=pressure).size for pressure in sorted(pressures))
    assert low >= high
    assert window(line, usual=usual, most=most, pressure=1).size == min(usual, most)


@many
@given(
    round_trip_s=st.floats(SHORT_S, 1),
    bandwidth=st.floats(1e6, 1e9),
    most=st.integers(FETCH_BYTES, 128 * MB),
    steps_s=st.lists(st.floats(0.0, 0.02), min_size=1, max_size=20),
)
def test_a_window_grows_to_bandwidth_times_delay(
    round_trip_s: float, bandwidth: float, most: int, steps_s: list[float]
) -> None:
    """A line that moves a window in each round trip, but no more than its bandwidth."""
    now = [1000.0]
    meter = LineMeter(lambda: now[0])
    chosen = window(meter.line, usual=FETCH_BYTES, most=most)
    for turn in range(400):
        moved = chosen.size
        took_s = max(moved / bandwidth, round_trip_s) + steps_s[turn % len(steps_s)] * 0.1
        now[0] += took_s
        meter.answered(moved, took_s, round_trip_s)
        chosen = window(meter.line, usual=FETCH_BYTES, most=most)
        assert chosen.size <= most
    product = bandwidth * round_trip_s
    assert chosen.size >= min(0.9 * product, most, int(GAIN * FETCH_BYTES))
    assert chosen.size <= max(GAIN * product * 1.05, FETCH_BYTES)


def test_the_shortest_round_trip_counts_until_it_is_old() -> None:
    now = [1000.0]
    meter = LineMeter(lambda: now[0])
    for first_s in (0.3, 0.1, 0.5):
        meter.answered(MB, 0.5, first_s)
    assert meter.line.round_trip_s == 0.1
    for _ in range(3):
        now[0] += 11.0
        meter.answered(MB, 0.5, 0.2)
    assert meter.line.round_trip_s == 0.2
    meter.answered(MB, 0.0)
    assert meter.line.round_trip_s == 0.2, "an answer for which the broker waited tells nothing"


def test_a_line_that_moves_less_gets_less() -> None:
    now = [1000.0]
    meter = LineMeter(lambda: now[0])

    def run(rate: float, seconds: float) -> int:
        for _ in range(int(seconds / 0.1)):
            now[0] += 0.1
            meter.answered(int(rate * 0.1), 0.1, 0.1)
        return window(meter.line, usual=MB, most=64 * MB).size

    assert run(100e6, 5) == pytest.approx(20e6, rel=0.1)
    assert run(10e6, 5) == pytest.approx(2e6, rel=0.1)
    assert window(meter.line, usual=4 * MB, most=64 * MB).choice is WindowReason.ENOUGH


@many
@given(size=sizes, partitions=st.integers(1, 10_000), before=st.integers(1, MOST_CONNECTIONS))
def test_connections_carry_the_window_and_no_partition_has_two(size: int, partitions: int, before: int) -> None:
    number = connections_for(size, FETCH_BYTES, partitions=partitions, before=before)
    assert 1 <= number <= min(partitions, MOST_CONNECTIONS)
    assert number * FETCH_BYTES >= size or number in {partitions, MOST_CONNECTIONS}
    again = connections_for(size, FETCH_BYTES, partitions=partitions, before=number)
    assert again == number, "the same window leaves the number as it is"


def test_connections_that_may_carry_nothing_are_as_many_as_allowed() -> None:
    """`fetch.max.bytes = 0`: an answer brings one batch at least."""
    assert connections_for(1, 0, partitions=100) == 1
    assert connections_for(MB, 0, partitions=100) == MOST_CONNECTIONS


@many
@given(size=sizes, partitions=st.integers(0, 10_000), in_flight=st.integers(1, 5), most=sizes)
def test_batches_fill_a_window_and_no_more(size: int, partitions: int, in_flight: int, most: int) -> None:
    each = batch_bytes(size, partitions=partitions, in_flight=in_flight, most=most)
    assert each <= most
    assert each * max(partitions * in_flight, 1) <= 2 * size


def test_a_near_broker_that_is_busy_is_not_far() -> None:
    """Answers under load wait for one another; the dial tells the line."""
    now = [1000.0]
    meter = LineMeter(lambda: now[0])
    meter.dialed(0.002)
    for _ in range(300):
        now[0] += 0.1
        meter.answered(10 * MB, 0.08, 0.08)
    assert meter.line.round_trip_s == 0.002
    assert window(meter.line, usual=FETCH_BYTES, most=64 * MB).choice is WindowReason.SHORT
    for _ in range(MOST_CONNECTIONS):
        meter.dialed(0.09)
    assert meter.line.round_trip_s == 0.08, "newer dials replace the older"
