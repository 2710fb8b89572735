"""What a pump counts and measures."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.exact.durable.losses import LossKind
from sparkmirror.exact.position.cause import Cause, cause_of_error, cause_of_loss
from sparkmirror.kafka.wire.buffers import FramePool
from sparkmirror.kafka.wire.splice import Run
from sparkmirror.pump.batch import Batch
from sparkmirror.pump.messages.figures import LATENCY_BOUNDS_S, Totals, TrafficTotals
from sparkmirror.pump.tally import SAMPLE_S, FigureWindow, Tally
from sparkmirror.pump.verdicts import TABLE, ErrorAction

NOW_MS = 1_764_000_000_000


def a_batch(first_ms: int, last_ms: int, count: int = 10) -> Batch:
    frame = FramePool(1 << 10, keep=1).take(100)
    batch = Batch(frame, frame.view[:100], 0, (Run(0, count),), count, count, first_ms, last_ms, -1)
    batch.sent_at = 1_000.0
    return batch


def test_latencies_go_where_they_belong() -> None:
    counted = Tally(lambda: NOW_MS)
    counted.acknowledged(("orders", 3), a_batch(NOW_MS - 90, NOW_MS - 40), 1_000.01)
    counted.acknowledged(("heartbeats", 0), a_batch(NOW_MS - 7_200_000, NOW_MS - 7_200_000, 1), 1_000.01)
    counted.acknowledged(("orders", 3), a_batch(-1, -1), 1_000.01)  # without timestamps
    totals = counted.totals
    assert (counted.records, counted.bytes) == (21, 300)
    assert totals.latencies.counts[LATENCY_BOUNDS_S.index(0.05)] == sum(totals.latencies.counts) == 10
    assert totals.latencies.sum_ms == 400
    assert totals.heartbeats.counts[-1] == 1
    figures = counted.figures(("orders", 3), -1, 1_001.0)
    assert figures.latency_ms == (40.0, 40.0, 90.0, 65.0)
    assert figures.age_ms == pytest.approx((30, 30, 80, 55), abs=0.1)
    assert counted.figures(("bills", 0), 7, 1_001.0).latency_ms is None


def test_totals_add_up() -> None:
    counted = Tally()
    counted.source.answered(1_000, 0.5)
    counted.target.errors = 1
    both = counted.totals + counted.totals
    assert both.source == TrafficTotals(bytes=2_000, waited_ms=1_000)
    assert both.target == TrafficTotals(errors=2)
    assert both + Totals() == both


@given(st.lists(st.tuples(st.floats(0.0, 20.0), st.floats(0, 1e6)), min_size=1, max_size=30))
def test_a_window_forgets_what_is_two_samples_old(notes: list[tuple[float, float]]) -> None:
    window = FigureWindow()
    times = list(accumulate(step for step, _ in notes))
    for at, (_, value) in zip(times, notes, strict=True):
        window.note(at, value, value, 1)
    spread = window.read(times[-1])
    assert spread is not None
    young = [value for at, (_, value) in zip(times, notes, strict=True) if times[-1] - at < SAMPLE_S]
    last, least, most, mean = spread
    assert last == notes[-1][1]
    assert least <= min(young)
    assert most >= max(young)
    assert least - 1e-3 <= mean <= most + 1e-3
    assert window.read(times[-1] + 2 * SAMPLE_S + 1) is None


def test_each_error_that_parks_has_a_cause() -> None:
    parking = [code for code, (verdict, _) in TABLE.items() if verdict in (ErrorAction.PARK, ErrorAction.STOP)]
    assert Cause.BROKER not in map(cause_of_error, parking)
    assert cause_of_error(9_999) is Cause.BROKER


def test_each_loss_that_can_halt_has_a_cause() -> None:
    harmless = {LossKind.FENCED, LossKind.ALTERED, LossKind.COPY_EXPIRED}
    assert Cause.OTHER not in map(cause_of_loss, set(LossKind) - harmless)
