"""When groups' offsets were last at the target: each partition's last good turn counts by itself."""

from __future__ import annotations

import pytest

from sparkmirror.mirror.sync.group_moments import GroupMoments


class Turns:
    """Turns of one group, of which each comes a second after the last."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._moments = GroupMoments()
        self._s = 0
        monkeypatch.setattr("sparkmirror.mirror.sync.group_moments.time.time", lambda: float(self._s))

    def turn(self, *places: tuple[int, int | None]) -> int | None:
        """Seconds of the group's time after a turn with these offsets, and these ends of the copy."""
        self._s += 1
        partitions = [("orders", number) for number in range(len(places))]
        offsets = {"shop": {partition: offset for partition, (offset, _) in zip(partitions, places, strict=True)}}
        reached = {partition: end for partition, (_, end) in zip(partitions, places, strict=True) if end is not None}
        synced_ms = self._moments.turn(offsets, reached).get("shop")
        return None if synced_ms is None else synced_ms // 1000


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Turns:
    return Turns(monkeypatch)


def test_never_all_exact_in_the_same_turn(turns: Turns) -> None:
    assert turns.turn((5, 5), (5, 4)) is None, "the second partition was never at the target"
    assert turns.turn((9, 5), (5, 5)) == 2, "the copy has reached where the first was in the turn before"
    assert turns.turn((9, 9), (8, 5)) == 3
    assert turns.turn((12, 10), (9, 8)) == 4


def test_always_a_little_ahead(turns: Turns) -> None:
    """The copy is one record behind in each turn, in every partition."""
    times = [turns.turn(*[(10 * turn, 10 * turn - 1)] * 25) for turn in range(1, 6)]
    assert times == [None, 2, 3, 4, 5]


def test_a_copy_that_lags_by_more_than_a_turn_is_late(turns: Turns) -> None:
    times = [turns.turn((10, 10), (10 * turn, 10 if turn == 1 else 10 * turn - 11)) for turn in range(1, 6)]
    assert times == [1, 1, 1, 1, 1]


def test_a_copy_that_stands_still_is_late_from_the_turn_after_next(turns: Turns) -> None:
    assert [turns.turn((end, 10)) for end in (10, 12, 14, 16)] == [1, 2, 2, 2]
    assert turns.turn((16, 16)) == 5


def test_a_group_that_went_back_is_at_the_target(turns: Turns) -> None:
    assert [turns.turn((offset, 10)) for offset in (20, 30, 5)] == [None, None, 3]


def test_a_partition_without_a_map_is_not_at_the_target(turns: Turns) -> None:
    assert turns.turn((0, None)) is None
    assert turns.turn((0, 0)) == 2
    assert turns.turn((0, None)) == 2


def test_a_partition_that_the_group_has_given_up_does_not_count(turns: Turns) -> None:
    assert turns.turn((5, 5), (5, 0)) is None
    assert turns.turn((5, 5)) == 2
