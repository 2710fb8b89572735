"""Since when records wait to be copied, where their own timestamps are not known."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Goal(NamedTuple):
    """The end that a partition had when it was seen to lag."""

    end: int
    since_s: float


class Waits(Generic[Key]):
    """Watches partitions; one whose records come and go all the time lags in each look, and nothing waits for long."""

    def __init__(self) -> None:
        self._goals: dict[Key, Goal] = {}

    def since_s(self, key: Key, position: int, end: int, now_s: float) -> float:
        """When one of those that wait now was seen to wait: not before the oldest of them came, or later than that.

        `end` lies above `position`; times are in seconds.
        """
        goal = self._goals.get(key)
        if goal is None or position >= goal.end:  # what was there then is copied
            goal = self._goals[key] = Goal(end, now_s)
        return goal.since_s

    def forget(self, key: Key) -> None:
        """It has caught up, or nothing is known of it."""
        self._goals.pop(key, None)
