"""A connector's status in Connect's terms, derived from its flow's state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sparkmirror.config.formats.connect_files import ConnectorRole
from sparkmirror.connect.connector_model import ConnectorSpec, ConnectorStatus, TargetState, TaskStatus
from sparkmirror.connect.flows import ConnectorPart
from sparkmirror.connect.server_paths import without_paths
from sparkmirror.mirror.engine.assignment import PartitionKey
from sparkmirror.mirror.engine.beats import HEARTBEATS
from sparkmirror.mirror.engine.mirror import Mirror
from sparkmirror.snapshot.snapshot import Flow

GROUP_DUTIES = ("checkpoints", "group offsets", "share groups")
_NAMED = 3
"""Most parked partitions named for each task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowWork:
    """One flow's or heartbeat pair's state in this process."""

    there: bool = False
    """True if this process works on the flow or stands by for it."""
    held: bool = False
    copying: bool = False
    """True while pumps are at work."""
    copies: bool = False
    """True if the driver's configuration asks for copying.

    After a stop is requested the driver may not know it yet, so that pumps may still start.
    """
    restarting: bool = False
    failure: str = ""
    """Reason if the flow can't be opened."""
    standing_by: str = ""
    trouble: str = ""
    """Reason if this process can't work on the flow now."""
    waiting: str = ""
    """Reason if the flow's pumps wait."""
    failing: Mapping[str, str] = field(default_factory=dict)
    """Reason by duty, of duties whose last turn failed."""
    tasks: Sequence[Sequence[PartitionKey]] = ()
    parked: Mapping[PartitionKey, str] = field(default_factory=dict)


def flow_state(mirror: Mirror, flow: str) -> FlowWork:
    """Return the state of a flow, or of a pair that only sends heartbeats."""
    failure, restarting = mirror.registry.failed.get(flow, ""), mirror.registry.is_restarting(flow)
    beats = next((pair for pair in mirror.registry.beats if pair.name == flow), None)
    if beats is not None:
        failing = {HEARTBEATS: beats.failing} if beats.failing else {}
        return FlowWork(
            there=True, held=beats.held(), failing=failing, standing_by="" if failing else beats.standing_by
        )
    driver = next((driver for driver in mirror.drivers if driver.name == flow), None)
    if driver is None:
        return FlowWork(copying=flow in mirror.copying, restarting=restarting, failure=failure)
    seen = next((entry for entry in mirror.observer.snapshot().flows if entry.flow == flow), None)
    return FlowWork(
        there=True,
        held=driver.held(),
        copying=flow in mirror.copying,
        copies=driver.flow.copies,
        restarting=restarting,
        failure=failure,
        standing_by=driver.leadership.standing_by,
        trouble=mirror.troubles.get(flow, ""),
        waiting=seen.waiting if seen is not None else "",
        failing={duty.duty: duty.failing for duty in seen.duties if duty.failing} if seen is not None else {},
        tasks=mirror.tasks(flow),
        parked=_parked(seen) if seen is not None else {},
    )


def _parked(flow: Flow) -> dict[PartitionKey, str]:
    return {PartitionKey(flow.flow, topic.topic, parked.partition): parked.reason for topic, parked in flow.parked}


def connector_status(spec: ConnectorSpec, part: ConnectorPart, flow: FlowWork, worker_id: str) -> ConnectorStatus:
    """Return one connector's status, derived from its part and its flow's state."""

    def status(state: str, trace: str = "", tasks: Iterable[tuple[str, str]] = ()) -> ConnectorStatus:
        numbered = tuple(TaskStatus(index, *task_state(task)) for index, task in enumerate(tasks))
        return ConnectorStatus(name=spec.name, state=state, worker_id=worker_id, trace=shown(trace), tasks=numbered)

    def task_state(task: tuple[str, str]) -> tuple[str, str, str]:
        return task[0], worker_id, shown(task[1])

    def shown(trace: str) -> str:
        return without_paths(trace, spec.config.values())

    still = flow.copying or flow.copies
    if (
        spec.target_state is not TargetState.STARTED
        and part.role is ConnectorRole.SOURCE
        and still
        and not part.failure
    ):
        # The connector shows RUNNING until the last record is acknowledged.
        return status("RUNNING", part.note, _source_tasks(flow))
    if spec.target_state is TargetState.STOPPED:
        return status("STOPPED", part.note)
    if part.failure:
        return status("FAILED", part.failure)
    if spec.target_state is TargetState.PAUSED:
        return status("PAUSED", part.note, [("PAUSED", "")] * _count(part, flow))
    if part.idle:
        return status("RUNNING", part.note, [("RUNNING", "")])
    if flow.failure:
        return status("FAILED", flow.failure)
    if flow.restarting:
        return status("RESTARTING", part.note, [("RESTARTING", "")] * _count(part, flow))
    if not flow.there or not flow.held:
        return status("UNASSIGNED", flow.standing_by or "joining", [("UNASSIGNED", "")] * _count(part, flow))
    if part.role is ConnectorRole.SOURCE:
        others = {duty: why for duty, why in flow.failing.items() if duty not in (*GROUP_DUTIES, HEARTBEATS)}
        return status("RUNNING", _lines([part.note, *_said(others)]), _source_tasks(flow))
    mine = GROUP_DUTIES if part.role is ConnectorRole.CHECKPOINT else (HEARTBEATS,)
    trace = _lines([flow.trouble, *_said({duty: why for duty, why in flow.failing.items() if duty in mine})])
    return status("RUNNING", part.note, [("FAILED" if trace else "RUNNING", trace)])


def _count(part: ConnectorPart, flow: FlowWork) -> int:
    """Return the task count: one for each share in a source connector, else one."""
    return max(len(flow.tasks), 1) if part.role is ConnectorRole.SOURCE else 1


def _source_tasks(flow: FlowWork) -> list[tuple[str, str]]:
    tasks = []
    for keys in flow.tasks or [()]:
        parked = [f"{key.topic}-{key.partition}: {flow.parked[key]}" for key in keys if key in flow.parked]
        if len(parked) > _NAMED:
            parked[_NAMED:] = [f"and {len(parked) - _NAMED} partitions more"]
        trace = _lines([flow.trouble, *parked])
        tasks.append(("FAILED", trace) if trace else ("RUNNING", flow.waiting))
    return tasks


def _said(failing: Mapping[str, str]) -> list[str]:
    return [f"{duty}: {why}" for duty, why in sorted(failing.items())]


def _lines(words: Iterable[str]) -> str:
    return "; ".join(filter(None, words))
