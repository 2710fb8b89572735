"""What "caught up" means: one definition, for all that tells how a flow is."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, NamedTuple, TypeVar

from sparkmirror.engine.waits import Goal

LIVE_S = 5.0
"""A partition has caught up while no record waits for longer: pumps report, and ends are read, every few seconds."""

UNKNOWN = -1
"""An offset that nobody has told yet."""

Key = TypeVar("Key", bound=Hashable)


class PartitionLag(NamedTuple, Generic[Key]):
    """How far one partition is copied."""

    key: Key
    position: int
    """At the source: the offset that is copied next; `UNKNOWN` before it was read."""
    end: int
    """At the source: behind the last offset that may be read; `UNKNOWN` before it was read."""
    parked: bool
    start: int = 0
    """Of the source's log: what is below it is not there to be copied."""

    @property
    def known(self) -> bool:
        """Whether its lag can be told."""
        return self.position > UNKNOWN and self.end > UNKNOWN

    @property
    def lag(self) -> int:
        """Offsets that are at the source and not acknowledged at the target yet."""
        return max(self.end - max(self.position, self.start), 0)


class CatchingUp(Generic[Key]):
    """Watches one flow's partitions; `look` once in a while, all of them each time.

    A partition has caught up once it has reached an end that was seen, and for as long as it reaches each later one
    within `LIVE_S`: records that are on their way just now don't count.
    """

    def __init__(self) -> None:
        self._goals: dict[Key, Goal] = {}
        self._caught_up: set[Key] = set()

    def look(self, standings: Iterable[PartitionLag[Key]], now_s: float) -> str:
        """The flow's state: `finding out`, `copying`, `held up` or `caught up`; `now_s` is a monotonic clock's."""
        unknown = behind = parked = False
        seen = set()
        for one in standings:
            key, position, end, is_parked, start = one
            seen.add(key)
            parked |= is_parked
            if position <= UNKNOWN or end <= UNKNOWN:
                unknown |= not is_parked
                self._caught_up.discard(key)
            elif position >= end or start >= end:
                self._goals.pop(key, None)
                self._caught_up.add(key)
            elif not self._reaches(one, now_s):
                behind |= not is_parked
        self._caught_up &= seen
        self._goals = {key: goal for key, goal in self._goals.items() if key in seen}
        return "finding out" if unknown else "copying" if behind else "held up" if parked else "caught up"

    def _reaches(self, one: PartitionLag[Key], now_s: float) -> bool:
        """Whether a partition that lags has caught up all the same."""
        goal = self._goals.get(one.key)
        if goal is None:
            self._goals[one.key] = Goal(one.end, now_s)
        elif one.position >= goal.end:
            self._goals[one.key] = Goal(one.end, now_s)
            self._caught_up.add(one.key)
        elif now_s - goal.since_s > LIVE_S:
            self._caught_up.discard(one.key)
        return one.key in self._caught_up
