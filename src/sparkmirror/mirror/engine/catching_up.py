"""Define "caught up" for everything that reports a flow's state."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, NamedTuple, TypeVar

from sparkmirror.mirror.engine.waits import Goal
from sparkmirror.snapshot.flow_state import FlowState

LIVE_S = 5.0
"""Longest wait, in seconds, for a record of a caught-up partition.

Pumps report, and the driver reads the ends, every few seconds.
"""

Key = TypeVar("Key", bound=Hashable)


class PartitionLag(NamedTuple, Generic[Key]):
    """A copied partition's position, next to the end of its source."""

    key: Key
    position: int | None
    """Next source offset to copy; None before the first reading."""
    end: int | None
    """Source offset after the last record; None until read."""
    parked: bool
    """True if the partition is parked, or held back by an open transaction."""
    start: int = 0
    """The source's log start: offsets below are not there to be copied."""
    readable: int | None = None
    """End of the readable records, while an open transaction holds the rest back.

    None: all records are readable.
    """

    @property
    def lag(self) -> int | None:
        """Offsets that the source has and the target has not acknowledged yet.

        None: not known.
        """
        if self.position is None or self.end is None:
            return None
        return max(self.end - max(self.position, self.start), 0)


class CatchingUp(Generic[Key]):
    """Watch over a flow's partitions; `look` must get all of them, regularly.

    A partition catches up by reaching an end that was seen, and stays so while it reaches each later end within
    `LIVE_S`: records just on their way don't count. Records of open transactions don't count either, until these stay
    open for long (`mirror/engine/transaction_watch.py`).
    """

    def __init__(self) -> None:
        self._goals: dict[Key, Goal] = {}
        self._caught_up: set[Key] = set()

    def look(self, lags: Iterable[PartitionLag[Key]], now_s: float) -> FlowState:
        """Return the flow's state: `finding out`, `copying`, `held up` or `caught up`.

        `now_s` is a monotonic clock's. `lags` counts late records and refused topics as parked partitions.
        """
        unknown = behind = parked = False
        seen = set()
        for lag in lags:
            key, position, end, is_parked, start, readable = lag
            if end is not None and readable is not None:
                end = min(end, readable)
            seen.add(key)
            parked |= is_parked
            if position is None or end is None:
                unknown |= not is_parked
                self._caught_up.discard(key)
            elif position >= end or start >= end:
                self._goals.pop(key, None)
                self._caught_up.add(key)
            elif not self._reaches(key, position, end, now_s):
                behind |= not is_parked
        self._caught_up &= seen
        self._goals = {key: goal for key, goal in self._goals.items() if key in seen}
        if unknown:
            return FlowState.FINDING_OUT
        if behind:
            return FlowState.COPYING
        return FlowState.HELD_UP if parked else FlowState.CAUGHT_UP

    def _reaches(self, key: Key, position: int, end: int, now_s: float) -> bool:
        """True if a partition that lags counts as caught up all the same."""
        goal = self._goals.get(key)
        if goal is None:
            self._goals[key] = Goal(end, now_s)
        elif position >= goal.end:
            self._goals[key] = Goal(end, now_s)
            self._caught_up.add(key)
        elif now_s - goal.since_s > LIVE_S:
            self._caught_up.discard(key)
        return key in self._caught_up
