"""Make fetched answers ready in turns; no partition keeps the loop for long."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sparkmirror.clock import now_s
from sparkmirror.exact.position.cause import Cause
from sparkmirror.pump.limits import Limits
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.partition import PartitionCopy

PREPARE_S = 0.2
"""Time for making batches ready, as answers come and once more after sending.

Then the loop takes another turn. A step that has begun, mostly one batch, is finished.
"""


class Preparation:
    """Makes the fetched data of one flow's partitions ready, bit by bit.

    `copies` are all the flow's partitions. `on_prepared` is called for each partition that continued in `flush`.
    """

    def __init__(
        self,
        loop: Loop,
        limits: Limits,
        copies: Sequence[PartitionCopy],
        on_prepared: Callable[[PartitionCopy], None],
    ) -> None:
        self._loop = loop
        self._limits = limits
        self._copies = copies
        self._on_prepared = on_prepared
        self._unprepared: dict[PartitionCopy, None] = {}
        """Partitions with an answer not wholly made ready, in the order of their turns."""

    def fed(self, copy: PartitionCopy) -> None:
        """Make an answer ready that has just come, if there is time and memory now."""
        until_s = self._loop.now + PREPARE_S
        its_turn = not (copy.backfilling and self._unprepared) and now_s() < until_s
        if its_turn and self._may_prepare(copy):
            self._prepare(copy, until_s)
        if copy.backlog.unprepared:
            self._unprepared[copy] = None

    def flush(self) -> None:
        """Prepare more from the last answers: live tail first, some backfill in each turn."""
        if not self._unprepared:
            return
        until_s = min(now_s(), self._loop.now + PREPARE_S) + PREPARE_S
        went_on = self._go_on([copy for copy in self._unprepared if not copy.backfilling], until_s)
        went_on += self._go_on([copy for copy in self._unprepared if copy.backfilling], until_s)
        if went_on:
            self._loop.at(self._loop.now, lambda: None)  # the next turn must not wait, to send the ready batches

    def clear(self) -> None:
        self._unprepared.clear()

    def _go_on(self, copies: Sequence[PartitionCopy], until_s: float) -> int:
        """Prepare at least a step if memory allows; return how many partitions continued."""
        number = 0
        for copy in copies:
            if number and now_s() >= until_s:
                break
            if not self._may_prepare(copy):
                continue
            number += 1
            del self._unprepared[copy]
            self._prepare(copy, until_s)
            if copy.backlog.unprepared:
                self._unprepared[copy] = None
            self._on_prepared(copy)
        return number

    def _prepare(self, copy: PartitionCopy, until_s: float) -> None:
        try:
            copy.prepare(self._loop.now, lambda: now_s() >= until_s or not self._may_prepare(copy))
        except ValueError as error:
            copy.park(f"source: the fetched data can't be read: {error}", self._loop.now, Cause.UNREADABLE)

    def _may_prepare(self, copy: PartitionCopy) -> bool:
        """True if memory allows making batches of the answer, which may be far larger."""
        idle = not copy.queue and not copy.in_flight
        if self._limits.may_prepare(backfill=copy.backfilling, idle=idle):
            return True
        return idle and not any(other.queue or other.in_flight for other in self._copies)
