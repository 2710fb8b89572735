"""Change a running plan, with pure functions: partitions move between tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from sparkmirror.mirror.engine.assignment import Assignment, PartitionKey
from sparkmirror.pump.messages.moves import NO_TASK


class TaskChange(NamedTuple):
    """A partition's former and next task; `NO_TASK` if it has none."""

    before: int
    task: int


def aligned(wanted: Assignment, running: Assignment, served: Sequence[Set[str]]) -> Assignment | None:
    """Return a wanted plan with its tasks under the numbers of running tasks.

    Each wanted task takes the number of the running task with the most partitions in common, so that few partitions
    move. A running task without a wanted one stays, empty; wanted tasks without a running one come last. `served` has
    each running task's flows. None if a running task would have to serve another flow: a task's order is made for its
    flows.
    """
    home = {key: task for task, keys in enumerate(running) for key in keys}
    shared = [Counter(home[key] for key in keys if key in home) for keys in wanted]
    pairs = sorted((-count, number, task) for task, counts in enumerate(shared) for number, count in counts.items())
    taken: dict[int, int] = {}
    homeless = set(range(len(wanted)))
    for _, number, task in pairs:
        if number not in taken and task in homeless:
            taken[number] = task
            homeless.discard(task)
    for number in range(len(running)):
        fitting = [task for task in sorted(homeless) if flows_of(wanted[task]) <= served[number]]
        if number not in taken and fitting:
            taken[number] = fitting[0]
            homeless.discard(fitting[0])
    if any(not flows_of(wanted[task]) <= served[number] for number, task in taken.items()):
        return None
    stay = tuple(wanted[taken[number]] if number in taken else () for number in range(len(running)))
    return (*stay, *(wanted[task] for task in sorted(homeless)))


def flows_of(keys: Sequence[PartitionKey]) -> set[str]:
    return {key.flow for key in keys}


def moved(running: Assignment, wanted: Assignment) -> Mapping[PartitionKey, TaskChange]:
    """Return the partitions whose task differs, with both tasks."""
    before = {key: task for task, keys in enumerate(running) for key in keys}
    after = {key: task for task, keys in enumerate(wanted) for key in keys}
    return {
        key: TaskChange(before.get(key, NO_TASK), after.get(key, NO_TASK))
        for key in sorted(before.keys() | after.keys())
        if before.get(key, NO_TASK) != after.get(key, NO_TASK)
    }
