"""Snapshots made up for tests of what is told from them."""

from __future__ import annotations

import dataclasses
from typing import Any

from sparkmirror import __version__
from sparkmirror.snapshot.group_standing import GroupState
from sparkmirror.snapshot.snapshot import (
    ClusterFigures,
    Duty,
    Flow,
    FlowState,
    Group,
    GroupPartition,
    Partition,
    PartitionState,
    Process,
    Pump,
    Role,
    Snapshot,
    Spread,
    Topic,
)

NOW_MS = 1_764_000_000_000


def partition(number: int = 0, **changes: Any) -> Partition:
    """One that has caught up at offset 1,000."""
    one = Partition(
        partition=number,
        state=PartitionState.RUNNING,
        position=1_000,
        end=1_000,
        lag=0,
        lag_s=0.0,
        downstream=1_000,
        records=1_000,
        bytes=100_000,
        latency_ms=Spread(12.0, 3.0, 80.0, 15.0),
        age_ms=Spread(8.0, 1.0, 60.0, 9.0),
        copied_ms=NOW_MS - 200,
        task=0,
        leader=1,
    )
    return dataclasses.replace(one, **changes)


def topic(name: str = "orders", *partitions: Partition, **changes: Any) -> Topic:
    """One of the flow A->B."""
    return dataclasses.replace(
        Topic(topic=name, target_topic=f"A.{name}", partitions=partitions or (partition(),)), **changes
    )


def place(**changes: Any) -> GroupPartition:
    """A group's place in orders-0: ten records to read, and five more to read again at the target."""
    one = GroupPartition(
        topic="orders",
        partition=0,
        target_topic="A.orders",
        source_offset=990,
        source_lag=10,
        target_offset=985,
        target_lag=15,
        skipped=0,
        reread=5,
    )
    return dataclasses.replace(one, **changes)


def group(name: str = "shop", **changes: Any) -> Group:
    """One that is at the target, and would read five records again."""
    one = Group(group=name, state=GroupState.SYNCED, synced_ms=NOW_MS - 4_000, partitions=(place(),))
    return dataclasses.replace(one, **changes)


def level_group(name: str = "shop", **changes: Any) -> Group:
    """One that would continue at the target at the exact record."""
    return group(name, **{"partitions": (place(target_offset=990, target_lag=10, reread=0),), **changes})


def duty(name: str = "checkpoints", ago_ms: int = 5_000, **changes: Any) -> Duty:
    """One of each minute that was done in a tenth of a second."""
    one = Duty(duty=name, interval_s=60.0, succeeded_ms=NOW_MS - ago_ms, took_s=0.1)
    return dataclasses.replace(one, **changes)


HEARTBEATS = duty("heartbeats", 500, interval_s=1.0, took_s=0.01)


def pump(task: int = 0, **changes: Any) -> Pump:
    """One on the first host, with a partition."""
    one = Pump(
        task=task,
        host="host-1",
        partitions=1,
        records=1_000,
        bytes=100_000,
        memory_bytes=90_000_000,
        at_ms=NOW_MS - 500,
    )
    return dataclasses.replace(one, **changes)


def flow(**changes: Any) -> Flow:
    """A flow A->B that has caught up; this process works on it, and another stands by."""
    one = Flow(
        flow="A->B",
        source=ClusterFigures(alias="A", bytes=120_000, requests=100),
        target=ClusterFigures(alias="B", bytes=100_000, requests=90),
        state=FlowState.CAUGHT_UP,
        role=Role.LEADER,
        at_ms=NOW_MS,
        state_since_ms=NOW_MS - 60_000,
        leader="host-1:4711",
        processes=2,
        epoch=1,
        records=1_000,
        bytes=100_000,
        lag=0,
        lag_s=0.0,
        topics=(topic(),),
        groups=(group(),),
        duties=(duty(), HEARTBEATS),
        pumps=(pump(),),
    )
    return dataclasses.replace(one, **changes)


PROCESS = Process(
    host="host-1", pid=4711, version=__version__, started_ms=NOW_MS - 3_600_000, spark_version="4.0.0", slots=8, tasks=1
)


def snapshot(*flows: Flow, **changes: Any) -> Snapshot:
    """Of a process that works on these flows, or on A->B alone."""
    return dataclasses.replace(Snapshot(PROCESS, NOW_MS, flows or (flow(),)), **changes)
