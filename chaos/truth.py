"""Whether what the mirror says is so: a topic copied to its end, against the high watermarks of both sides.

The mirror's words are as old as its reports, so they are held against what the source had acknowledged a while before,
and count as false only if the target lacks these records a moment after they were said, too.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from chaos.mirror import remote

REPORTED_S = 40.0
"""So long ago the source had acknowledged what a word must know of.

A driver that can't read the source's ends takes those of 30 s ago (`mirror/engine/flow_view.py`), and a partition that
had caught up still counts as such for 5 s.
"""
NOTICED_S = 60.0
"""So long the mirror may take to notice that the target has lost what it had acknowledged."""
STILL_S = 5.0
"""So long after the word the target must still lack them."""
_STEP_S = 0.5

Part = tuple[str, int]
"""A partition of a source topic."""
Ends = Mapping[str, Sequence[int]]
"""High watermarks, by topic."""


class Lacking(NamedTuple):
    """What a partition of the copy lacks."""

    promised: int
    """The source's end, as it was long before."""
    there: int
    """The copy's end."""


class _Moment(NamedTuple):
    at: float
    source: Mapping[str, tuple[int, ...]]
    target: Mapping[str, tuple[int, ...]]


class Truth:
    """The high watermarks of the last two minutes; for any thread. Times are of the monotonic clock."""

    def __init__(self) -> None:
        self._moments: deque[_Moment] = deque()
        self._noting = threading.Lock()

    def note(self, at: float, source: Ends, target: Ends) -> None:
        """Take note of the ends at a moment, those of the copy by the copy's names; more often than twice a second
        is once too often."""
        with self._noting:
            if self._moments and at - self._moments[-1].at < _STEP_S:
                return
            self._moments.append(
                _Moment(at, *({name: tuple(ends) for name, ends in it.items()} for it in (source, target)))
            )
            while at - self._moments[0].at > REPORTED_S + NOTICED_S + 2 * STILL_S:
                self._moments.popleft()

    def can_judge(self, said_at: float) -> bool:
        """Whether a word of that time is old enough to be judged."""
        return bool(self._moments) and self._moments[-1].at >= said_at + STILL_S

    def lacking(self, said_at: float) -> dict[Part, Lacking]:
        """Return what the copy lacked at that time that a word may not leave out."""
        with self._noting:
            moments = list(self._moments)
        times = [moment.at for moment in moments]
        known = bisect_right(times, said_at - REPORTED_S) - 1
        if known < 0:
            return {}
        since = bisect_right(times, said_at - NOTICED_S)
        found = {}
        for topic, ends in moments[known].source.items():
            copy = remote(topic)
            for partition, promised in enumerate(ends):
                there = max(moment.target[copy][partition] for moment in moments[since:])
                if there < promised:
                    found[topic, partition] = Lacking(promised, there)
        return found
