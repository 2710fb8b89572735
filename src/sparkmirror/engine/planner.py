"""Plans of a mirror's rounds: which task copies which partitions."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from enum import Enum

from sparkmirror.engine.assignment import Assignment, PartitionKey, plan
from sparkmirror.engine.flow_driver import FlowDriver
from sparkmirror.engine.growth import grow, grown, shares
from sparkmirror.engine.slots import Slots
from sparkmirror.errors import SparkMirrorError
from sparkmirror.events import Event
from sparkmirror.messages.orders import PumpOrder

ROUND_S = 86_400.0
"""Longest duration of a round in seconds.

Each day the tasks build other connections and claims.
"""

log = logging.getLogger(__name__)


class Growth(Enum):
    """Outcome of handing new partitions to running tasks."""

    DONE = "done"
    LATER = "later"
    """Tasks that would get partitions have not reported yet."""
    IMPOSSIBLE = "impossible"
    """Only a new plan, so another round, has a place for the partitions."""


class Planner:
    """Planner of one mirror; `assignment` is the plan of the round that runs."""

    def __init__(self, spark_settings: Mapping[str, str], tasks: int, incarnation: str) -> None:
        """Begin with Spark's settings; `tasks` is the sum of the flows' `tasks.max`."""
        self.slots = Slots(spark_settings, tasks)
        self.assignment: Assignment = ()
        self._incarnation = incarnation

    def plan(self, drivers: Sequence[FlowDriver]) -> Assignment:
        """Return the best plan at the present loads."""
        loads = [load for driver in drivers for load in driver.orders.loads()]
        caps = {driver.name: driver.flow.tasks_max for driver in drivers}
        return plan(loads, self.slots.count, caps, self.assignment)

    def is_same_plan(self, drivers: Sequence[FlowDriver]) -> bool:
        """True if no other plan is better by now."""
        return self.plan(drivers) == self.assignment

    def tasks(self, flow: str) -> list[tuple[PartitionKey, ...]]:
        """Return the flow's partitions of each task that serves the flow."""
        parts = [tuple(key for key in keys if key.flow == flow) for keys in self.assignment]
        return [part for part in parts if part]

    def orders(self, round_number: int, drivers: Sequence[FlowDriver]) -> list[PumpOrder]:
        """Plan a round, and return the orders to its tasks."""
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
            orders.append(
                PumpOrder(
                    epoch=round_number,
                    task=task,
                    incarnation=self._incarnation,
                    seconds=ROUND_S,
                    flows=tuple(by_name[flow].orders.order(keys, parts[flow][task]) for flow, keys in by_flow.items()),
                )
            )
        return orders

    def take_in(self, round_number: int, driver: FlowDriver, drivers: Sequence[FlowDriver]) -> Growth:
        """Hand a flow's new partitions to running tasks, if possible.

        Ending the round would hold up all other partitions.
        """
        if not driver.orders.only_grown:
            return Growth.IMPOSSIBLE
        taken = grow(self.assignment, driver.name, (load for each in drivers for load in each.orders.loads()))
        if taken is None:
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
        """Return the task that copies each of a flow's partitions."""
        return {key: task for task, keys in enumerate(self.assignment) for key in keys if key.flow == flow}
