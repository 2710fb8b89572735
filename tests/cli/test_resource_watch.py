"""A Strimzi resource that is changed while it runs: what is taken, what is not, and what is said of it."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparkmirror.cli.resource_watch import ResourceWatch, Taken, differences
from sparkmirror.config.formats import model_of, read

LOOK_S = 0.02


def resource(topics: str = "orders", **source: Any) -> dict[str, Any]:
    own = dict.fromkeys(("groupId", "configStorageTopic", "offsetStorageTopic", "statusStorageTopic"), "x")
    mirror = {
        "source": {"alias": "us", "bootstrapServers": "127.0.0.1:1"},
        "sourceConnector": source,
        "topicsPattern": topics,
    }
    return {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaMirrorMaker2",
        "metadata": {"name": "ours"},
        "spec": {
            "replicas": 1,
            "target": {**own, "alias": "eu", "bootstrapServers": "127.0.0.1:2"},
            "mirrors": [mirror],
        },
    }


def taken(path: Path) -> Taken:
    reading = read([str(path)])
    return Taken(reading, *model_of(reading))


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mirror.yaml"
    path.write_text(json.dumps(resource()))
    return path


def test_what_has_changed_is_taken_and_named(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    result: list[Taken] = []
    with ResourceWatch(str(file), taken(file), lambda: taken(file), result.append, LOOK_S):
        file.write_text(json.dumps(resource("orders|parcels", tasksMax=3)))
        until(lambda: result and caplog.records)
        time.sleep(5 * LOOK_S)
    assert len(result) == 1
    assert result[0].config.flows[0].tasks_max == 3
    (line,) = caplog.records
    assert line.__dict__["event"] == "file-changed"
    assert line.getMessage().endswith("flow us->eu: topics, tasks.max")


def test_what_cannot_be_run_is_refused_in_one_line_and_then_put_right(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    result: list[Taken] = []
    with ResourceWatch(str(file), taken(file), lambda: taken(file), result.append, LOOK_S):
        file.write_text(json.dumps(resource("orders", state="asleep")))
        until(lambda: caplog.records)
        assert not result
        (line,) = caplog.records
        assert line.__dict__["event"] == "file-not-taken"
        assert "\n" not in line.getMessage()
        assert "spec.mirrors[0].sourceConnector.state: must be paused, stopped or running" in line.getMessage()
        file.write_text(json.dumps(resource("parcels")))
        until(lambda: result)


@pytest.mark.parametrize("field", [{"state": "stopped"}, {"state": "paused"}, {"pause": True}])
def test_a_source_connector_that_is_stopped_alone_copies_no_more(file: Path, field: dict[str, Any]) -> None:
    """The cut-over step of Strimzi's users: copying ends, groups are still translated. And back."""

    def with_checkpoints(**source: Any) -> Taken:
        tree = resource(**source)
        if "pause" in source:
            tree["apiVersion"] = "kafka.strimzi.io/v1beta2"
        tree["spec"]["mirrors"][0]["checkpointConnector"] = {}
        file.write_text(json.dumps(tree))
        return taken(file)

    running, stopped = with_checkpoints(), with_checkpoints(**field)
    (flow,) = stopped.config.flows
    assert (flow.copies, flow.group.emit_checkpoints_enabled) == (False, True)
    assert differences(running, stopped) == ["flow us->eu: no records are copied"]
    assert differences(stopped, running) == ["flow us->eu: records are copied again"]


def test_a_link_that_leads_elsewhere_is_a_change(tmp_path: Path) -> None:
    """As Kubernetes mounts a ConfigMap: the file is a link into a directory that is a link itself."""
    for name, topics in (("first", "orders"), ("second", "parcels")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mirror.yaml").write_text(json.dumps(resource(topics)))
    (tmp_path / "..data").symlink_to("first")
    path = tmp_path / "mirror.yaml"
    path.symlink_to("..data/mirror.yaml")
    result: list[Taken] = []
    with ResourceWatch(str(path), taken(path), lambda: taken(path), result.append, LOOK_S):
        (tmp_path / "..tmp").symlink_to("second")
        os.replace(tmp_path / "..tmp", tmp_path / "..data")
        until(lambda: result)
    assert result[0].config.flows[0].topics == ("parcels",)


def test_a_file_that_was_only_touched_is_nothing_new(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    readings: list[Taken] = []

    def again() -> Taken:
        readings.append(taken(file))
        return readings[-1]

    with ResourceWatch(str(file), taken(file), again, lambda _: pytest.fail("taken"), LOOK_S):
        os.utime(file, (1, 1))
        until(lambda: readings)
        file.unlink()
        time.sleep(5 * LOOK_S)
    words = [record.getMessage() for record in caplog.records]
    assert [line for line in words if str(file) in line] == [], "the watch of another test may still speak"


def test_flows_that_come_and_go_are_named(file: Path) -> None:
    before = taken(file)
    more = resource()
    other = {"source": {"alias": "asia", "bootstrapServers": "127.0.0.1:3"}, "sourceConnector": {}}
    more["spec"]["mirrors"] = [other]
    file.write_text(json.dumps(more))
    assert differences(before, taken(file)) == ["flow asia->eu is new", "flow us->eu is no longer there"]


def test_each_file_of_a_directory_is_watched(tmp_path: Path, file: Path) -> None:
    results: list[Taken] = []
    with ResourceWatch(str(tmp_path), taken(tmp_path), lambda: taken(tmp_path), results.append, LOOK_S):
        file.write_text(json.dumps(resource("parcels")))
        until(lambda: results)
    assert results[0].config.flows[0].topics == ("parcels",)


def test_a_file_that_is_still_being_written_is_left_until_it_stays_the_same(file: Path) -> None:
    results: list[Taken] = []
    with ResourceWatch(str(file), taken(file), lambda: taken(file), results.append, 0.3):
        until_s = time.monotonic() + 1.5
        number = 0
        while time.monotonic() < until_s:
            number += 1
            file.write_text(json.dumps(resource(f"orders{number}")))
            time.sleep(0.02)
            assert not results
        until(lambda: results)
    assert [item.config.flows[0].topics for item in results] == [(f"orders{number}",)]
