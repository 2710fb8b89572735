"""When `autoRestart` restarts what has failed, and what the status says of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.support.operated import CHECKPOINT, PATH, SOURCE, MemoryApi, resource, secret, turns
from tests.support.served_api import ServedApi

from sparkmirror.operator.auto_restarts import auto_restarts
from sparkmirror.operator.rest import ConnectRest

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RUNS = {"name": SOURCE, "connector": {"state": "RUNNING"}, "tasks": [{"id": 0, "state": "RUNNING"}]}
FAILED = {"name": SOURCE, "connector": {"state": "RUNNING"}, "tasks": [{"id": 0, "state": "FAILED", "trace": "why"}]}


def restarted_after(minutes: int, most: int | None = None) -> list[int]:
    """Minutes at which a connector that stays failed is restarted, when it is looked at each minute."""
    asked = {SOURCE: {"enabled": True} | ({} if most is None else {"maxRestarts": most})}
    status: dict[str, Any] = {}
    times = []
    for minute in range(minutes):
        told = list(auto_restarts(asked, [FAILED], status, NOW + timedelta(minutes=minute)))
        times += [minute for _, call in told if call is not None]
        status = {"autoRestartStatuses": [restart.shown for restart, _ in told]}
    return times


def test_pauses_grow_as_strimzis_do() -> None:
    assert restarted_after(400) == [0, 2, 8, 20, 40, 70, 112, 168, 228, 288, 348]


@pytest.mark.parametrize(("most", "times"), [(0, []), (1, [0]), (3, [0, 2, 8])])
def test_no_more_than_asked_for(most: int, times: list[int]) -> None:
    assert restarted_after(100, most) == times


def test_what_has_worked_for_a_while_begins_at_nothing() -> None:
    asked = {SOURCE: {"enabled": True}}
    [(first, call)] = auto_restarts(asked, [FAILED], {}, NOW)
    assert call is not None
    assert call.path == "/connectors/us-%3Eeu.MirrorSourceConnector/restart?includeTasks=true&onlyFailed=true"
    assert first.shown == {"connectorName": SOURCE, "count": 1, "lastRestartTimestamp": "2026-01-01T00:00:00Z"}
    before = {"autoRestartStatuses": [first.shown]}
    assert list(auto_restarts(asked, [RUNS], before, NOW + timedelta(minutes=2))) == [(first, None)]
    assert list(auto_restarts(asked, [RUNS], before, NOW + timedelta(minutes=3))) == []


@pytest.mark.parametrize(
    ("entry", "count"),
    [
        ({"connectorName": SOURCE, "count": 2, "lastRestartTimestamp": "2025-12-31T23:59:59.356123456Z"}, 2),
        ({"connectorName": SOURCE, "count": 2, "lastRestartTimestamp": "yesterday"}, 1),
        ({"connectorName": SOURCE, "lastRestartTimestamp": "2025-12-31T23:59:59Z"}, 1),
    ],
)
def test_what_strimzis_own_operator_has_written_is_read(entry: dict[str, object], count: int) -> None:
    """It writes fractions of seconds; what can't be read begins again."""
    [(restart, _)] = auto_restarts({SOURCE: {"enabled": True}}, [FAILED], {"autoRestartStatuses": [entry]}, NOW)
    assert restart.count == count


@pytest.mark.parametrize("wanted", [{}, {SOURCE: {}}, {SOURCE: {"enabled": False}}, {CHECKPOINT: {"enabled": True}}])
def test_only_who_asks_for_it(wanted: dict[str, dict[str, object]]) -> None:
    assert list(auto_restarts(wanted, [FAILED], {}, NOW)) == []


def test_a_whole_turn(served: ServedApi) -> None:
    def asking(spec: dict[str, Any]) -> None:
        spec["mirrors"][0]["sourceConnector"]["autoRestart"] = {"enabled": True}

    api = MemoryApi(resource(asking), secret())
    turn = turns(api, ConnectRest(served.url))
    turn()
    assert api.conditions() == [("Ready", "")], "autoRestart is no field without effect"
    served.api.worker.failed[SOURCE] = "orders-0: parked"
    served.api.worker.failed[CHECKPOINT] = "groups: refused"
    turn()
    assert served.api.worker.restarted == [f"{SOURCE} include_tasks=True only_failed=True"]
    assert [(item["connectorName"], item["count"]) for item in api.status["autoRestartStatuses"]] == [(SOURCE, 1)]
    assert api.conditions() == [("NotReady", "ConnectorsFailed")]
    del served.api.worker.failed[CHECKPOINT]
    served.api.worker.failed[SOURCE] = "orders-0: parked"
    turn()
    assert len(served.api.worker.restarted) == 1, "the pause is not over"
    turns(api, ConnectRest("http://127.0.0.1:1"))()
    assert api.status["autoRestartStatuses"][0]["count"] == 1, "nobody could be asked"
    api.objects[PATH]["status"]["autoRestartStatuses"][0]["lastRestartTimestamp"] = "2026-01-01T00:00:00Z"
    turns(api, ConnectRest(served.url))()
    assert len(served.api.worker.restarted) == 2, "another operator process knows of the first one"
    assert api.status["autoRestartStatuses"][0]["count"] == 2
    api.objects[PATH]["status"]["autoRestartStatuses"][0]["lastRestartTimestamp"] = "2026-01-01T00:00:00Z"
    turn()
    assert "autoRestartStatuses" not in api.status


def test_a_restart_that_is_refused_is_told(served: ServedApi, monkeypatch: pytest.MonkeyPatch) -> None:
    def asking(spec: dict[str, Any]) -> None:
        spec["mirrors"][0]["sourceConnector"]["autoRestart"] = {"enabled": True}

    api = MemoryApi(resource(asking), secret())
    turn = turns(api, ConnectRest(served.url))
    turn()
    served.api.worker.failed[SOURCE] = "orders-0: parked"
    monkeypatch.setattr(served.api.worker, "restart", refusing)
    assert not turn()
    assert api.conditions() == [("NotReady", "ConnectorsFailed"), ("Warning", "RestartConnector")]


def refusing(*_: object, **__: object) -> None:
    raise RuntimeError("no")
