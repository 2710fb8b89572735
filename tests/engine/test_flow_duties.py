"""Which duties a flow's settings ask for, how often, and which have a last turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparkmirror.config import load_mm2_properties
from sparkmirror.engine.duties import Schedule
from sparkmirror.engine.flow_duties import FlowDuties, FlowGroups
from sparkmirror.sync.topic_rules import group_filter, topic_rules
from sparkmirror.sync.topics import TopicSync

NOBODY: Any = None
"""In the place of an admin that is never asked."""

ALL = {
    "old segments": 600,
    "topic configurations": 600,
    "topic ACLs": 600,
    "heartbeats": 1,
    "offset syncs": 1,
    "Connect's offsets": 60,
    "standing": 60,
    "checkpoints": 60,
    "group watch": 10,
}


def schedules(directory: Path, settings: dict[str, str], *, once: bool = False) -> dict[str, Schedule]:
    lines = {
        "clusters": "A, B",
        "A.bootstrap.servers": "a:1",
        "B.bootstrap.servers": "b:1",
        "A->B.enabled": "true",
        **settings,
    }
    path = directory / "mm2.properties"
    path.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
    (flow,) = load_mm2_properties(str(path)).flows
    duties = FlowDuties(
        flow=flow,
        rules=topic_rules(flow),
        wanted_groups=group_filter(flow),
        source=NOBODY,
        target=NOBODY,
        topics=lambda: TopicSync(mirrored=(), created=(), grown=(), refused={}),
        receipts=list,
        receipts_mark=lambda: 0,
        copied=dict,
        groups=FlowGroups(),
        once=once,
    )
    return {schedule.name: schedule for schedule in duties.schedules()}


def test_by_default(tmp_path: Path) -> None:
    found = schedules(tmp_path, {})
    assert {name: one.interval_s for name, one in found.items()} == ALL
    assert [name for name, one in found.items() if one.at_end] == ["offset syncs", "Connect's offsets", "standing"]


@pytest.mark.parametrize(
    ("key", "gone"),
    [
        ("sync.topic.configs.enabled", {"topic configurations"}),
        ("sync.topic.acls.enabled", {"topic ACLs"}),
        ("emit.heartbeats.enabled", {"heartbeats"}),
        ("emit.offset-syncs.enabled", {"offset syncs"}),
        ("A->B.emit.checkpoints.enabled", {"checkpoints", "group watch"}),
    ],
)
def test_what_is_switched_off(tmp_path: Path, key: str, gone: set[str]) -> None:
    assert set(schedules(tmp_path, {key: "false"})) == ALL.keys() - gone


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("sync.topic.configs.interval.seconds", "topic configurations"),
        ("sync.topic.acls.interval.seconds", "topic ACLs"),
        ("emit.heartbeats.interval.seconds", "heartbeats"),
        ("emit.checkpoints.interval.seconds", "checkpoints"),
        ("sync.group.offsets.interval.seconds", "group offsets"),
        ("sync.group.offsets.interval.seconds", "share groups"),
    ],
)
def test_how_often(tmp_path: Path, key: str, name: str) -> None:
    found = schedules(tmp_path, {key: "17", "sync.group.offsets.enabled": "true"})
    assert found[name].interval_s == 17


def test_connects_offsets_are_written_at_its_own_interval(tmp_path: Path) -> None:
    assert schedules(tmp_path, {"B.offset.flush.interval.ms": "1500"})["Connect's offsets"].interval_s == 1.5


def test_group_offsets_come_behind_the_checkpoints(tmp_path: Path) -> None:
    found = schedules(tmp_path, {"sync.group.offsets.enabled": "true"}, once=True)
    last = [name for name, one in found.items() if one.at_end]
    assert last == ["offset syncs", "Connect's offsets", "standing", "checkpoints", "group offsets", "share groups"]
    assert "heartbeats" not in found
    assert found["group offsets"].delayed


def test_without_checkpoints_no_group_can_be_set(tmp_path: Path) -> None:
    settings = {"sync.group.offsets.enabled": "true", "emit.checkpoints.enabled": "false"}
    assert not {"checkpoints", "group offsets", "share groups"} & set(schedules(tmp_path, settings))
