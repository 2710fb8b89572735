"""Quiet rule (R5): old records wait until no earlier request can arrive any more."""

from __future__ import annotations

from sparkmirror.pump.limits import LONGEST_THROTTLE_S

GRACE_S = 8.0
"""The quiet rule's wait.

A cancelled predecessor lives on for up to 4 s: Spark looks for it each 2 s, and kills it 2 s later
(`PythonRunner.MonitorThread`, `spark.python.task.killTimeout`). Its last batch may have gone out right before, and is
believed for the 3 s of R6. An unguarded batch goes alone over its connection, which the broker does not mute, so the
broker reads it at once (`TargetConnection`).
"""

LATE_S = LONGEST_THROTTLE_S
"""Time after which no pipelined request can arrive any more.

A broker reads a connection's next request when it has answered the one before, and when that answer's throttle has
ended (KIP-219), also after the client has gone. Guarded batches are pipelined, so one may arrive as late as that. While
the state is there, the leader refuses it; old records could take the state with them.
"""

WAITS = (
    "an earlier request may still arrive: it continues once nothing has moved for 8 s (records too old to be guarded)"
)


class QuietRule:
    """One partition's quiet rule.

    Only an `unclean` takeover has to wait, and a pump whose connection broke with batches in flight. `guarded` is True
    if the target leader's state is sure to tell an earlier batch from this pump's next batch.
    """

    def __init__(self, unclean: bool, now: float) -> None:
        self.unclean = unclean
        self.holds = unclean
        """True while records may have to wait."""
        self._ends_at = now + LATE_S
        self._sequence: int | None = None
        """The position's sequence when the wait began; None: no wait yet.

        If the position has the same sequence after the wait, no predecessor is writing.
        """
        self.look_at = 0.0
        """Earliest time to read the position again."""

    def begin(self, now: float, *, pipelined: bool) -> None:
        """Note own batches that may still arrive; `pipelined` ones arrive late."""
        self._ends_at = max(self._ends_at if self.holds else now, now + (LATE_S if pipelined else GRACE_S))
        self.holds, self._sequence = True, None

    def may_be_written_to(self, now: float) -> bool:
        """True if earlier requests may still arrive."""
        return self.holds and (self._sequence is not None or now < self._ends_at)

    def allows_position(self, sequence: int, read_at: float, now: float, *, guarded: bool) -> bool:
        """True if the records after a position read at `read_at` may be sent.

        Else the wait continues, or begins; a moved position begins the wait again.
        """
        if not self.holds or (guarded and self._sequence is None):
            return True
        if self._sequence != sequence:
            self.wait(sequence, now)
        elif read_at >= self.look_at:
            self.holds = False
        return not self.holds

    def allows_batch(self, now: float, *, guarded: bool) -> bool:
        """True if a fetched batch may be sent; else the caller calls `wait_for_late`."""
        if self.holds and now >= self._ends_at and self._sequence is None:
            self.holds = False
        return not self.holds or guarded

    def wait(self, sequence: int, now: float) -> None:
        """Begin to wait, with the position at `sequence`."""
        self._sequence = sequence
        self.look_at = now + GRACE_S

    def wait_for_late(self, sequence: int, now: float) -> None:
        """Begin to wait until pipelined requests have arrived, too."""
        self.wait(sequence, now)
        self.look_at = max(self.look_at, self._ends_at)
