"""What rules look at: a flow now, and what it was before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from sparkmirror.engine.snapshot import Cause, Flow, Partition, PartitionState, Process, Pump, Role, Topic

MUCH_LAG = 10_000
"""Records. Up to so many are well enough, says Redpanda's page on shadow links."""

STILL_S = 60.0
"""A position that has not moved for so long, with something to copy: a quota lets a pump wait 30 s at most."""

Place = tuple[str, int]
"""A source topic and a partition."""


class Case:
    """One flow. `earlier`: its states before, oldest first; those of another leader tell nothing."""

    def __init__(self, flow: Flow, earlier: Sequence[Flow], process: Process) -> None:
        self.flow = flow
        self.process = process
        self._known: dict[int, Passed] = {}
        self._earlier = [
            one
            for one in earlier
            if one.at_ms < flow.at_ms
            and (one.leader, one.role) == (flow.leader, flow.role)
            and one.records <= flow.records
        ]

    @property
    def leads(self) -> bool:
        """Whether the figures are those of the process that works on it."""
        return self.flow.role is Role.LEADER

    @property
    def waited_s(self) -> float:
        """How long it has been in its state."""
        return (self.flow.at_ms - self.flow.state_since_ms) / 1000

    def before(self, least_s: float) -> Passed | None:
        """The newest state that is at least so old; None: nothing so old is known."""
        for one in reversed(self._earlier):
            if self.flow.at_ms - one.at_ms >= least_s * 1000:
                return self._passed(one)
        return None

    def _passed(self, flow: Flow) -> Passed:
        passed = self._known.get(flow.at_ms)
        if passed is None:
            passed = Passed(Case(flow, (), self.process), (self.flow.at_ms - flow.at_ms) / 1000)
            self._known[flow.at_ms] = passed
        return passed

    @cached_property
    def oldest(self) -> Passed | None:
        """The first state that is known."""
        return self._passed(self._earlier[0]) if self._earlier else None

    @cached_property
    def partitions(self) -> dict[Place, tuple[Topic, Partition]]:
        """All, by place."""
        return dict(places(self.flow))

    @cached_property
    def lagging(self) -> dict[Place, tuple[Topic, Partition]]:
        """Those with something to copy that nothing we know of holds up."""
        held_up = (PartitionState.PARKED, PartitionState.PAUSED, PartitionState.DONE)
        return {place: both for place, both in self.partitions.items() if both[1].lag and both[1].state not in held_up}

    @cached_property
    def waiting_records(self) -> int:
        """The lag of these."""
        return sum(one.lag or 0 for _, one in self.lagging.values())

    @cached_property
    def parked(self) -> dict[Cause, list[tuple[str, str]]]:
        """Partitions that can't be copied now, and their reasons, by cause."""
        by_cause: dict[Cause, list[tuple[str, str]]] = {}
        for topic, one in self.flow.parked:
            by_cause.setdefault(one.cause, []).append((name_of((topic.topic, one.partition)), one.reason))
        return by_cause

    @property
    def slow(self) -> bool:
        """Whether anybody would wish it were faster: much is to be copied, or the objective is missed."""
        flow = self.flow
        late = flow.objective_s is not None and flow.lag_s is not None and flow.lag_s > flow.objective_s
        return self.waiting_records > MUCH_LAG or (late and bool(self.lagging))

    @cached_property
    def still(self) -> tuple[list[str], float]:
        """Partitions that lag and whose position has not moved for `STILL_S`, and over how long."""
        before = self.before(STILL_S)
        if before is None:
            return [], 0.0
        then = before.case.lagging
        still = [
            name_of(place)
            for place, (_, one) in self.lagging.items()
            if place in then and one.position is not None and one.position == then[place][1].position
        ]
        return still, before.seconds

    def pumps_then(self, passed: Passed) -> Iterator[tuple[Pump, Pump]]:
        """Each pump now and then; those that were begun anew in between are left out."""
        if passed.flow.epoch != self.flow.epoch:
            return
        then = {pump.task: pump for pump in passed.flow.pumps}
        for pump in self.flow.pumps:
            old = then.get(pump.task)
            if old is not None and old.cpu_s <= pump.cpu_s and old.bytes <= pump.bytes:
                yield pump, old


class Passed(NamedTuple):
    """An earlier state of the flow, and how long ago that was."""

    case: Case
    seconds: float

    @property
    def flow(self) -> Flow:
        """As it was."""
        return self.case.flow


def places(flow: Flow) -> Iterator[tuple[Place, tuple[Topic, Partition]]]:
    """Its partitions by place."""
    for topic in flow.topics:
        for one in topic.partitions:
            yield (topic.topic, one.partition), (topic, one)


def name_of(place: Place) -> str:
    """As Kafka writes it."""
    return f"{place[0]}-{place[1]}"
