"""What a stream remembers of a partition from one micro-batch to the next, with a stand-in for Spark's state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from sparkmirror.frames.receipt_minutes import MINUTE_MS, MinuteReading
from sparkmirror.frames.receipts import _take

BEGAN_MS = 1_700_000_040_000 // MINUTE_MS * MINUTE_MS


class State:
    """Of one partition, as Spark's `GroupState` is used."""

    def __init__(self) -> None:
        self.get: tuple[str, ...] = ()
        self.watermark_ms = 0
        self.timeout_ms = 0

    @property
    def exists(self) -> bool:
        return bool(self.get)

    def update(self, value: tuple[str, ...]) -> None:
        self.get = value

    def getCurrentWatermarkMs(self) -> int:  # noqa: N802 - Spark's name
        return self.watermark_ms

    def setTimeoutTimestamp(self, at_ms: int) -> None:  # noqa: N802 - Spark's name
        assert at_ms > self.watermark_ms, "Spark refuses that"
        self.timeout_ms = at_ms


def reading(at_s: int, records: int, lag: int | None = None) -> MinuteReading:
    return MinuteReading(
        BEGAN_MS + at_s * 1000, "p", True, "orders", "A.orders", 0, records, records * 9, lag, lag, None, None, None
    )


def take(state: State, watermark_s: int, read: Sequence[MinuteReading]) -> list[tuple[int, int, object]]:
    """Minutes after the beginning, records and lag of what is given out."""
    state.watermark_ms = BEGAN_MS + watermark_s * 1000
    frames = iter([pd.DataFrame(read, columns=list(MinuteReading._fields))] if read else [])
    given: Any = state
    return [
        ((row.minute_ms - BEGAN_MS) // MINUTE_MS, row.records, row.lag)
        for frame in _take(("orders", 0), frames, given)
        for row in frame.itertuples()
    ]


def test_a_minute_is_given_out_once_it_has_ended() -> None:
    state = State()
    assert take(state, -MINUTE_MS, [reading(0, 0), reading(30, 5, 7), reading(70, 6)]) == []
    assert state.timeout_ms == BEGAN_MS + MINUTE_MS
    assert take(state, 60, []) == [(0, 5, 7)]
    assert state.timeout_ms == BEGAN_MS + 2 * MINUTE_MS
    assert take(state, 130, []) == [(1, 1, None)]


def test_what_a_clock_that_is_behind_tells_counts_in_the_open_minute() -> None:
    state = State()
    take(state, 0, [reading(0, 0)])
    assert take(state, 600, []) == [(0, 0, None)]
    assert take(state, 601, [reading(61, 3)]) == []
    assert take(state, 605, [reading(65, 8)]) == []
    assert take(state, 660, []) == [(10, 8, None)]


def test_a_row_that_tells_the_time_only_gives_nothing() -> None:
    given: Any = State()
    assert list(_take(("", -1), iter([]), given)) == []
