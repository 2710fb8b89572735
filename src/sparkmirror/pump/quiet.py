"""Quiet rule (R5): old records wait until no predecessor can be writing any more."""

from __future__ import annotations

GRACE_S = 8.0
"""Wait of the quiet rule.

A cancelled predecessor lives on for up to 4 s: Spark looks for it each 2 s, and kills it 2 s later
(`PythonRunner.MonitorThread`, `spark.python.task.killTimeout`). Its last batch may have gone out right before, and is
believed for the 3 s of R6.
"""

WAITS = "waits until no predecessor can be writing any more (records too old to be guarded)"


class QuietRule:
    """Quiet rule of one partition.

    Only an `unclean` takeover has to wait. `guarded` is True if the target leader's state is sure to tell a
    predecessor's batch from this pump's batch.
    """

    def __init__(self, unclean: bool, now: float) -> None:
        self.unclean = unclean
        self.holds = unclean
        """True while records may have to wait."""
        self._ends_at = now + GRACE_S
        self._sequence: int | None = None
        """Sequence of the position when the wait began; None: no wait yet.

        If the position has the same sequence after the wait, no predecessor is writing.
        """
        self.look_at = 0.0
        """Earliest time to read the position again."""

    @property
    def is_waiting(self) -> bool:
        """True if a wait has begun and is not over."""
        return self.holds and self._sequence is not None

    def allows_position(self, sequence: int, read_at: float, now: float, *, guarded: bool) -> bool:
        """True if the records after a position read at `read_at` may be sent.

        Else the wait goes on, or begins; a moved position begins the wait anew.
        """
        if not self.holds or (guarded and self._sequence is None):
            return True
        if self._sequence != sequence:
            self.wait(sequence, now)
        elif read_at >= self.look_at:
            self.holds = False
        return not self.holds

    def allows_batch(self, now: float, *, guarded: bool) -> bool:
        """True if a fetched batch may be sent; else the caller calls `wait`."""
        if self.holds and now >= self._ends_at and self._sequence is None:
            self.holds = False
        return not self.holds or guarded

    def wait(self, sequence: int, now: float) -> None:
        """Begin to wait, with the position at `sequence`."""
        self._sequence = sequence
        self.look_at = now + GRACE_S
