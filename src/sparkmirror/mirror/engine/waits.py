"""Times since when records wait, for records whose timestamps are not known."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Goal(NamedTuple):
    """A partition's end at the moment when the partition was seen to lag."""

    end: int
    since_s: float


class Waits(Generic[Key]):
    """Watch over partitions that lag.

    A busy partition lags in each look, yet no record waits for long.
    """

    def __init__(self) -> None:
        self._goals: dict[Key, Goal] = {}

    def since_s(self, key: Key, position: int, end: int, now_s: float) -> float:
        """Return the time from which on a record is known to wait that still waits.

        The oldest waiting record came at that time or earlier, so the true wait is at least as long. `end` is above
        `position`; times are in seconds.
        """
        goal = self._goals.get(key)
        if goal is None or position >= goal.end:  # the records there at that time are copied
            goal = self._goals[key] = Goal(end, now_s)
        return goal.since_s

    def forget(self, key: Key) -> None:
        """Forget a partition that has caught up, or is unknown."""
        self._goals.pop(key, None)
