"""Grow a running round: tasks take in partitions that appear meanwhile."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from sparkmirror.mirror.engine.assignment import Assignment, PartitionKey, PartitionLoad


def grow(assignment: Assignment, flow: str, loads: Iterable[PartitionLoad]) -> Mapping[int, list[PartitionKey]] | None:
    """Deal `flow`'s new partitions to running tasks; return task to partitions.

    Each new partition goes to the lightest task that serves the flow. `loads` covers all flows. Returns None if
    everything needs another plan: no task serves the flow, or the flow would more than double, and may want more tasks.
    """
    weights = {load.key: load.weight for load in loads}
    served = {task: _of(flow, keys) for task, keys in enumerate(assignment) if _of(flow, keys)}
    known = set().union(*served.values())
    added = sorted(key for key in weights.keys() - known if key.flow == flow)
    if len(added) > len(known):
        return None
    carried = {task: sum(weights.get(key, 0.0) for key in assignment[task]) for task in served}
    taken: dict[int, list[PartitionKey]] = {}
    for key in added:
        task = min(carried, key=lambda task: (carried[task], task))
        carried[task] += weights[key]
        taken.setdefault(task, []).append(key)
    return taken


def grown(assignment: Assignment, taken: Mapping[int, Collection[PartitionKey]]) -> Assignment:
    """Return the assignment with the partitions that tasks have taken in."""
    return tuple(tuple(sorted({*keys, *taken.get(task, ())})) for task, keys in enumerate(assignment))


def shares(assignment: Assignment, flow: str) -> dict[int, float]:
    """Return each serving task's part of the flow's bandwidth cap.

    A task's part follows its partition count.
    """
    counts = {task: len(_of(flow, keys)) for task, keys in enumerate(assignment)}
    total = sum(counts.values())
    return {task: count / total for task, count in counts.items() if count}


def _of(flow: str, keys: Iterable[PartitionKey]) -> set[PartitionKey]:
    return {key for key in keys if key.flow == flow}
