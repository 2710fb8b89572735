"""`sparkmirror` whose plans move partitions between tasks every few seconds: `python -m chaos.restless run …`.

A mirror's plans change when its load or its slots do: under faults too seldom to show what they do to moves.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from sparkmirror.cli import main
from sparkmirror.mirror.engine import round_runner
from sparkmirror.mirror.engine.assignment import Assignment, PartitionKey
from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.mirror.engine.planner import Planner
from sparkmirror.pump.messages.orders import PumpOrder

PERIOD_S = 10.0


def exchanged(best: Assignment, turn: int) -> Assignment:
    """Return a plan for as many tasks: half of the partitions have their task by `turn`, the others always the same."""
    tasks: list[list[PartitionKey]] = [[] for _ in best]
    for key in sorted(key for keys in best for key in keys):
        name = f"{key.flow} {key.topic} {key.partition}"
        moves = random.Random(name).random() < 0.5
        tasks[random.Random(f"{name} {turn if moves else 0}").randrange(len(tasks))].append(key)
    return tuple(map(tuple, tasks)) if all(tasks) else best


def make_restless() -> None:
    """Have every planner of this process exchange partitions, and look for another plan often.

    A round whose tasks have not all begun is left: it would end for the other plan, and so would the next, as long as
    tasks take longer to begin than the plan stays.
    """
    best, plan_round, is_same = Planner.plan, Planner.orders, Planner.is_same_plan
    rounds: dict[Planner, int] = {}

    def plan(planner: Planner, drivers: Sequence[FlowDriver]) -> Assignment:
        return exchanged(best(planner, drivers), int(time.time() / PERIOD_S))

    def orders(planner: Planner, round_number: int, drivers: Sequence[FlowDriver]) -> list[PumpOrder]:
        rounds[planner] = round_number
        return plan_round(planner, round_number, drivers)

    def is_same_plan(planner: Planner, drivers: Sequence[FlowDriver]) -> bool:
        begun = {task for driver in drivers for task in driver.reports.started_tasks(rounds[planner])}
        waits = any(keys and task not in begun for task, keys in enumerate(planner.assignment))
        return waits or is_same(planner, drivers)

    Planner.plan = plan  # type: ignore[method-assign, assignment]
    Planner.orders = orders  # type: ignore[method-assign, assignment]
    Planner.is_same_plan = is_same_plan  # type: ignore[method-assign, assignment]
    round_runner.REPLAN_S = PERIOD_S / 2


if __name__ == "__main__":
    make_restless()
    main()
