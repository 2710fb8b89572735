"""Times at which a partition's position is read again, with pauses that grow."""

from __future__ import annotations

PATIENCE_S = 60.0
"""Longest time without progress for a partition with an end (`until`).

Then the partition is parked, because `--once` must end.
"""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
_SHORTEST_RETRY_S = 0.5
_FIRST_PARK_S, _LONGEST_PARK_S = 5.0, 300.0
_MOST_DOUBLINGS = 8
"""Number of doublings that reach the longest pause.

After a thousand doublings a float would overflow.
"""


class Retry:
    """One partition's pauses; the first pause after progress is none."""

    def __init__(self, now: float) -> None:
        self.at = now
        """Time to read the position next, while SEEKING or PARKED."""
        self._failures = 0
        self._troubled_since: float | None = None

    def is_out_of_patience(self, now: float) -> bool:
        """True if there was no progress for `PATIENCE_S` since the first question."""
        if self._troubled_since is None:
            self._troubled_since = now
        return now - self._troubled_since > PATIENCE_S

    def pause(self, now: float, earliest: float) -> None:
        """Read again after a pause, and at `earliest` or later."""
        pause_s = self._doubled(_FIRST_PAUSE_S, _LONGEST_PAUSE_S) if self._failures else 0.0
        self._failures += 1
        self.at = max(now + pause_s, earliest)

    def pause_at_least_shortly(self, now: float) -> None:
        """Read again after `_SHORTEST_RETRY_S` or later."""
        self.at = max(self.at, now + _SHORTEST_RETRY_S)

    def park(self, now: float) -> None:
        """Look again after a long pause, which grows each time."""
        self.at = now + self._doubled(_FIRST_PARK_S, _LONGEST_PARK_S)
        self._failures += 1

    def _doubled(self, first_s: float, longest_s: float) -> float:
        return min(first_s * (1 << min(self._failures, _MOST_DOUBLINGS)), longest_s)

    def progressed(self) -> None:
        """Begin with the shortest pauses again."""
        self._failures = 0
        self._troubled_since = None

    def look_up(self, now: float) -> None:
        """Read at once, without a failure."""
        self.at = now
        self._failures = 0
