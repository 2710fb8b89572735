"""Since when records wait: next to a list of when each of them came."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.mirror.engine.waits import Waits


def test_a_flow_that_is_never_seen_without_lag_does_not_get_older() -> None:
    waits: Waits[str] = Waits()
    for second in range(1000):
        assert second - waits.since_s("p", 10 * second, 10 * second + 5, second) == 0


def test_a_position_that_stands_still_gets_older() -> None:
    waits: Waits[str] = Waits()
    assert [waits.since_s("p", 5, 10 + second, second) for second in (3, 4, 100)] == [3, 3, 3]
    assert waits.since_s("p", 13, 200, 101) == 101
    waits.forget("p")
    assert waits.since_s("p", 14, 200, 102) == 102


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 8), st.integers(0, 8)), max_size=30))
def test_never_before_the_oldest_came(steps: list[tuple[int, int, int]]) -> None:
    """In each step time passes, records come, and some are copied."""
    waits: Waits[str] = Waits()
    now = position = 0
    came: list[int] = []
    for seconds, more, copied in steps:
        came += [now] * more
        now += seconds
        position = min(position + copied, len(came))
        if position == len(came):
            waits.forget("p")
            continue
        assert came[position] <= waits.since_s("p", position, len(came), now) <= now
