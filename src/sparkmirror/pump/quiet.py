"""The quiet rule (R5): what is old is not written before no predecessor can be writing any more."""

from __future__ import annotations

GRACE_S = 6.0
"""The rule's wait: a killed predecessor lives 2 s on (Spark's kill delay), then may send for R6's 3 s."""

WAITS = "waits until no predecessor can be writing any more (records too old to be guarded)"


class QuietRule:
    """One partition's, after a takeover that may have been `unclean`; else there is nothing to wait for.

    `guarded`: the target leader's state is sure to tell a predecessor's batch from ours.
    """

    def __init__(self, unclean: bool, now: float) -> None:
        self._holds = unclean
        self._ends_at = now + GRACE_S
        self._sequence: int | None = None
        """Where the position stood when the wait began; if it stands there afterwards, nobody moves it."""
        self.look_at = 0.0
        """Not before then is the position read again."""

    def allows_position(self, sequence: int, read_at: float, now: float, *, guarded: bool) -> bool:
        """Whether what follows a position read at that time may be sent; else the wait goes on, or begins (again)."""
        if not self._holds or (guarded and self._sequence is None):
            return True
        if self._sequence != sequence:
            self.wait(sequence, now)
        elif read_at >= self.look_at:
            self._holds = False
        return not self._holds

    def allows_batch(self, now: float, *, guarded: bool) -> bool:
        """Whether what was fetched may be sent; else call `wait`."""
        if self._holds and now >= self._ends_at and self._sequence is None:
            self._holds = False
        return not self._holds or guarded

    def wait(self, sequence: int, now: float) -> None:
        """Begin to wait, with the position there."""
        self._sequence = sequence
        self.look_at = now + GRACE_S
