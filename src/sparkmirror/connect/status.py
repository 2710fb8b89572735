"""What Connect's status says of a connector, from what its flow does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sparkmirror.connect.flows import ConnectorPart
from sparkmirror.connect.model import ConnectorSpec, ConnectorStatus, TargetState, TaskStatus
from sparkmirror.connect.server_paths import without_paths
from sparkmirror.engine.assignment import PartitionKey
from sparkmirror.engine.beats import HEARTBEATS
from sparkmirror.engine.mirror import Mirror
from sparkmirror.engine.snapshot import Flow
from sparkmirror.formats.connect import ConnectorRole

GROUP_DUTIES = ("checkpoints", "group offsets", "share groups")
_NAMED = 3
"""So many partitions that can't be copied are named for each task."""


@dataclass(frozen=True, slots=True)
class FlowWork:
    """What is known of one flow, or pair, in this process."""

    there: bool = False
    """It is worked on, or stood by for."""
    held: bool = False
    copying: bool = False
    """Pumps are at work on it."""
    copies: bool = False
    """Who starts pumps has not heard yet that they shall not be at work on it, and may start them."""
    restarting: bool = False
    failure: str = ""
    """Why it can't be opened."""
    standing_by: str = ""
    trouble: str = ""
    """Why it can't be worked on now."""
    waiting: str = ""
    """Why its pumps wait."""
    failing: Mapping[str, str] = field(default_factory=dict)
    """Duties whose last turn failed, and why."""
    tasks: Sequence[Sequence[PartitionKey]] = ()
    parked: Mapping[PartitionKey, str] = field(default_factory=dict)


def flow_state(mirror: Mirror, flow: str) -> FlowWork:
    """Of a flow, or a pair that only sends heartbeats."""
    failure, restarting = mirror.roster.failed.get(flow, ""), mirror.roster.is_restarting(flow)
    beats = next((one for one in mirror.roster.beats if one.name == flow), None)
    if beats is not None:
        failing = {HEARTBEATS: beats.failing} if beats.failing else {}
        return FlowWork(True, beats.held(), failing=failing, standing_by="" if failing else beats.standing_by)
    driver = next((one for one in mirror.drivers if one.name == flow), None)
    if driver is None:
        return FlowWork(copying=flow in mirror.copying, restarting=restarting, failure=failure)
    seen = next((one for one in mirror.observer.snapshot().flows if one.flow == flow), None)
    return FlowWork(
        there=True,
        held=driver.held(),
        copying=flow in mirror.copying,
        copies=driver.flow.copies,
        restarting=restarting,
        failure=failure,
        standing_by=driver.standing_by,
        trouble=mirror.troubles.get(flow, ""),
        waiting=seen.waiting if seen is not None else "",
        failing={duty.duty: duty.failing for duty in seen.duties if duty.failing} if seen is not None else {},
        tasks=mirror.tasks(flow),
        parked=_parked(seen) if seen is not None else {},
    )


def _parked(flow: Flow) -> dict[PartitionKey, str]:
    return {PartitionKey(flow.flow, topic.topic, one.partition): one.reason for topic, one in flow.parked}


def connector_status(spec: ConnectorSpec, part: ConnectorPart, flow: FlowWork, worker_id: str) -> ConnectorStatus:
    """Of one connector."""

    def status(state: str, trace: str = "", tasks: Iterable[tuple[str, str]] = ()) -> ConnectorStatus:
        numbered = tuple(TaskStatus(index, *task_state(one)) for index, one in enumerate(tasks))
        return ConnectorStatus(spec.name, state, worker_id, shown(trace), numbered)

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
        return status("RUNNING", part.note, _source_tasks(flow))  # until the last record is acknowledged
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
    """Of tasks: a source connector's work is dealt out, the others have one task."""
    return max(len(flow.tasks), 1) if part.role is ConnectorRole.SOURCE else 1


def _source_tasks(flow: FlowWork) -> list[tuple[str, str]]:
    found = []
    for keys in flow.tasks or [()]:
        parked = [f"{key.topic}-{key.partition}: {flow.parked[key]}" for key in keys if key in flow.parked]
        if len(parked) > _NAMED:
            parked[_NAMED:] = [f"and {len(parked) - _NAMED} partitions more"]
        trace = _lines([flow.trouble, *parked])
        found.append(("FAILED", trace) if trace else ("RUNNING", flow.waiting))
    return found


def _said(failing: Mapping[str, str]) -> list[str]:
    return [f"{duty}: {why}" for duty, why in sorted(failing.items())]


def _lines(words: Iterable[str]) -> str:
    return "; ".join(filter(None, words))
