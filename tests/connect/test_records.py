"""Connect's records, as they are read and written."""

from __future__ import annotations

import json

from sparkmirror.connect.config_log import (
    ConfigState,
    connector_records,
    removal_records,
    target_records,
    task_records,
)
from sparkmirror.connect.connector_model import ConnectorSpec, ConnectorStatus, TargetState, TaskStatus
from sparkmirror.connect.errors import as_text
from sparkmirror.connect.status_log import StatusState, leader_record, status_records, topic_records

Records = list[tuple[bytes, bytes | None]]


def _config_state(records: Records) -> ConfigState:
    state = ConfigState()
    for offset, (key, value) in enumerate(records):
        state.take(key, value, offset)
    return state


def test_what_is_written_is_read() -> None:
    records = [
        *connector_records("a-1", {"topics": "x"}, TargetState.STOPPED),
        *connector_records("b", {"topics": "y"}),
        *task_records("a-1", [{"n": "0"}, {"n": "1"}]),
        *target_records("b", TargetState.PAUSED),
    ]
    state = _config_state(records)
    assert state.specs() == {
        "a-1": ConnectorSpec(name="a-1", config={"topics": "x"}, target_state=TargetState.STOPPED, place=1),
        "b": ConnectorSpec(name="b", config={"topics": "y"}, target_state=TargetState.PAUSED, place=2),
    }
    assert state.tasks == {"a-1": [{"n": "0"}, {"n": "1"}]}
    assert _config_state([*records, *removal_records("a-1")]).specs().keys() == {"b"}
    assert _config_state([*records, *task_records("a-1", [])]).tasks["a-1"] == []


def test_an_old_worker_takes_stopped_for_paused() -> None:
    [(_, value)] = target_records("a", TargetState.STOPPED)
    assert json.loads(value or b"") == {"state": "PAUSED", "state.v2": "STOPPED"}
    state = _config_state([*connector_records("a", {}), (b"target-state-a", b'{"state":"PAUSED"}')])
    assert state.specs()["a"].target_state is TargetState.PAUSED


def test_tasks_count_when_all_are_there() -> None:
    """Compaction may leave a commit without all of its tasks."""
    complete = task_records("a", [{"n": "0"}, {"n": "1"}])
    assert _config_state(complete[1:]).tasks == {}
    assert _config_state(complete[:-1]).tasks == {}
    assert _config_state([*complete, *task_records("a", [{"n": "new"}])[:-1]]).tasks == {"a": [{"n": "0"}, {"n": "1"}]}


def test_what_is_not_understood_is_left_alone() -> None:
    state = ConfigState()
    for key, value in [
        (None, b"{}"),
        (b"session-key", b"{}"),
        (b"connector-a", b"[]"),
        (b"\xff", b"{}"),
        (b"commit-a", b"{}"),
    ]:
        assert not state.take(key, value, 0)
    assert state == ConfigState()


def test_only_changes_of_states_are_written() -> None:
    state = StatusState()

    def write(wanted: dict[str, ConnectorStatus]) -> list[str]:
        records = status_records(state, wanted, 1)
        for key, value in records:
            assert state.take(key, value)
        return [key.decode() + ("" if value else " removed") for key, value in records]

    running = ConnectorStatus(
        name="a",
        state="RUNNING",
        worker_id="w:1",
        tasks=(TaskStatus(0, "RUNNING", "w:1"), TaskStatus(1, "RUNNING", "w:1")),
    )
    assert write({"a": running}) == ["status-connector-a", "status-task-a-0", "status-task-a-1"]
    assert write({"a": running}) == []
    assert state.status("a") == running
    failed = ConnectorStatus(name="a", state="RUNNING", worker_id="w:1", tasks=(TaskStatus(0, "FAILED", "w:1", "why"),))
    assert write({"a": failed}) == ["status-task-a-0", "status-task-a-1 removed"]
    assert state.status("a") == failed
    assert write({}) == ["status-task-a-0 removed", "status-connector-a removed"]
    assert state.status("a") is None


def test_topics_and_the_leader() -> None:
    state = StatusState()
    for key, value in [*topic_records(state, "a", {"t1", "t2"}), leader_record("http://w:1")]:
        assert state.take(key, value)
    assert (state.used, state.leader) == ({"a": {"t1", "t2"}}, "http://w:1")
    assert state.take(*leader_record(None))
    assert state.leader == ""
    [(key, value)] = topic_records(state, "a", {"t1"})
    assert (key, value) == (b"status-topic-t2:connector-a", None)


def test_maps_as_java_prints_them() -> None:
    assert as_text({"topic": "t", "partition": 0, "cluster": "a"}) == "{topic=t, partition=0, cluster=a}"
    assert as_text({"group": {"of": True}}) == "{group={of=true}}"
    assert as_text([None, 1, {}]) == "[null, 1, {}]"
