"""Flows with faults, as a mirror would show them, and as they were a minute before."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from tests.support.snapshot_samples import PROCESS, flow, partition, pump, topic

from sparkmirror.snapshot.snapshot import (
    Cause,
    Flow,
    FlowState,
    Partition,
    PartitionState,
    Process,
    Pump,
    Snapshot,
)

MINUTE_MS = 70_000
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that went wrong, and the rule whose finding must be first."""

    words: str
    rule: str
    now: Flow
    before: Flow
    process: Process = PROCESS

    @property
    def snapshots(self) -> tuple[Snapshot, list[Snapshot]]:

        return Snapshot(self.process, self.now.at_ms, (self.now,)), [
            Snapshot(self.process, one.at_ms, (one,)) for one in (self.before,)
        ]


def parts(count: int, **changes: Any) -> tuple[Partition, ...]:
    """So many equal partitions."""
    return tuple(partition(number, **changes) for number in range(count))


def pumps(count: int, **changes: Any) -> tuple[Pump, ...]:
    """So many equal pumps."""
    return tuple(pump(task, **changes) for task in range(count))


def copying(lag: int, *, count: int = 6, position: int = 1_000, **changes: Any) -> Flow:
    """A flow with `lag` records to copy in each of its partitions, in two tasks."""
    return flow(
        **{
            "state": FlowState.COPYING,
            "lag": lag * count,
            "lag_s": 40.0,
            "objective_s": 600.0,
            "tasks_max": 2,
            "records_per_s": 500.0,
            "topics": (topic("orders", *parts(count, lag=lag, position=position, end=position + lag, lag_s=40.0)),),
            "pumps": pumps(2, in_flight=5_000, fetch_ms=20.0, cpu_s=10.0),
            **changes,
        }
    )


def earlier(now: Flow, ms: int = MINUTE_MS, **changes: Any) -> Flow:
    """A flow a minute ago; its pumps have done less CPU and bytes since."""
    old = dataclasses.replace(
        now, at_ms=now.at_ms - ms, pumps=tuple(dataclasses.replace(pump, at_ms=pump.at_ms - ms) for pump in now.pumps)
    )
    return dataclasses.replace(old, **changes)


def moved(now: Flow, by: int = 1_000, **changes: Any) -> Flow:
    """A minute ago each partition was at an earlier offset, and the source's end as well."""
    topics = tuple(
        dataclasses.replace(
            one,
            partitions=tuple(
                dataclasses.replace(each, position=(each.position or 0) - by, end=(each.end or 0) - by)
                for each in one.partitions
            ),
        )
        for one in now.topics
    )
    return earlier(now, **{"topics": topics, "records": max(now.records - by, 0), **changes})


def with_parked(cause: Cause, reason: str, count: int = 1, **changes: Any) -> Flow:
    """A flow of which some partitions are parked, the rest has caught up, and the promise is broken."""
    stopped = parts(count, state=PartitionState.PARKED, cause=cause, reason=reason, lag=900, lag_s=900.0)
    fine = [partition(count + number) for number in range(2)]
    return flow(
        **{
            "state": FlowState.HELD_UP,
            "topics": (topic("orders", *stopped, *fine),),
            "lag": 900 * count,
            "lag_s": 900.0,
            "objective_s": 60.0,
            **changes,
        }
    )
