"""The rules' view of a flow: the state now, and earlier states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from sparkmirror.snapshot.snapshot import Cause, Flow, Partition, PartitionState, Process, Pump, Role, Topic

MUCH_LAG = 10_000
"""Records of lag up to which a flow is well, by Redpanda's page on shadow links."""

STILL_S = 60.0
"""Seconds without movement that make a lagging partition stuck.

A quota lets a pump wait 30 s at most.
"""

Place = tuple[str, int]
"""A source topic and a partition."""


class Case:
    """A flow now, with earlier states for comparison.

    `earlier` has the earlier states, oldest first. The case ignores states of a different leader or role, and states
    with more copied records than now.
    """

    def __init__(self, flow: Flow, earlier: Sequence[Flow], process: Process) -> None:
        self.flow = flow
        self.process = process
        self._known: dict[int, Passed] = {}
        self._earlier = [
            old
            for old in earlier
            if old.at_ms < flow.at_ms
            and (old.leader, old.role) == (flow.leader, flow.role)
            and old.records <= flow.records
        ]

    @property
    def leads(self) -> bool:
        """True if the figures come from the process that works on the flow."""
        return self.flow.role is Role.LEADER

    @property
    def waited_s(self) -> float:
        """Seconds since the flow entered its state."""
        return (self.flow.at_ms - self.flow.state_since_ms) / 1000

    def before(self, least_s: float) -> Passed | None:
        """Return the newest state of at least this age, or `None`."""
        for old in reversed(self._earlier):
            if self.flow.at_ms - old.at_ms >= least_s * 1000:
                return self._passed(old)
        return None

    def _passed(self, flow: Flow) -> Passed:
        passed = self._known.get(flow.at_ms)
        if passed is None:
            passed = Passed(Case(flow, (), self.process), (self.flow.at_ms - flow.at_ms) / 1000)
            self._known[flow.at_ms] = passed
        return passed

    @cached_property
    def oldest(self) -> Passed | None:
        """First known state."""
        return self._passed(self._earlier[0]) if self._earlier else None

    @cached_property
    def partitions(self) -> dict[Place, tuple[Topic, Partition]]:
        return dict(places(self.flow))

    @cached_property
    def lagging(self) -> dict[Place, tuple[Topic, Partition]]:
        """Partitions with lag and without a known reason to wait.

        Leaves out parked, paused and done partitions, and what waits for the end of a transaction.
        """
        held_up = (PartitionState.PARKED, PartitionState.PAUSED, PartitionState.DONE)
        return {
            place: entry
            for place, entry in self.partitions.items()
            if (entry[1].lag or 0) > entry[1].held_back and entry[1].state not in held_up
        }

    @cached_property
    def waiting_records(self) -> int:
        """Lag of the lagging partitions, in records."""
        return sum(partition.lag or 0 for _, partition in self.lagging.values())

    @cached_property
    def parked(self) -> dict[Cause, list[tuple[Topic, Partition]]]:
        """Parked partitions with their topics, by cause."""
        by_cause: dict[Cause, list[tuple[Topic, Partition]]] = {}
        for topic, partition in self.flow.parked:
            by_cause.setdefault(partition.cause, []).append((topic, partition))
        return by_cause

    @property
    def slow(self) -> bool:
        """True if a faster flow is needed: much lag, or a missed objective."""
        flow = self.flow
        late = flow.objective_s is not None and flow.lag_s is not None and flow.lag_s > flow.objective_s
        return self.waiting_records > MUCH_LAG or (late and bool(self.lagging))

    @cached_property
    def still(self) -> tuple[list[str], float]:
        """Lagging partitions without movement for `STILL_S`, and the seconds compared."""
        before = self.before(STILL_S)
        if before is None:
            return [], 0.0
        then = before.case.lagging
        still = [
            name_of(place)
            for place, (_, now) in self.lagging.items()
            if place in then and now.position is not None and now.position == then[place][1].position
        ]
        return still, before.seconds

    def pumps_then(self, passed: Passed) -> Iterator[tuple[Pump, Pump]]:
        """Yield each pump now and at `passed`, as a pair.

        Leaves out pumps restarted in between.
        """
        if passed.flow.epoch != self.flow.epoch:
            return
        then = {pump.task: pump for pump in passed.flow.pumps}
        for pump in self.flow.pumps:
            old = then.get(pump.task)
            if old is not None and old.cpu_s <= pump.cpu_s and old.bytes <= pump.bytes:
                yield pump, old


class Passed(NamedTuple):
    """An earlier state of the flow, and its age in seconds."""

    case: Case
    seconds: float

    @property
    def flow(self) -> Flow:
        """Flow as it was then."""
        return self.case.flow


def places(flow: Flow) -> Iterator[tuple[Place, tuple[Topic, Partition]]]:
    """Yield the flow's partitions, by place."""
    for topic in flow.topics:
        for partition in topic.partitions:
            yield (topic.topic, partition.partition), (topic, partition)


def name_of(place: Place) -> str:
    """Return a partition's name as Kafka writes it."""
    return f"{place[0]}-{place[1]}"
