"""What a flow is said to be, by how far its partitions are copied."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.mirror.engine.catching_up import LIVE_S, CatchingUp, PartitionLag


def standing(position: int | None, end: int | None, key: str = "t-0", *, parked: bool = False) -> PartitionLag[str]:
    return PartitionLag(key=key, position=position, end=end, parked=parked)


@pytest.mark.parametrize(
    ("standings", "state"),
    [
        ([standing(None, 20_000)], "finding out"),
        ([standing(7, None)], "finding out"),
        ([standing(None, None), standing(5, 5, "t-1")], "finding out"),
        ([standing(0, 1)], "copying"),
        ([standing(0, 1), standing(5, 5, "t-1")], "copying"),
        ([standing(0, 0)], "caught up"),
        ([standing(5, 5)], "caught up"),
        ([standing(6, 5)], "caught up"),
        ([standing(1, 1_002, parked=True), standing(5, 5, "t-1")], "held up"),
        ([standing(None, None, parked=True)], "held up"),
        ([standing(1_002, 1_002, parked=True)], "held up"),
        ([standing(0, 9), standing(1, 2, "t-1", parked=True)], "copying"),
    ],
)
def test_at_the_first_look(standings: list[PartitionLag[str]], state: str) -> None:
    assert CatchingUp[str]().look(standings, 0.0) == state


def test_what_has_just_come_does_not_count() -> None:
    """A heartbeat each second, which is copied a moment later, makes no difference."""
    catching_up = CatchingUp[str]()
    assert catching_up.look([standing(9, 9)], 0.0) == "caught up"
    for second in range(1, 60):
        assert catching_up.look([standing(8 + second, 9 + second)], second) == "caught up"


def test_what_waits_for_longer_does() -> None:
    catching_up = CatchingUp[str]()
    catching_up.look([standing(9, 9)], 0.0)
    assert catching_up.look([standing(9, 10)], 1.0) == "caught up"
    assert catching_up.look([standing(9, 11)], 1.0 + LIVE_S) == "caught up"
    assert catching_up.look([standing(9, 12)], 1.1 + LIVE_S) == "copying"
    assert catching_up.look([standing(10, 13)], 1.2 + LIVE_S) == "caught up", "the end that was seen first is reached"


def test_who_has_never_reached_an_end_that_was_seen_is_copying() -> None:
    catching_up = CatchingUp[str]()
    assert catching_up.look([standing(0, 20_000)], 0.0) == "copying"
    assert catching_up.look([standing(19_999, 30_000)], 0.5) == "copying"
    assert catching_up.look([standing(20_000, 30_000)], 1.0) == "caught up"
    assert catching_up.look([standing(20_001, 40_000)], 1.5 + LIVE_S) == "copying"


def test_who_was_lost_sight_of_begins_again() -> None:
    catching_up = CatchingUp[str]()
    catching_up.look([standing(9, 9)], 0.0)
    catching_up.look([standing(None, 9)], 1.0)
    assert catching_up.look([standing(8, 9)], 2.0) == "copying"
    catching_up.look([standing(9, 9)], 3.0)
    catching_up.look([], 4.0)
    assert catching_up.look([standing(8, 9)], 5.0) == "copying"


OFFSETS = st.none() | st.integers(0, 6)


@given(st.lists(st.tuples(OFFSETS, OFFSETS, OFFSETS, OFFSETS), min_size=1, max_size=30))
def test_nothing_is_said_to_have_caught_up_that_was_never_seen_to(
    looks: list[tuple[int | None, int | None, int | None, int | None]],
) -> None:
    """Two partitions; a state of `caught up` takes that each has reached an end that was seen by then."""
    catching_up = CatchingUp[str]()
    seen: dict[str, set[int]] = {"t-0": set(), "t-1": set()}
    for number, (first, first_end, second, second_end) in enumerate(looks):
        standings = [standing(first, first_end), standing(second, second_end, "t-1")]
        state = catching_up.look(standings, float(number))
        for one in standings:
            if one.position is None or one.end is None:
                seen[one.key].clear()
                assert state == "finding out"
            else:
                seen[one.key].add(one.end)
        if state == "caught up":
            assert all(seen[one.key] for one in standings)
