"""The forecast: what shrinks, how fast, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.receipts import receipt

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.engine import lag_monitor
from sparkmirror.mirror.engine.assignment import PartitionKey
from sparkmirror.mirror.engine.flow_view import FlowView, PartitionView
from sparkmirror.mirror.engine.forecast import WINDOW_S, Forecast, Forecaster, LagSample
from sparkmirror.mirror.engine.lag_monitor import LagMonitor

HOUR_MS = 3_600_000
WHERE = ("orders", 3)


def standing(
    at_s: float,
    upstream: int = 1_000,
    *,
    end: int = 10_000,
    start: int = 0,
    timestamp_ms: int | None = None,
    retention_ms: int | None = None,
) -> LagSample:
    return LagSample(
        at_s=at_s,
        upstream=upstream,
        source_end=end,
        log_start=start,
        timestamp_ms=timestamp_ms,
        retention_ms=retention_ms,
    )


def minutes(*standings: LagSample) -> float | None:
    forecaster = Forecaster()
    for one in standings:
        forecaster.note({WHERE: one})
    found = list(forecaster.forecasts())
    assert [(one.topic, one.partition) for one in found] in ([], [WHERE])
    return found[0].minutes if found else None


def test_a_start_that_moves_towards_a_position_that_stands_still() -> None:
    """600 offsets in a minute, 400 are left."""
    assert minutes(standing(0), standing(60, start=600)) == pytest.approx(400 / 600)


def test_a_start_that_is_faster_than_the_copy() -> None:
    assert minutes(standing(0), standing(60, 1_300, start=700)) == pytest.approx(600 / 400)


def test_a_copy_that_is_faster_than_the_start() -> None:
    assert minutes(standing(0), standing(60, 1_700, start=600)) is None


def test_a_copy_that_is_done_before_the_start_arrives() -> None:
    """A live tail: the start jumps by a segment, but what is there is copied in a moment."""
    assert minutes(standing(0, 9_000, end=9_010), standing(60, 9_900, start=2_000, end=9_910)) is None


@given(st.floats(61, 100_000), st.integers(1, 48))
def test_time_runs_out_for_a_copy_that_stands_still(at_s: float, hours: int) -> None:
    """The oldest record that isn't copied is as old as the last one that is."""
    first, last = (standing(when, timestamp_ms=0, retention_ms=hours * HOUR_MS) for when in (at_s - 60, at_s))
    left_s = hours * 3600 - at_s
    assert minutes(first, last) == pytest.approx(max(left_s, 0) / 60, abs=1e-6)


def test_a_copy_that_keeps_its_distance_in_time() -> None:
    """A minute of lag in a topic that keeps ten: no danger, for ever."""
    first = standing(1_000, 1_000, timestamp_ms=940_000, retention_ms=600_000)
    assert minutes(first, standing(1_060, 2_000, timestamp_ms=1_000_000, retention_ms=600_000)) is None


def test_a_copy_that_falls_behind_in_time() -> None:
    """Half a minute for each minute: 540 s were left, 510 are, and so on."""
    first = standing(1_000, 1_000, end=1 << 40, timestamp_ms=940_000, retention_ms=600_000)
    second = standing(1_060, 2_000, end=1 << 40, timestamp_ms=970_000, retention_ms=600_000)
    assert minutes(first, second) == pytest.approx(510 / 30)


def test_nothing_is_said_of_what_is_not_known() -> None:
    assert minutes(standing(0), standing(60)) is None
    assert minutes(standing(0, timestamp_ms=0), standing(60, timestamp_ms=0)) is None
    assert minutes(standing(0, retention_ms=1), standing(60, retention_ms=1)) is None


def test_too_short_a_time_says_nothing() -> None:
    assert minutes(standing(0), standing(5, start=900)) is None


def test_old_moments_are_forgotten() -> None:
    """It was fast long ago, and stands since."""
    looks = [standing(0), standing(60, start=900)]
    looks += [standing(60 + 5 * step, start=900) for step in range(1, int(WINDOW_S / 5) + 20)]
    assert minutes(*looks) is None


def test_a_partition_that_has_caught_up_begins_again() -> None:
    forecaster = Forecaster()
    forecaster.note({WHERE: standing(0)})
    forecaster.note({})
    forecaster.note({WHERE: standing(60, start=600)})
    assert list(forecaster.forecasts()) == []


def test_its_words() -> None:
    forecaster = Forecaster()
    for moment in (standing(0), standing(60, start=100)):
        forecaster.note({WHERE: moment})
    (found,) = forecaster.forecasts()
    assert found.words == "the source deletes uncopied records of orders-3 in 9 min"


class PlayedSource:
    """A source at which nothing lags."""

    def end_offsets(self, *_: object, **__: object) -> Mapping[TopicPartition, int]:
        return {}


def test_each_endangered_partition_is_named_once(
    monkeypatch: pytest.MonkeyPatch, lines: Callable[[], list[str]]
) -> None:
    """The nearest first; one that comes later is named, and not the nearest again."""
    flow = FlowConfig(
        source=ClusterConfig(alias="A", bootstrap_servers=("127.0.0.1:1",)),
        target=ClusterConfig(alias="B", bootstrap_servers=("127.0.0.1:1",)),
    )
    view, source = FlowView(), cast("Any", PlayedSource())
    monitor = LagMonitor(flow, view, source, source, list, lambda: True)

    def look(*forecasts: Forecast) -> list[str]:
        monkeypatch.setattr(Forecaster, "forecasts", lambda _: forecasts)
        monitor.look()
        return lines()

    near, nearer, far = Forecast("orders", 3, 14), Forecast("bills", 0, 7), Forecast("old", 1, 10_000)
    start = "flow A->B: the source deletes uncopied records of "
    assert look(near, far) == [f"{start}orders-3 in 14 min"]
    later = Forecast("carts", 2, 20)
    assert look(near, far, nearer, later) == [f"{start}bills-0 in 7 min", f"{start}carts-2 in 20 min"]
    assert view.forecast == nearer
    assert look(near, nearer, later) == []


def test_without_the_lease_nothing_is_forecast(monkeypatch: pytest.MonkeyPatch, lines: Callable[[], list[str]]) -> None:
    """The process that has it copies; the receipts here stand still meanwhile."""
    flow = FlowConfig(
        source=ClusterConfig(alias="A", bootstrap_servers=("127.0.0.1:1",)),
        target=ClusterConfig(alias="B", bootstrap_servers=("127.0.0.1:1",)),
    )
    now_s, acts, asked = 1_700_000_000.0, True, 0

    def starts(_: object) -> Mapping[TopicPartition, int]:
        nonlocal asked
        asked += 1
        return {WHERE: 0}

    last = receipt(3, upstream=1_000, timestamp_ms=int(now_s * 1000))
    view = FlowView(partitions={PartitionKey("A->B", *WHERE): PartitionView(receipt=last)})
    source: Any = SimpleNamespace(
        end_offsets=lambda *_, **__: {WHERE: 10_000},
        start_offsets=starts,
        topic_configs=lambda _: {
            "orders": [
                SimpleNamespace(name="cleanup.policy", value="delete"),
                SimpleNamespace(name="retention.ms", value=str(HOUR_MS)),
            ]
        },
    )
    monkeypatch.setattr(lag_monitor, "time", SimpleNamespace(time=lambda: now_s))
    monitor = LagMonitor(flow, view, source, source, lambda: [WHERE], lambda: acts)

    def warnings() -> int:
        nonlocal now_s
        for _ in range(8):
            now_s += 5
            monitor.look()
        assert (view.forecast is not None) is acts
        return len(lines())

    assert warnings() == 1
    acts, asked = False, 0
    assert warnings() == 0
    assert asked == 0
    assert view.source_ends == {WHERE: 10_000}
    acts = True
    assert warnings() == 1
