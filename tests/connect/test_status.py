"""What a connector's status says, for all that its flow can be at."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.support.connectors import aws_connectors, specs, worker_file

from sparkmirror.config.formats.connect_files import ConnectorRole
from sparkmirror.connect.connector_model import ConnectorSpec, ConnectorStatus, TargetState
from sparkmirror.connect.flows import ConnectorPart
from sparkmirror.connect.status import FlowWork, connector_status
from sparkmirror.connect.worker import LISTED_BYTES, ConnectWorker
from sparkmirror.mirror.engine.assignment import PartitionKey

KEYS = [PartitionKey("a->b", "t", index) for index in range(6)]
AT_WORK = FlowWork(there=True, held=True, tasks=(KEYS[:5], KEYS[5:]))


def status(
    flow: FlowWork,
    role: ConnectorRole = ConnectorRole.SOURCE,
    target: TargetState = TargetState.STARTED,
    *,
    failure: str = "",
    note: str = "",
    idle: bool = False,
) -> ConnectorStatus:
    part = ConnectorPart(role=role, flow="a->b", failure=failure, note=note, idle=idle)
    return connector_status(ConnectorSpec(name="one", config={}, target_state=target), part, flow, "here:8083")


def shown(found: ConnectorStatus) -> str:
    return " ".join([found.state, *(task.state for task in found.tasks)])


@pytest.mark.parametrize(
    ("flow", "expected"),
    [
        (AT_WORK, "RUNNING RUNNING RUNNING"),
        (FlowWork(there=True, held=True), "RUNNING RUNNING"),
        (FlowWork(), "UNASSIGNED UNASSIGNED"),
        (FlowWork(there=True, standing_by="standing by: another process works on it"), "UNASSIGNED UNASSIGNED"),
        (FlowWork(restarting=True, there=True, held=True), "RESTARTING RESTARTING"),
        (FlowWork(failure="b can't be reached"), "FAILED"),
    ],
)
def test_of_a_source_connector(flow: FlowWork, expected: str) -> None:
    assert shown(status(flow)) == expected


def test_why_it_is_so() -> None:
    assert status(FlowWork(failure="b can't be reached")).trace == "b can't be reached"
    assert status(FlowWork(there=True, standing_by="standing by: x")).trace == "standing by: x"
    assert status(AT_WORK, failure="a key is wrong").trace == "a key is wrong"
    assert status(AT_WORK, note="they disagree").trace == "they disagree"
    assert {task.worker_id for task in status(AT_WORK).tasks} == {"here:8083"}


def test_what_rests() -> None:
    assert shown(status(AT_WORK, target=TargetState.PAUSED)) == "PAUSED PAUSED PAUSED"
    assert shown(status(AT_WORK, ConnectorRole.HEARTBEAT, TargetState.PAUSED)) == "PAUSED PAUSED"
    assert shown(status(AT_WORK, target=TargetState.STOPPED)) == "STOPPED"
    still = dataclasses.replace(AT_WORK, copying=True)
    assert shown(status(still, target=TargetState.STOPPED)).startswith("RUNNING"), "records still come"
    soon = dataclasses.replace(AT_WORK, copies=True)
    assert shown(status(soon, target=TargetState.STOPPED)).startswith("RUNNING"), "between two rounds"
    second = status(still, target=TargetState.STOPPED, failure="is copied by mm2-b already")
    assert shown(second) == "STOPPED", "the pumps are another connector's"
    assert shown(status(still, target=TargetState.PAUSED)).startswith("RUNNING")
    assert shown(status(still, ConnectorRole.HEARTBEAT, TargetState.STOPPED)) == "STOPPED"
    assert shown(status(FlowWork(failure="away"), target=TargetState.STOPPED)) == "STOPPED"


def test_a_task_fails_with_its_own_partitions() -> None:
    parked = {KEYS[0]: "too large", **dict.fromkeys(KEYS[1:5], "too old")}
    found = status(FlowWork(there=True, held=True, tasks=AT_WORK.tasks, parked=parked))
    assert shown(found) == "RUNNING FAILED RUNNING"
    assert found.tasks[0].trace == "t-0: too large; t-1: too old; t-2: too old; and 2 partitions more"
    assert found.tasks[1].trace == ""


def test_each_connector_tells_of_its_own_duties() -> None:
    failing = {"heartbeats": "no", "group offsets": "never", "topic ACLs": "not here"}
    flow = FlowWork(there=True, held=True, failing=failing)
    assert status(flow).trace == "topic ACLs: not here"
    assert shown(status(flow)) == "RUNNING RUNNING"
    for role, trace in (
        (ConnectorRole.CHECKPOINT, "group offsets: never"),
        (ConnectorRole.HEARTBEAT, "heartbeats: no"),
    ):
        assert shown(status(flow, role)) == "RUNNING FAILED"
        assert status(flow, role).tasks[0].trace == trace


def test_a_cluster_that_is_away_fails_the_tasks() -> None:
    flow = FlowWork(there=True, held=True, trouble="a can't be reached", tasks=AT_WORK.tasks)
    assert shown(status(flow)) == "RUNNING FAILED FAILED"
    assert shown(status(flow, ConnectorRole.CHECKPOINT)) == "RUNNING FAILED"


def test_one_that_has_nothing_to_do_runs() -> None:
    found = status(FlowWork(), ConnectorRole.CHECKPOINT, note="another one does it", idle=True)
    assert (shown(found), found.trace) == ("RUNNING RUNNING", "another one does it")


@pytest.mark.parametrize("partitions", [3, 40_000])
def test_a_tasks_list_fits_into_a_record(monkeypatch: pytest.MonkeyPatch, partitions: int) -> None:
    keys = tuple(
        PartitionKey("msksource->mskdest", f"a-topic-of-some-length-{index}", 0) for index in range(partitions)
    )
    worker: Any = ConnectWorker(worker_file(), "worker:8083")
    monkeypatch.setattr(worker._mirror, "tasks", lambda _: [keys])  # noqa: SLF001 - a test's way in
    monkeypatch.setattr(worker._mirror, "change", lambda *_: None)  # noqa: SLF001
    worker.apply(specs(aws_connectors()))
    (config,) = worker.task_configs("mm2-msc")
    listed = config["task.assigned.partitions"].split(",")
    assert listed == [f"{key.topic}-{key.partition}" for key in keys[: len(listed)]], "as a real worker can read it"
    assert len(listed) + int(config.get("task.assigned.partitions.left.out", 0)) == partitions
    assert ("task.assigned.partitions.left.out" in config) == (partitions > 3)
    size = len(config["task.assigned.partitions"])
    assert size <= LISTED_BYTES
    assert partitions == 3 or size > LISTED_BYTES - 50
