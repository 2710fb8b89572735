"""A flow's state, lag and rates, from its partitions' rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sparkmirror.mirror.engine.assignment import PartitionKey
from sparkmirror.mirror.engine.catching_up import CatchingUp, PartitionLag
from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.snapshot.flow_state import FlowState, SaidState
from sparkmirror.snapshot.snapshot import Cause, Partition, PartitionState, Topic

_WINDOW_S = 5.0
"""Seconds over which the flow's rates are measured."""
_NO_PARTITION = -1
"""Number in the key of a refused whole topic."""


class FlowLag(NamedTuple):
    """Lag of a flow's partitions; the fields are as in `snapshot.Flow`."""

    lag: int | None
    unknown: int
    moving: int | None
    """Lag in all partitions but parked, paused and held-back ones.

    None: not known.
    """


class FlowRates(NamedTuple):
    """Records and bytes copied in a second."""

    records_per_s: float
    bytes_per_s: float


class RateMeter:
    """Rates of counts that never fall, over the last seconds."""

    def __init__(self) -> None:
        self._samples: list[tuple[float, int, int]] = []

    def read(self, records: int, size: int, now: float) -> FlowRates:
        """Take the counts at a monotonic `now`, and return the rates."""
        self._samples.append((now, records, size))
        while len(self._samples) > 2 and now - self._samples[0][0] > _WINDOW_S:
            del self._samples[0]
        since, old_records, old_size = self._samples[0]
        elapsed = max(now - since, 0.1)
        return FlowRates((records - old_records) / elapsed, (size - old_size) / elapsed)


class StateWatch:
    """Watch over how far a flow's partitions are; must be asked for regularly."""

    def __init__(self) -> None:
        self._catching_up: CatchingUp[PartitionKey] = CatchingUp()

    def look(self, flow: str, topics: Sequence[Topic], now: float) -> FlowState:
        """Return the state that the partitions show, at a monotonic `now`."""
        partitions = [(topic, partition) for topic in topics for partition in topic.partitions]
        refused = [topic.topic for topic in topics if topic.refused]
        state = self._catching_up.look(
            [*(_lag(flow, *each) for each in partitions), *(_refused(flow, topic) for topic in refused)], now
        )
        if any(partition.state is PartitionState.UNKNOWN for _, partition in partitions):
            return FlowState.STARTING
        is_late = state is not FlowState.FINDING_OUT and any(topic.late for topic in topics)
        return FlowState.HELD_UP if is_late else state


def flow_state(driver: FlowDriver, shown: FlowState) -> SaidState:
    """Return a flow's state; `shown` is the state that its partitions show."""
    away, topics = next(filter(None, driver.view.away), None), driver.topics
    if away is not None:
        return SaidState(FlowState.UNREACHABLE, away.words)
    if not driver.flow.copies:
        return SaidState(FlowState.TRANSLATING)
    if topics.synced and topics.matches.nothing:
        return SaidState(FlowState.NOTHING, topics.matches.nothing)
    if topics.synced and shown is FlowState.CAUGHT_UP and topics.waiting and not driver.partitions():
        more = f" and {len(topics.waiting) - 1:,} more topics" if len(topics.waiting) > 1 else ""
        live = f"{driver.flow.target.alias}->{driver.flow.source.alias}"
        return SaidState(FlowState.WAITS, f"it is the turn of {live} with {topics.waiting[0]}{more}")
    return SaidState(shown if topics.synced else FlowState.STARTING)


def flow_lag(topics: Iterable[Topic]) -> FlowLag:
    """Sum up all partitions' lag."""
    partitions = [partition for topic in topics for partition in topic.partitions]
    unknown = sum(partition.lag is None for partition in partitions)
    lag = sum(partition.lag or 0 for partition in partitions)
    moving = [partition.lag for partition in partitions if not _is_stuck(partition)]
    known = [each for each in moving if each is not None]
    return FlowLag(
        lag=None if unknown and not lag else lag,  # a zero next to unknown ones would read as level
        unknown=unknown,
        moving=sum(known) if len(known) == len(moving) else None,
    )


def _is_stuck(partition: Partition) -> bool:
    return partition.state in (PartitionState.PARKED, PartitionState.PAUSED) or _waits_for_transaction(partition)


def _waits_for_transaction(partition: Partition) -> bool:
    return partition.cause is Cause.OPEN_TRANSACTION


def _lag(flow: str, topic: Topic, partition: Partition) -> PartitionLag[PartitionKey]:
    return PartitionLag(
        key=PartitionKey(flow, topic.topic, partition.partition),
        position=partition.position,
        end=partition.end,
        parked=partition.state is PartitionState.PARKED or _waits_for_transaction(partition),
        start=partition.start or 0,
        readable=None if partition.end is None else partition.end - partition.held_back,
    )


def _refused(flow: str, topic: str) -> PartitionLag[PartitionKey]:
    """Return a refused topic as a parked partition, which holds the flow up."""
    return PartitionLag(key=PartitionKey(flow, topic, _NO_PARTITION), position=None, end=None, parked=True)
