"""Plan a mirror's rounds: which task copies which partitions."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from sparkmirror.errors import SparkMirrorError
from sparkmirror.events import Event
from sparkmirror.mirror.engine.assignment import Assignment, PartitionKey, plan
from sparkmirror.mirror.engine.change import TaskChange, aligned, flows_of, moved
from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.mirror.engine.growth import grow, grown, shares
from sparkmirror.mirror.engine.slots import Slots
from sparkmirror.pump.messages.moves import MOST_MOVES, NO_TASK
from sparkmirror.pump.messages.orders import FlowOrder, PumpOrder

ROUND_S = 86_400.0
"""A round's longest duration, in seconds.

Each day the tasks build other connections and claims.
"""

log = logging.getLogger(__name__)


class Growth(Enum):
    """Outcome of handing new partitions to running tasks."""

    DONE = "done"
    LATER = "later"
    """Tasks have not reported yet, or topics are not checked yet."""
    IMPOSSIBLE = "impossible"
    """Only another plan has a place for the partitions.

    Running tasks may be able to change to it.
    """


class PlannedChange(NamedTuple):
    """A running round's change: tasks to start first, then partitions to move."""

    assignment: Assignment
    orders: list[PumpOrder]
    moved: Mapping[PartitionKey, TaskChange]


class Planner:
    """One mirror's planner.

    `assignment` is the running round's plan. A running task that has given all its partitions away is empty there.
    """

    def __init__(self, slots: Slots, incarnation: str) -> None:
        self.slots = slots
        self.assignment: Assignment = ()
        self._served: list[set[str]] = []
        """Flows that each running task serves, by the task's order."""
        self._incarnation = incarnation

    def plan(self, drivers: Sequence[FlowDriver]) -> Assignment:
        loads = [load for driver in drivers for load in driver.orders.loads()]
        caps = {driver.name: driver.flow.tasks_max for driver in drivers}
        return plan(loads, self.slots.count, caps, self.assignment)

    def is_same_plan(self, drivers: Sequence[FlowDriver]) -> bool:
        """True if no other plan is better by now; the numbers of the tasks don't matter."""
        return {frozenset(keys) for keys in self.plan(drivers)} == {frozenset(keys) for keys in self.assignment if keys}

    def tasks(self, flow: str) -> list[tuple[PartitionKey, ...]]:
        parts = [tuple(key for key in keys if key.flow == flow) for keys in self.assignment]
        return [part for part in parts if part]

    def orders(self, round_number: int, drivers: Sequence[FlowDriver]) -> list[PumpOrder]:
        self.assignment = self.plan(drivers)
        by_name = {driver.name: driver for driver in drivers}
        parts = {driver.name: shares(self.assignment, driver.name) for driver in drivers}
        for driver in drivers:
            driver.orders.forget()
            driver.orders.tasks = self._task_of_each(driver.name)
        orders = []
        for task, keys in enumerate(self.assignment):
            by_flow: dict[str, list[PartitionKey]] = defaultdict(list)
            for key in keys:
                by_flow[key.flow].append(key)
            flows = (by_name[flow].orders.order(keys, parts[flow][task]) for flow, keys in by_flow.items())
            orders.append(self._order(round_number, task, flows))
        self._served = [flows_of(keys) for keys in self.assignment]
        return orders

    def _order(self, round_number: int, task: int, flows: Iterable[FlowOrder]) -> PumpOrder:
        return PumpOrder(
            epoch=round_number, task=task, incarnation=self._incarnation, seconds=ROUND_S, flows=tuple(flows)
        )

    def change(self, round_number: int, drivers: Sequence[FlowDriver]) -> PlannedChange | None:
        """Return what makes the running round's plan the best one.

        None if only another round can.
        """
        assignment = aligned(self.plan(drivers), self.assignment, self._served)
        if assignment is None or len(assignment) > self.slots.count:
            return None
        moves = moved(self.assignment, assignment)
        if len(moves) > MOST_MOVES:
            return None
        if not {key.flow for key, move in moves.items() if move.task != NO_TASK} <= set().union(*self._served):
            return None  # nobody has said that this round runs, to a flow that had no partitions when it began
        if not all(driver.orders.can_take(moves) for driver in drivers):
            return None
        by_name = {driver.name: driver for driver in drivers}
        if any(
            move.before not in by_name[key.flow].reports.started_tasks(round_number)
            for key, move in moves.items()
            if move.before != NO_TASK
        ):
            return None  # a task that has not begun releases nothing
        orders = [
            self._order(round_number, task, [by_name[flow].orders.order(()) for flow in sorted(flows_of(keys))])
            for task, keys in enumerate(assignment)
            if task >= len(self.assignment)
        ]
        return PlannedChange(assignment, orders, moves)

    def begin(self, change: PlannedChange) -> None:
        """Note that the tasks in a change's orders are started."""
        self._served += [{flow.flow.name for flow in order.flows} for order in change.orders]

    def move(self, round_number: int, change: PlannedChange, drivers: Sequence[FlowDriver]) -> bool:
        """Have the tasks exchange partitions.

        False if topics have changed since the change was planned, or if it could not be said to all tasks.
        """
        if not all(driver.orders.can_take(change.moved) for driver in drivers):
            return False
        self.assignment = change.assignment
        for driver in drivers:
            mine = {key: move for key, move in change.moved.items() if key.flow == driver.name}
            if not mine:
                continue
            try:
                driver.orders.move(round_number, mine, shares(self.assignment, driver.name))
            except (ConnectionError, SparkMirrorError) as error:  # the tasks may have read the record or not
                log.warning("flow %s: %s", driver.name, error, extra=Event.CONTROL_NOT_WRITTEN.extra)
                return False
            driver.orders.tasks = self._task_of_each(driver.name)
        return True

    def take_in(self, round_number: int, driver: FlowDriver, drivers: Sequence[FlowDriver]) -> Growth:
        """Hand a flow's new partitions to running tasks, if possible.

        Ending the round would hold up all other partitions.
        """
        if not driver.topics.checked:
            return Growth.LATER
        if not driver.orders.only_grown:
            return Growth.IMPOSSIBLE
        taken = grow(self.assignment, driver.name, (load for each in drivers for load in each.orders.loads()))
        if taken is None or driver.orders.have_moved(key for keys in taken.values() for key in keys):
            return Growth.IMPOSSIBLE
        if not taken.keys() <= driver.reports.started_tasks(round_number):
            return Growth.LATER
        assignment = grown(self.assignment, taken)
        try:
            driver.orders.add(round_number, taken, shares(assignment, driver.name))
        except (ConnectionError, SparkMirrorError) as error:  # the tasks may have read the record or not
            log.warning("flow %s: %s", driver.name, error, extra=Event.CONTROL_NOT_WRITTEN.extra)
            return Growth.IMPOSSIBLE
        self.assignment = assignment
        driver.orders.tasks = self._task_of_each(driver.name)
        log.info(
            "epoch %d: %d partitions more", round_number, sum(map(len, taken.values())), extra=Event.EPOCH_GROWN.extra
        )
        return Growth.DONE

    def _task_of_each(self, flow: str) -> dict[PartitionKey, int]:
        return {key: task for task, keys in enumerate(self.assignment) for key in keys if key.flow == flow}
