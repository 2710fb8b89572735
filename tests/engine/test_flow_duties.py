"""Which duties a flow's settings ask for, how often, and which have a last turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.receipts import receipt

from sparkmirror.config import load_mm2_properties
from sparkmirror.config.model import LegacyConfig
from sparkmirror.kafka.cluster.groups import Committed, Groups, Offsets
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.engine import flow_duties
from sparkmirror.mirror.engine.duties import Schedule
from sparkmirror.mirror.engine.flow_duties import FlowDuties, FlowGroups
from sparkmirror.mirror.sync.copy_retention import ShorterCopies
from sparkmirror.mirror.sync.mm1_commits import OURS
from sparkmirror.mirror.sync.topic_rules import group_filter, topic_rules
from sparkmirror.mirror.sync.topics import TopicSync
from sparkmirror.pump.messages.orders import Receipt

NOBODY: Any = None
"""In the place of an admin that is never asked."""

ALL = {
    "old segments": 600,
    "copies' retention": 300,
    "topic configurations": 600,
    "topic ACLs": 600,
    "heartbeats": 1,
    "offset syncs": 1,
    "Connect's offsets": 60,
    "standing": 60,
    "checkpoints": 60,
    "group watch": 10,
}


def schedules(
    directory: Path,
    settings: dict[str, str],
    *,
    once: bool = False,
    legacy: LegacyConfig | None = None,
    receipts: Sequence[Receipt] = (),
    ended: Mapping[TopicPartition, int] | None = None,
) -> dict[str, Schedule]:
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
        flow=flow.model_copy(update={"legacy": legacy}),
        rules=topic_rules(flow),
        wanted_groups=group_filter(flow),
        source=NOBODY,
        target=NOBODY,
        topics=lambda: TopicSync(mirrored=(), created=(), grown=(), refused={}),
        receipts=lambda: receipts,
        receipts_mark=lambda: 0,
        copied=dict,
        ended=lambda: ended or {},
        groups=FlowGroups(),
        shorter_copies=ShorterCopies(),
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


def test_the_acl_duty_knows_which_copies_writers_have_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Callable[[], Iterable[str]]] = []
    monkeypatch.setattr(flow_duties, "TopicAclSync", lambda *settings: asked.append(settings[-1]))
    schedules(tmp_path, {}, ended={("A.t", 0): 7, ("A.t", 1): 9, ("A.u", 0): 3})["topic ACLs"].make()
    (moved,) = asked
    assert set(moved()) == {"A.t", "A.u"}


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


@pytest.mark.parametrize(
    ("changes", "committed"),
    [
        ({"state": "running", "upstream": 0}, 0),
        ({"state": "running", "upstream": 7, "last_upstream": 4}, 7),
        ({"state": "parked", "upstream": 7}, 7),
        ({"state": "waiting"}, None),
        ({"state": "parked", "source_end": 5}, None),
    ],
    ids=["empty so far", "copied", "parked later", "no position yet", "parked at once"],
)
def test_an_old_mirror_maker_gets_each_known_position(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], committed: int | None
) -> None:
    """Without a commit it would begin at `latest`, and skip what is written to an empty partition meanwhile."""
    calls: list[dict[str, Offsets]] = []

    def commit(_: Groups, offsets: dict[str, Offsets]) -> dict[str, dict[TopicPartition, int]]:
        calls.append(offsets)
        return {"g": {}}

    monkeypatch.setattr(Groups, "commit", commit)
    legacy = LegacyConfig(group_id="g")
    receipts = [receipt(source_topic="t", target_topic="t", **changes)]
    duty = schedules(tmp_path, {}, legacy=legacy, receipts=receipts)["group commits"].make()
    duty.run()
    duty.close()
    expected = [] if committed is None else [{"g": {("t", 0): Committed(committed, OURS)}}]
    assert calls == expected


def test_a_group_stays_while_the_first_turn_that_sets_offsets_is_under_way() -> None:
    """A page with the group would lose it for the turn's time, and a cut-over would not see it."""
    checkpoints: Any = SimpleNamespace(standings={"billing": "translated"})
    sync: Any = SimpleNamespace(standings={})
    groups: Any = FlowGroups(checkpoints=checkpoints, sync=sync)
    assert groups.newest == {"billing": "translated"}
    sync.standings = {"billing": "set"}
    assert groups.newest == {"billing": "set"}
