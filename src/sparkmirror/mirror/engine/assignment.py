"""Assign partitions to tasks, as a pure function.

The inputs are loads, caps and the previous plan. The rules, in the order in which they win:

1. every partition is in exactly one task, and there are never more tasks than slots;
2. a flow is spread over at most its `tasks.max` tasks; a task may serve several flows;
3. a partition stays where it was, unless a plan made afresh is clearly better (`HYSTERESIS`);
4. the heaviest task is as light as can be: longest processing time first, within a few percent;
5. light partitions with the same source leader share a task: fewer connections.

The same input gives the same plan, however the input is ordered.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heapreplace
from typing import NamedTuple, TypeAlias

PARTITION_COST = 10_000.0
"""An idle partition's weight, in bytes/s.

The pump fetches and reports an idle partition too.
"""
BACKLOG_SECONDS = 60.0
"""Seconds to work a backlog off, for its weight.

A backlog weighs as much as the rate that would work it off in this time.
"""
HYSTERESIS = 0.2
"""Share by which a fresh plan's heaviest task must be lighter to win."""
LIGHT_SHARE = 0.05
"""Largest share of a task's load for a light partition.

Light partitions are placed by leader, heavy ones by weight.
"""


class PartitionKey(NamedTuple):
    """A flow's partition: flow, topic and number."""

    flow: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLoad:
    """Load and leader for a flow's partition."""

    flow: str
    topic: str
    partition: int
    leader: int
    """The source leader's node id; -1 if there is none."""
    bytes_per_s: float = 0.0
    backlog_bytes: float = 0.0

    @property
    def key(self) -> PartitionKey:
        return PartitionKey(self.flow, self.topic, self.partition)

    @property
    def weight(self) -> float:
        """Expected load in bytes/s."""
        return self.bytes_per_s + self.backlog_bytes / BACKLOG_SECONDS + PARTITION_COST


Assignment: TypeAlias = tuple[tuple[PartitionKey, ...], ...]
"""Each task's partitions, sorted.

`plan` leaves no task empty; a running round may have empty ones.
"""


def plan(
    loads: Iterable[PartitionLoad],
    slots: int,
    tasks_max: Mapping[str, int],
    previous: Assignment = (),
) -> Assignment:
    """Deal the partitions to at most `slots` tasks.

    `tasks_max` maps each flow to its cap; a flow missing there has no cap. With fewer slots than flows, tasks serve
    several flows. Raises `ValueError` for a slot count or a cap below 1, and for a partition that comes twice.
    """
    if slots < 1 or any(cap < 1 for cap in tasks_max.values()):
        raise ValueError("slots and tasks.max must be at least 1")
    ordered = [_Item(-load.weight, load.key, load.leader) for load in loads]
    ordered.sort()
    weights = {item.key: item.weight for item in ordered}
    if len(weights) != len(ordered):
        raise ValueError("a partition was given twice")
    caps = {flow: min(tasks_max.get(flow, slots), slots) for flow in {item.key.flow for item in ordered}}

    fresh = _plan_afresh(ordered, slots, caps)
    if not previous:
        return fresh.result()
    best = fresh.heaviest()
    limit = best / (1 - HYSTERESIS)
    kept = _plan_again(ordered, slots, caps, previous, weights)
    if kept.heaviest() <= limit:
        return kept.result()
    relieved = _plan_again(ordered, slots, caps, _relieve(kept.partitions, weights, best), weights)
    if relieved.heaviest() <= limit:
        return relieved.result()
    return fresh.result()


class _Item(NamedTuple):
    """A partition on its way into a task; items sort heaviest first."""

    negative_weight: float
    key: PartitionKey
    leader: int

    @property
    def weight(self) -> float:
        return -self.negative_weight


class _Tasks:
    """Tasks that are being filled."""

    def __init__(self, slots: int) -> None:
        self.loads = [0.0] * slots
        self.partitions: list[list[PartitionKey]] = [[] for _ in range(slots)]

    def add(self, task: int, item: _Item) -> None:
        self.loads[task] += item.weight
        self.partitions[task].append(item.key)

    def heaviest(self) -> float:
        return max(self.loads)

    def lightest(self, count: int) -> list[int]:
        return sorted(range(len(self.loads)), key=lambda task: (self.loads[task], task))[:count]

    def result(self) -> Assignment:
        return tuple(tuple(sorted(partitions)) for partitions in self.partitions if partitions)


def _plan_afresh(ordered: Sequence[_Item], slots: int, caps: Mapping[str, int]) -> _Tasks:
    """Place flow after flow, the flow with the most load per allowed task first."""
    tasks = _Tasks(slots)
    flows: dict[str, list[_Item]] = defaultdict(list)
    for item in ordered:
        flows[item.key.flow].append(item)
    spread = {flow: min(caps[flow], len(items)) for flow, items in flows.items()}
    density = {flow: sum(item.weight for item in items) / spread[flow] for flow, items in flows.items()}
    for flow in sorted(flows, key=lambda flow: (-density[flow], flow)):
        items = flows[flow]
        threshold = LIGHT_SHARE * _fair_share(items, spread[flow])
        first_light = bisect_left(items, -threshold, key=lambda item: item.negative_weight)
        mine = tasks.lightest(spread[flow])
        _place_by_weight(tasks, mine, items[:first_light])
        _place_by_leader(tasks, mine, items[first_light:])
    return tasks


def _fair_share(items: Sequence[_Item], tasks: int) -> float:
    """Return a task's load if only too heavy partitions had their own tasks.

    A partition is too heavy if it weighs at least the even share of the tasks left.
    """
    rest = sum(item.weight for item in items)
    for giants, item in enumerate(items[:tasks]):
        if item.weight * (tasks - giants) < rest:
            return rest / (tasks - giants)
        rest -= item.weight
    return items[-1].weight


def _place_by_weight(tasks: _Tasks, mine: Sequence[int], heavy: Iterable[_Item]) -> None:
    """Place each partition in the lightest task: longest processing time first."""
    heap = [(tasks.loads[task], task) for task in mine]
    heapify(heap)
    for item in heavy:
        task = heap[0][1]
        tasks.add(task, item)
        heapreplace(heap, (tasks.loads[task], task))


def _place_by_leader(tasks: _Tasks, mine: Sequence[int], light: Sequence[_Item]) -> None:
    """Pour the light partitions, leader after leader, into the room left in tasks.

    A partition goes where the middle of its weight falls, so rounding errors don't add up.
    """
    if not light:
        return
    level = _water_level([tasks.loads[task] for task in mine], sum(item.weight for item in light))
    bins = iter([task for task in mine if tasks.loads[task] < level])
    task = next(bins)
    brim = level - tasks.loads[task]
    poured = 0.0
    for item in sorted(light, key=lambda item: (item.leader, item.key)):
        while poured + item.weight / 2 >= brim:
            following = next(bins, None)
            if following is None:
                break
            task = following
            brim += level - tasks.loads[task]
        tasks.add(task, item)
        poured += item.weight


def _water_level(loads: Iterable[float], amount: float) -> float:
    """Return the height of the lower loads once `amount` is spread evenly over them."""
    total, level = amount, 0.0
    for lower, load in enumerate(sorted(loads)):
        if lower and load >= level:
            break
        total += load
        level = total / (lower + 1)
    return level


def _plan_again(
    ordered: Iterable[_Item],
    slots: int,
    caps: Mapping[str, int],
    previous: Sequence[Sequence[PartitionKey]],
    weights: Mapping[PartitionKey, float],
) -> _Tasks:
    """Keep partitions in their tasks if caps and slots allow; place the rest greedily."""
    home = _homes(previous[:slots], caps, weights)
    tasks = _Tasks(slots)
    used: dict[str, set[int]] = defaultdict(set)
    homeless: list[_Item] = []
    for item in ordered:
        task = home.get(item.key)
        if task is None:
            homeless.append(item)
        else:
            tasks.add(task, item)
            used[item.key.flow].add(task)
    everywhere = _LightestTask(tasks, range(slots))
    own = {flow: _LightestTask(tasks, used[flow]) for flow in caps}
    for item in homeless:
        flow = item.key.flow
        task = (everywhere if len(used[flow]) < caps[flow] else own[flow]).find()
        tasks.add(task, item)
        if task not in used[flow]:
            used[flow].add(task)
            own[flow].watch(task)
    return tasks


def _homes(
    previous: Sequence[Sequence[PartitionKey]], caps: Mapping[str, int], weights: Mapping[PartitionKey, float]
) -> dict[PartitionKey, int]:
    """Return each partition's previous task.

    A flow over its cap keeps the tasks that carry most of its load.
    """
    carried: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for task, partitions in enumerate(previous):
        for key in partitions:
            if key in weights:
                carried[key.flow][task] += weights[key]
    allowed = {
        flow: set(sorted(by_task, key=lambda task: (-by_task[task], task))[: caps[flow]])
        for flow, by_task in carried.items()
    }
    return {
        key: task
        for task, partitions in enumerate(previous)
        for key in partitions
        if key in weights and task in allowed[key.flow]
    }


def _relieve(
    tasks: Sequence[Sequence[PartitionKey]], weights: Mapping[PartitionKey, float], limit: float
) -> list[list[PartitionKey]]:
    """Take the lightest partitions from each task whose load is over the limit.

    A task keeps at least its heaviest partition.
    """
    relieved = []
    for partitions in tasks:
        load = sum(weights[key] for key in partitions)
        staying = sorted(partitions, key=lambda key: (weights[key], key), reverse=True)
        while load > limit and len(staying) > 1:
            load -= weights[staying.pop()]
        relieved.append(staying)
    return relieved


class _LightestTask:
    """Search for the lightest of several tasks while the tasks only grow heavier."""

    def __init__(self, tasks: _Tasks, candidates: Iterable[int]) -> None:
        self._tasks = tasks
        self._heap = [(tasks.loads[task], task) for task in candidates]
        heapify(self._heap)

    def watch(self, task: int) -> None:
        heappush(self._heap, (self._tasks.loads[task], task))

    def find(self) -> int:
        """Return the lightest task.

        A heap entry may be out of date, but then only too light: the search refreshes the entry and looks again.
        """
        while True:
            noted, task = self._heap[0]
            if noted == self._tasks.loads[task]:
                return task
            heappop(self._heap)
            self.watch(task)
