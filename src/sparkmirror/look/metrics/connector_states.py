"""States of a flow's three connectors and their tasks, as Connect would report.

MirrorMaker 2 runs these three connectors for each flow.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from sparkmirror.exact.position.cause import Cause
from sparkmirror.snapshot.snapshot import Flow, FlowState, PartitionState, Role

SOURCE = "MirrorSourceConnector"
CHECKPOINT = "MirrorCheckpointConnector"
HEARTBEAT = "MirrorHeartbeatConnector"
PACKAGE = "org.apache.kafka.connect.mirror."

JOINING_MS = 60_000
"""Age at which a flow that gives a reason for not beginning counts as failed.

Connect's tasks fail at once.
"""

WRITERS = {CHECKPOINT: "checkpoints", HEARTBEAT: "heartbeats"}
"""Duties that write the records of these connectors' tasks."""

_DUTIES = {CHECKPOINT: ("checkpoints", "group offsets", "share groups"), HEARTBEAT: ("heartbeats",)}
_OF_RECORDS = (Cause.TOO_LARGE, Cause.TIMESTAMP, Cause.UNREADABLE, Cause.TRANSFORM, Cause.REFUSED)


@dataclass(frozen=True, slots=True)
class ConnectorMetrics:
    """A connector and its tasks."""

    kind: str
    """The class's name without its package."""
    status: str
    """`running`, `paused` or `failed`, after the tasks' states."""
    tasks: dict[int, str]
    stuck: dict[int, int]
    """Task -> number of its partitions that stand at a record which can't be copied."""


def connectors(flow: Flow) -> tuple[ConnectorMetrics, ...]:
    """Return a flow's connectors.

    Returns none for a flow that another process drives, and for a flow that begins, unless the flow has failed.
    """
    failed = _has_failed(flow)
    if flow.role is not Role.LEADER and not failed:
        return ()
    return (_source(flow, failed=failed), *(_other(flow, kind, failed=failed) for kind in _DUTIES))


def _has_failed(flow: Flow) -> bool:
    if flow.state is FlowState.INCOMPLETE:
        return True
    late = flow.at_ms - flow.state_since_ms > JOINING_MS
    lease_refused = flow.state is FlowState.STANDING_BY and flow.role is Role.JOINING
    waits = flow.state is FlowState.JOINING and bool(flow.reason or flow.waiting)
    return late and (waits or lease_refused or flow.state is FlowState.WRONG_CLUSTER)


def _source(flow: Flow, *, failed: bool) -> ConnectorMetrics:
    """Return the source connector.

    A task fails if any of its partitions does, as in MirrorMaker 2; a refused topic fails the first task.
    """
    partitions = [partition for topic in flow.topics for partition in topic.partitions]
    paused = bool(partitions) and all(partition.state is PartitionState.PAUSED for partition in partitions)
    tasks = dict.fromkeys([pump.task for pump in flow.pumps] or [0], "paused" if paused else "running")
    first = min(tasks)
    parked = [partition for partition in partitions if partition.state is PartitionState.PARKED]
    broken = {partition.task if partition.task is not None else first for partition in parked}
    if any(topic.refused for topic in flow.topics):
        broken.add(first)
    tasks |= dict.fromkeys(tasks if failed else broken, "failed")
    stuck = Counter(
        partition.task if partition.task is not None else first
        for partition in parked
        if partition.cause in _OF_RECORDS
    )
    status = "failed" if failed else "paused" if paused else "running"
    return ConnectorMetrics(SOURCE, status, dict(sorted(tasks.items())), {task: stuck[task] for task in sorted(tasks)})


def _other(flow: Flow, kind: str, *, failed: bool) -> ConnectorMetrics:
    failing = any(duty.failing for duty in flow.duties if duty.duty in _DUTIES[kind])
    tasks = {0: "failed" if failed or failing else "running"}
    return ConnectorMetrics(kind, "failed" if failed else "running", tasks, {0: 0})
