"""Changes of a running round's plan, as pure functions.

They tell which partitions go from which task to which.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from sparkmirror.engine.assignment import Assignment, PartitionKey
from sparkmirror.messages.moves import NO_TASK


class TaskChange(NamedTuple):
    """Former and next task of a partition; `NO_TASK` if it has none."""

    before: int
    task: int


def aligned(wanted: Assignment, running: Assignment, served: Sequence[Set[str]]) -> Assignment | None:
    """Return a wanted plan with its tasks in the places of running tasks.

    Each wanted task takes the place with which it shares most partitions, so that few have to move; a place without a
    wanted task stays empty, and wanted tasks without a place come last. `served` has the flows of each running task.
    None if a running task would have to serve another flow: its order was made without it.
    """
    home = {key: task for task, keys in enumerate(running) for key in keys}
    shared = [Counter(home[key] for key in keys if key in home) for keys in wanted]
    pairs = sorted((-count, place, task) for task, counts in enumerate(shared) for place, count in counts.items())
    places: dict[int, int] = {}
    homeless = set(range(len(wanted)))
    for _, place, task in pairs:
        if place not in places and task in homeless:
            places[place] = task
            homeless.discard(task)
    for place in range(len(running)):
        fitting = [task for task in sorted(homeless) if flows_of(wanted[task]) <= served[place]]
        if place not in places and fitting:
            places[place] = fitting[0]
            homeless.discard(fitting[0])
    if any(not flows_of(wanted[task]) <= served[place] for place, task in places.items()):
        return None
    stay = tuple(wanted[places[place]] if place in places else () for place in range(len(running)))
    return (*stay, *(wanted[task] for task in sorted(homeless)))


def flows_of(keys: Sequence[PartitionKey]) -> set[str]:
    """Return the flows of a task's partitions."""
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
