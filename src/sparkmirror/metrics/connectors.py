"""What Kafka Connect would say of the three connectors that MirrorMaker 2 runs for a flow, and of their tasks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from sparkmirror.engine.snapshot import Flow, FlowState, PartitionState, Role
from sparkmirror.position.cause import Cause

SOURCE = "MirrorSourceConnector"
CHECKPOINT = "MirrorCheckpointConnector"
HEARTBEAT = "MirrorHeartbeatConnector"
PACKAGE = "org.apache.kafka.connect.mirror."

JOINING_MS = 60_000
"""A flow that could not begin for so long, and says why, has failed: Connect's tasks fail at once."""

_DUTIES = {CHECKPOINT: ("checkpoints", "group offsets", "share groups"), HEARTBEAT: ("heartbeats",)}
_OF_RECORDS = (Cause.TOO_LARGE, Cause.TIMESTAMP, Cause.UNREADABLE, Cause.REFUSED)


@dataclass(frozen=True, slots=True)
class ConnectorMetrics:
    """One connector and its tasks."""

    kind: str
    """The class's name without its package."""
    status: str
    """`running`, `paused` or `failed`, as the tasks' are."""
    tasks: dict[int, str]
    stuck: dict[int, int]
    """By task the partitions that stand at a record which can't be copied."""


def connectors(flow: Flow) -> tuple[ConnectorMetrics, ...]:
    """Those of one flow; none while it is another process's, or begins."""
    failed = _has_failed(flow)
    if flow.role is not Role.LEADER and not failed:
        return ()
    return (_source(flow, failed=failed), *(_other(flow, kind, failed=failed) for kind in _DUTIES))


def _has_failed(flow: Flow) -> bool:
    if flow.state is FlowState.INCOMPLETE:
        return True
    late = flow.at_ms - flow.state_since_ms > JOINING_MS
    return flow.state is FlowState.JOINING and late and bool(flow.reason or flow.waiting)


def _source(flow: Flow, *, failed: bool) -> ConnectorMetrics:
    """A task fails with one of its partitions, as in MirrorMaker 2; a topic that is refused is the first task's."""
    partitions = [one for topic in flow.topics for one in topic.partitions]
    paused = bool(partitions) and all(one.state is PartitionState.PAUSED for one in partitions)
    tasks = dict.fromkeys([pump.task for pump in flow.pumps] or [0], "paused" if paused else "running")
    first = min(tasks)
    parked = [one for one in partitions if one.state is PartitionState.PARKED]
    broken = {one.task if one.task is not None else first for one in parked}
    if any(topic.refused for topic in flow.topics):
        broken.add(first)
    tasks |= dict.fromkeys(tasks if failed else broken, "failed")
    stuck = Counter(one.task if one.task is not None else first for one in parked if one.cause in _OF_RECORDS)
    status = "failed" if failed else "paused" if paused else "running"
    return ConnectorMetrics(SOURCE, status, dict(sorted(tasks.items())), {task: stuck[task] for task in sorted(tasks)})


def _other(flow: Flow, kind: str, *, failed: bool) -> ConnectorMetrics:
    failing = any(duty.failing for duty in flow.duties if duty.duty in _DUTIES[kind])
    tasks = {0: "failed" if failed or failing else "running"}
    return ConnectorMetrics(kind, "failed" if failed else "running", tasks, {0: 0})
