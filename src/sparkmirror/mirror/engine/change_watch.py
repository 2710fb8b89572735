"""The change of a running round's plan that is under way, step by step."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from sparkmirror.events import Event
from sparkmirror.mirror.engine.assignment import PartitionKey
from sparkmirror.mirror.engine.end_reason import EndReason
from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.mirror.engine.planner import PlannedChange, Planner
from sparkmirror.mirror.engine.round_job import RoundJob
from sparkmirror.mirror.engine.slots import LONGEST_START_S
from sparkmirror.pump.messages.moves import NO_TASK

TASKS_S = LONGEST_START_S + 5.0
"""Seconds in which additional tasks have to report.

`Slots` judges them before, so that the next plan does without tasks that have no slot.
"""

MOVE_S = 20.0
"""Seconds in which the next task has to report each moved partition.

Then the round ends instead.
"""

_NAMED = 3
"""Most tasks or partitions in a line about a change that is late."""

log = logging.getLogger(__name__)


class ChangeWatch:
    """Change one round's plan: `begin`, then `go_on` in each turn.

    Tasks that the plan needs next to the running ones are started first, and report. Then the moves are said, and the
    change ends when each moved partition is reported by its next task. What takes too long ends the round, and the
    next round is planned again.
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
        return self._change is not None

    def begin(self, reason: EndReason) -> EndReason | None:
        """Begin to change to the best plan.

        Returns `reason` if the round has to end for it: if running tasks can't change to that plan, or if another
        change is under way.
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
        self._until = time.monotonic() + TASKS_S
        return self.go_on()

    def go_on(self) -> EndReason | None:
        """Take the next step, if it is time; return the reason if the round has to end."""
        change = self._change
        if change is None:
            return None
        if self._said_at is None and not self._missing_tasks(change):
            self._said_at = time.monotonic()
            self._until = self._said_at + MOVE_S
            if not self._planner.move(self._round, change, self._ready):
                return self._reason
        elif self._said_at is not None and not self._missing_partitions(change):
            self._change = None
            log.info(
                "epoch %d: %d partitions moved to other tasks in %.1f s, %d tasks",
                self._round,
                sum(NO_TASK not in move for move in change.moved.values()),
                time.monotonic() - self._said_at,
                len(change.assignment),
                extra=Event.EPOCH_CHANGED.extra,
            )
        if not self.is_under_way or time.monotonic() <= self._until:
            return None
        tasks, partitions = self._missing_tasks(change), self._missing_partitions(change)
        log.warning(
            "epoch %d: a change of the plan is not done, so the round ends: no report of %s",
            self._round,
            _first_of([f"task {task}" for task in tasks] or [f"{key.topic}-{key.partition}" for key in partitions]),
            extra=Event.EPOCH_CHANGE_LATE.extra,
        )
        return self._reason

    def _missing_tasks(self, change: PlannedChange) -> list[int]:
        by_name = {driver.name: driver for driver in self._ready}
        return [
            order.task
            for order in change.orders
            if not all(order.task in by_name[flow.flow.name].reports.started_tasks(self._round) for flow in order.flows)
        ]

    def _missing_partitions(self, change: PlannedChange) -> list[PartitionKey]:
        """Return the moved partitions that their next tasks have not reported yet."""
        by_name = {driver.name: driver for driver in self._ready}
        return [
            key
            for key, move in change.moved.items()
            if move.task != NO_TASK
            and not by_name[key.flow].view.has_arrived(key, self._round, by_name[key.flow].orders.newest_move(key))
        ]


def _first_of(names: Sequence[str]) -> str:
    """Return a few names, and how many there are next to them."""
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
