"""The change of a running round's plan that is under way, step by step."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from sparkmirror.engine.end_reason import EndReason
from sparkmirror.engine.flow_driver import FlowDriver
from sparkmirror.engine.planner import PlannedChange, Planner
from sparkmirror.engine.round_job import RoundJob
from sparkmirror.engine.slots import LONGEST_START_S
from sparkmirror.events import Event
from sparkmirror.messages.moves import NO_TASK

MOVE_S = 20.0
"""Seconds in which the next task has to report each moved partition.

Then the round ends instead.
"""

log = logging.getLogger(__name__)


class ChangeWatch:
    """Changes of the plan of one round: `begin`, then `go_on` in each turn.

    Tasks that the plan needs beside the running ones are started first, and report. Then the moves are said, and the
    change ends when each moved partition is reported by its next task. What takes too long ends the round, whose next
    one begins with the same plan.
    """

    def __init__(self, planner: Planner, job: RoundJob, round_number: int, ready: Sequence[FlowDriver]) -> None:
        self._planner = planner
        self._job = job
        self._round = round_number
        self._ready = ready
        self._change: PlannedChange | None = None
        self._reason = EndReason.LOAD
        self._said_at: float | None = None
        self._until = 0.0

    @property
    def is_under_way(self) -> bool:
        """True until the change is complete."""
        return self._change is not None

    def begin(self, reason: EndReason) -> EndReason | None:
        """Begin to change to the best plan.

        Returns `reason` if the round has to end for it.
        """
        change = None if self.is_under_way else self._planner.change(self._round, self._ready)
        if change is None:
            return reason
        if not change.moved:
            return None
        if change.orders:
            self._job.extend(change.orders)
            self._planner.begin(change)
            self._planner.slots.begin(len(change.assignment))
        self._change, self._reason, self._said_at = change, reason, None
        self._until = time.monotonic() + LONGEST_START_S
        return self.go_on()

    def go_on(self) -> EndReason | None:
        """Take the next step, if it is time; return the reason if the round has to end."""
        change = self._change
        if change is None:
            return None
        if self._said_at is None and self._have_started(change):
            self._said_at = time.monotonic()
            self._until = self._said_at + MOVE_S
            if not self._planner.move(self._round, change, self._ready):
                return self._reason
        elif self._said_at is not None and self._have_moved(change):
            self._change = None
            log.info(
                "epoch %d: %d partitions moved to other tasks in %.1f s, %d tasks",
                self._round,
                len(change.moved),
                time.monotonic() - self._said_at,
                len(change.assignment),
                extra=Event.EPOCH_CHANGED.extra,
            )
        return self._reason if self.is_under_way and time.monotonic() > self._until else None

    def _have_started(self, change: PlannedChange) -> bool:
        by_name = {driver.name: driver for driver in self._ready}
        return all(
            order.task in by_name[flow.flow.name].reports.started_tasks(self._round)
            for order in change.orders
            for flow in order.flows
        )

    def _have_moved(self, change: PlannedChange) -> bool:
        views = {driver.name: driver.view for driver in self._ready}
        return all(
            move.task == NO_TASK or views[key.flow].task_of(key, self._round) == move.task
            for key, move in change.moved.items()
        )
