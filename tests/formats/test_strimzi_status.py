"""The status of a resource, as Strimzi's operator writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from resources import read_resource
from typer.testing import CliRunner

from sparkmirror.cli.app import app
from sparkmirror.cli.status_file import RunStatus
from sparkmirror.config.formats.strimzi_status import FlowStatus, StatusFile
from sparkmirror.snapshot import snapshot

FAILED = "One or more connectors are in FAILED state: us->eu.MirrorSourceConnector: orders-1: too large"


def running(
    state: str = "copying", partitions: int = 3, parked: tuple[str, ...] = (), failing: tuple[str, ...] = ()
) -> FlowStatus:
    """What a mirror tells about a flow."""
    return FlowStatus(flow="us->eu", state=state, partitions=partitions, parked=parked, failing=failing)


def status(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((path / "status.yaml").read_text())["status"]
    return found


def status_file(path: Path, state: str = "running") -> StatusFile:
    def rest(spec: dict[str, Any]) -> None:
        spec["mirrors"][0]["checkpointConnector"]["state"] = state

    file = StatusFile(str(path / "status.yaml"), read_resource(path, rest).resources)
    file.tasks = {"us->eu": 2}
    return file


def test_it_runs(tmp_path: Path) -> None:
    status_file(tmp_path).show([running()])
    shown = status(tmp_path)
    assert [(one["type"], one["status"]) for one in shown["conditions"]] == [("Ready", "True")]
    assert shown["observedGeneration"] == 7
    assert shown["replicas"] == 1
    source, checkpoint = shown["connectors"]
    assert (source["name"], source["type"]) == ("us->eu.MirrorSourceConnector", "source")
    assert source["connector"]["state"] == "RUNNING"
    assert [(task["id"], task["state"]) for task in source["tasks"]] == [(0, "RUNNING"), (1, "RUNNING")]
    assert checkpoint["connector"]["state"] == "RUNNING"
    assert shown["connectorPlugins"][0]["class"].endswith("MirrorSourceConnector")
    document = yaml.safe_load((tmp_path / "status.yaml").read_text())
    assert {key: document[key] for key in ("apiVersion", "kind", "spec")}["spec"]["replicas"] == 1


def test_what_can_not_be_copied(tmp_path: Path) -> None:
    file = status_file(tmp_path)
    file.show([running(parked=("orders-1: too large",), failing=("heartbeats: no answer",))])
    shown = status(tmp_path)
    assert [(one["type"], one.get("message")) for one in shown["conditions"]] == [
        ("NotReady", FAILED),
        ("Warning", "us->eu: heartbeats: no answer"),
    ]
    assert shown["connectors"][0]["connector"]["trace"] == "orders-1: too large"
    file.show([running()])
    assert [one["type"] for one in status(tmp_path)["conditions"]] == ["Ready"]


@pytest.mark.parametrize("state", ["starting", "joining", "standing by: another process works"])
def test_not_yet(tmp_path: Path, state: str) -> None:
    status_file(tmp_path).show([running(state=state)])
    shown = status(tmp_path)
    assert shown["conditions"][0]["type"] == "NotReady"
    assert shown["conditions"][0]["message"] == f"us->eu: {state}"
    assert {one["connector"]["state"] for one in shown["connectors"]} == {"UNASSIGNED"}


def test_a_flow_that_copies_nothing(tmp_path: Path) -> None:
    """Only a checkpoint connector is there: it runs as soon as the flow is ours, though nothing is ever copied."""
    resources = read_resource(tmp_path, lambda spec: spec["mirrors"][0].pop("sourceConnector")).resources
    file = StatusFile(str(tmp_path / "status.yaml"), resources)
    for state, shown, kind in (("joining", "UNASSIGNED", "NotReady"), ("translating", "RUNNING", "Ready")):
        file.show([running(state=state, partitions=0)])
        assert [one["connector"]["state"] for one in status(tmp_path)["connectors"]] == [shown]
        assert status(tmp_path)["conditions"][0]["type"] == kind


def test_what_was_asked_to_rest(tmp_path: Path) -> None:
    status_file(tmp_path, "paused").show([running()])
    assert [one["connector"]["state"] for one in status(tmp_path)["connectors"]] == ["RUNNING", "PAUSED"]
    assert status(tmp_path)["conditions"][0]["type"] == "Ready"


def test_the_end(tmp_path: Path) -> None:
    file = status_file(tmp_path)
    file.ended("cluster eu can't be reached", "ClusterUnreachable")
    assert status(tmp_path)["conditions"][0]["message"] == "cluster eu can't be reached"
    assert status(tmp_path)["conditions"][0]["reason"] == "ClusterUnreachable"
    file.ended()
    assert [one["type"] for one in status(tmp_path)["conditions"]] == ["Ready"]
    assert status(tmp_path)["replicas"] == 0


def test_it_is_made_from_the_snapshot_now_and_then(tmp_path: Path) -> None:
    """Counts of partitions, what is stuck and which duties fail come from there; nobody asks for it all the time."""
    reading = read_resource(tmp_path)
    partitions = (
        snapshot.Partition(partition=0, state=snapshot.PartitionState.RUNNING),
        snapshot.Partition(partition=1, state=snapshot.PartitionState.PARKED, reason="too large"),
    )
    flow = snapshot.Flow(
        flow="us->eu",
        source=snapshot.ClusterFigures(alias="us"),
        target=snapshot.ClusterFigures(alias="eu"),
        state=snapshot.FlowState.COPYING,
        role=snapshot.Role.LEADER,
        at_ms=0,
        topics=(
            snapshot.Topic(topic="orders", target_topic="us.orders", partitions=partitions),
            snapshot.Topic(topic="a b", target_topic="", refused="not legal"),
        ),
        duties=(
            snapshot.Duty(duty="heartbeats", interval_s=1.0, failing="no answer"),
            snapshot.Duty(duty="checkpoints", interval_s=1.0),
        ),
    )
    process = snapshot.Process(host="h", pid=1, version="0", started_ms=0)
    asked = []

    def now() -> snapshot.Snapshot:
        asked.append(1)
        return snapshot.Snapshot(process, 0, (flow,))

    with RunStatus(reading, str(tmp_path / "status.yaml")) as file:
        file.show(now)
        file.show(now)
        shown = status(tmp_path)
    assert asked == [1]
    assert [(one["type"], one.get("message")) for one in shown["conditions"]] == [
        ("NotReady", FAILED),
        ("Warning", "us->eu: heartbeats: no answer"),
    ]
    assert shown["connectors"][0]["connector"]["trace"] == "orders-1: too large\na b: not legal"


def test_nothing_is_run_where_nothing_is_asked_for(tmp_path: Path) -> None:
    """Scaled to nothing: the verb ends at once, and the status says so."""
    read_resource(tmp_path, lambda spec: spec.update(replicas=0))
    options = ["run", str(tmp_path / "mirror.yaml"), "--status-file", str(tmp_path / "status.yaml")]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0
    assert "replicas is 0: nothing is run" in result.stderr
    assert (status(tmp_path)["replicas"], status(tmp_path)["connectors"]) == (0, [])


def test_a_file_that_can_not_be_run_is_in_the_status(tmp_path: Path) -> None:
    read_resource(tmp_path, lambda spec: spec["mirrors"][0].update(topicsPattern="a,,b"))
    options = ["run", str(tmp_path / "mirror.yaml"), "--status-file", str(tmp_path / "status.yaml")]
    assert getattr(CliRunner().invoke(app, options).exception, "exit_code", None) == 2
    (condition,) = status(tmp_path)["conditions"]
    assert (condition["type"], condition["reason"]) == ("NotReady", "ConfigError")
    assert "has an empty item" in condition["message"]


def test_properties_have_no_status(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text("clusters = a, b\n")
    result = CliRunner().invoke(app, ["run", str(path), "--status-file", str(tmp_path / "status.yaml")])
    assert "is for Strimzi's resources" in str(result.exception)


def test_a_transition_has_one_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = status_file(tmp_path)
    file.show([running()])
    (tmp_path / "status.yaml").unlink()
    file.show([running()])  # nothing has changed, so nothing is written
    assert not (tmp_path / "status.yaml").exists()
