"""Requests whose answers need no broker; that they are a real worker's is seen in `test_same_as_connect.py`."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import quote

import pytest
from tests.support.in_memory_api import URL, InMemoryApi, InMemoryTopic, in_memory_api
from tests.support.mirror_process import wait_for
from tests.support.rest_cases import connector

from sparkmirror.connect.config_log import logger_records
from sparkmirror.connect.connector_model import TargetState
from sparkmirror.connect.loggers import LONGEST, MOST_NEW, Loggers
from sparkmirror.connect.status_log import LEADER
from sparkmirror.connect.storage_topic import Record
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.topic_log import LogUnavailable
from sparkmirror.kafka.wire.error_codes import ErrorCode

SOURCE = connector("Source", "source:9092", "target:9092")


@pytest.fixture
def api() -> Iterator[InMemoryApi]:
    """An interface with one connector, `shop`."""
    with in_memory_api() as opened:
        assert opened.ask("PUT", "/connectors/shop/config", SOURCE)[0] == 201
        yield opened


def test_what_cannot_be_written_can_be_asked_for_again(api: InMemoryApi) -> None:
    api.configs.broken = api.statuses.broken = ClusterUnreachable("no broker answers")
    status, said = api.ask("PUT", "/connectors/shop/pause")
    assert status == 500
    assert "can be safely retried (no broker answers)" in str(said)
    api.configs.broken = None
    assert api.ask("PUT", "/connectors/shop/pause")[0] == 202  # the status is written later
    api.herder.close()


def test_a_write_whose_answer_was_lost_counts(api: InMemoryApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record is in the topic, so every other reader of the topic acts on it."""

    def append(records: Sequence[Record]) -> None:
        InMemoryTopic.append(api.configs, records)
        raise ClusterUnreachable("the answer is lost")

    with monkeypatch.context() as lost:
        lost.setattr(api.configs, "append", append)
        assert api.ask("PUT", "/connectors/shop/stop")[0] == 500
    deadline = time.monotonic() + 20
    while api.worker.connectors["shop"].target_state is not TargetState.STOPPED:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    with monkeypatch.context() as lost:
        lost.setattr(api.configs, "append", append)
        assert api.ask("DELETE", "/connectors/shop")[0] == 500
    while api.worker.connectors:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _wait_for(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_process_that_loses_the_lease_during_a_request_works_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    leading = threading.Event()
    leading.set()
    with in_memory_api(leads=leading.is_set) as api:
        assert api.ask("PUT", "/connectors/shop/config", SOURCE)[0] == 201

        def append(records: Sequence[Record]) -> None:
            InMemoryTopic.append(api.configs, records)
            if any(key == b"connector-late" for key, _ in records):
                leading.clear()
                time.sleep(1.5)  # some turns of the herder's own thread

        monkeypatch.setattr(api.configs, "append", append)
        told = len(api.statuses.records)
        assert api.ask("PUT", "/connectors/late/config", SOURCE)[0] == 409
        _wait_for(lambda: not api.worker.connectors)
        time.sleep(0.5)
        assert not api.worker.connectors
        assert LEADER.encode() not in [key for key, _ in api.statuses.records[told:]]
        leading.set()
        _wait_for(lambda: api.worker.connectors.keys() == {"shop", "late"})


ASKED_OF_THE_WORKER = (
    ("GET", "/connectors/shop/offsets"),
    ("PATCH", "/connectors/shop/offsets"),
    ("DELETE", "/connectors/shop/offsets"),
    ("POST", "/connectors/shop/restart?includeTasks=true"),
    ("POST", "/connectors/shop/tasks/0/restart"),
    ("PUT", "/connectors/shop/topics/reset"),
)
OFFSETS = {
    "offsets": [{"partition": {"cluster": "A", "topic": "orders", "partition": 0}, "offset": {"offset": 5}}],
}


@pytest.mark.parametrize(("method", "path"), ASKED_OF_THE_WORKER)
@pytest.mark.parametrize("lost", ["before the request", "during the request"])
def test_a_request_to_a_process_that_leads_no_longer_can_be_sent_again(
    lost: str, method: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by Connect's leader: 409 says that the configuration is stale, neither 404 nor 500."""
    leading = threading.Event()
    leading.set()
    with in_memory_api(leads=leading.is_set) as api:
        assert api.ask("PUT", "/connectors/shop/config", SOURCE)[0] == 201
        if path.endswith("offsets") and method != "GET":
            assert api.ask("PUT", "/connectors/shop/stop")[0] == 204
            _wait_for(lambda: not api.herder.tasks("shop"))
        if lost == "before the request":
            leading.clear()
            _wait_for(lambda: not api.worker.connectors)
        else:
            answers = iter([True])
            monkeypatch.setattr(api.herder, "_leads", lambda: next(answers, False))
            monkeypatch.setattr(api.worker, "connectors", {})
        status, said = api.ask(method, path, OFFSETS if method == "PATCH" else None)
        assert status == 409, said
        assert "stale configuration" in str(said)


def test_topics_are_answered_by_a_worker_that_stands_by_meanwhile(
    api: InMemoryApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the topic, as by any process that does not lead."""
    _wait_for(lambda: any(key.startswith(b"status-topic") for key, _ in api.statuses.records))

    def topics(name: str) -> set[str]:
        raise KeyError(name)

    # Not all of the worker: the herder, which leads on, would take `shop` for removed and forget its topics.
    monkeypatch.setattr(api.worker, "topics", topics)
    status, said = api.ask("GET", "/connectors/shop/topics")
    assert (status, said) == (200, {"shop": {"topics": [f"{SOURCE['source.cluster.alias']}.{SOURCE['topics']}"]}})


def test_work_that_could_not_be_ended_is_ended_at_the_next_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    leading = threading.Event()
    leading.set()
    with in_memory_api(leads=leading.is_set) as api:
        assert api.ask("PUT", "/connectors/shop/config", SOURCE)[0] == 201
        failures = iter([OSError("no more threads")])

        def stand_by() -> None:
            for failure in failures:
                raise failure
            type(api.worker).stand_by(api.worker)

        monkeypatch.setattr(api.worker, "stand_by", stand_by)
        leading.clear()
        _wait_for(lambda: not api.worker.connectors)


def test_tasks_that_are_refused_hold_nothing_else_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with in_memory_api() as api:

        def append(records: Sequence[Record]) -> None:
            if any(key.startswith(b"task-broad") for key, _ in records):
                raise LogUnavailable("configs", "a record was refused", ErrorCode.MESSAGE_TOO_LARGE)
            InMemoryTopic.append(api.configs, records)

        monkeypatch.setattr(api.configs, "append", append)
        for name in ("broad", "shop"):
            assert api.ask("PUT", f"/connectors/{name}/config", SOURCE)[0] == 201
        states = {f"status-{part}".encode() for part in ("connector-broad", "connector-shop", "task-broad-0")}
        _wait_for(lambda: {LEADER.encode(), *states} <= {key for key, _ in api.statuses.records})
        assert api.herder.leader_url == URL
        _wait_for(lambda: api.ask("GET", "/connectors/shop/tasks")[1])
        assert api.ask("GET", "/connectors/broad/tasks") == (200, [])
        time.sleep(1.2)  # some more attempts
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == ["tasks of connector broad can't be written: topic configs: a record was refused (error 10)"]


def test_why_offsets_cannot_be_read_is_said(api: InMemoryApi, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> list[object]:
        raise ValueError(f"connector {name}: topics: is no regular expression")

    monkeypatch.setattr(api.worker, "offsets", refuse)
    message = "connector shop: topics: is no regular expression"
    assert api.ask("GET", "/connectors/shop/offsets") == (400, {"error_code": 400, "message": message})


SECRET = "hunter2"
REFERENCE = "${file:/run/secrets:password}"


def _secret(text: str) -> str:
    return text.replace(REFERENCE, SECRET)


@pytest.mark.parametrize(
    ("setting", "shown", "errors"),
    [
        ("topics", REFERENCE, []),
        (
            "tasks.max",
            None,
            [
                f"Invalid value {REFERENCE} for configuration tasks.max: Not a number of type INT",
                "Invalid value null for configuration tasks.max: Value must be non-null",
            ],
        ),
        (
            "replication.policy.class",
            None,
            [
                f"Invalid value {REFERENCE} for configuration replication.policy.class: "
                f"Class {REFERENCE} could not be found."
            ],
        ),
        (
            "offset-syncs.topic.location",
            REFERENCE,
            [
                f"Invalid value {REFERENCE} for configuration offset-syncs.topic.location: "
                "String must be one of: source, target"
            ],
        ),
        (
            "metric.names.formats",
            REFERENCE,
            [f"Invalid value {REFERENCE} for configuration metric.names.formats: String must be one of: legacy, new"],
        ),
    ],
)
def test_what_a_reference_stands_for_is_checked_and_not_shown(
    setting: str, shown: str | None, errors: list[str]
) -> None:
    config = {**SOURCE, "name": "shop", setting: REFERENCE}
    plugin = f"/connector-plugins/{SOURCE['connector.class']}/config/validate"
    with in_memory_api(_secret) as api:
        _, checked = api.ask("PUT", plugin, config)
        status, put = api.ask("PUT", "/connectors/shop/config", config)
    assert SECRET not in f"{checked} {put}"
    assert isinstance(checked, dict)
    value = next(one["value"] for one in checked["configs"] if one["value"]["name"] == setting)
    assert (value["value"], value["errors"]) == (shown, errors)
    assert status == (400 if errors else 201)
    assert all(error in str(put) for error in errors)


def test_why_offsets_cannot_be_forgotten_is_said(api: InMemoryApi, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> str:
        raise ValueError(f"connector {name} has not ended yet")

    monkeypatch.setattr(api.worker, "delete_offsets", refuse)
    assert api.ask("PUT", "/connectors/shop/stop")[0] == 204
    status, said = api.ask("DELETE", "/connectors/shop/offsets")
    assert (status, said) == (400, {"error_code": 400, "message": "connector shop has not ended yet"})


@pytest.mark.parametrize("number", ["--5", "-", "x", "1.0", "²", "٣", "2147483648", "9" * 5000])
def test_a_task_without_a_number(api: InMemoryApi, number: str) -> None:
    nothing = {"error_code": 404, "message": "HTTP 404 Not Found"}
    assert api.ask("GET", f"/connectors/shop/tasks/{quote(number)}/status") == (404, nothing)
    assert api.ask("POST", f"/connectors/shop/tasks/{quote(number)}/restart") == (404, nothing)


def test_a_tasks_number(api: InMemoryApi) -> None:
    assert api.ask("GET", "/connectors/shop/tasks/+1/status")[0] == 200
    assert "No status found for task shop--5" in str(api.ask("GET", "/connectors/shop/tasks/-5/status"))


def test_a_name_is_text(api: InMemoryApi) -> None:
    for name in (["a"], {"a": "b"}):
        status, said = api.ask("POST", "/connectors", {"name": name, "config": SOURCE})
        assert status == 400
        assert "name must be text" in str(said)
    assert api.ask("GET", "/connectors") == (200, ["shop"])


@pytest.mark.parametrize("half", ["\ud800", "a\udfffb"])
def test_half_of_a_surrogate_pair_is_no_text(api: InMemoryApi, half: str) -> None:
    offsets = {"offsets": [{"partition": {"cluster": half, "topic": "t", "partition": 0}, "offset": {"offset": 1}}]}
    assert api.ask("PUT", "/connectors/shop/stop")[0] == 204
    for method, path, body in (
        ("POST", "/connectors", {"name": half, "config": SOURCE}),
        ("PUT", "/connectors/new/config", {**SOURCE, half: "x"}),
        ("PATCH", "/connectors/shop/config", {"topics": half}),
        ("PATCH", "/connectors/shop/offsets", offsets),
    ):
        status, said = api.ask(method, path, body)
        assert status == 400
        assert "half of a surrogate pair" in str(said)
    assert api.ask("PATCH", "/connectors/shop/config", {"topics": "\U0001f600"})[0] == 200


def test_a_connector_keeps_its_name(api: InMemoryApi) -> None:
    status, said = api.ask("PATCH", "/connectors/shop/config", {"name": "other"})
    assert status == 400
    assert "(other) doesn't match connector name in the URL (shop)" in str(said)
    assert api.ask("PATCH", "/connectors/shop/config", {"name": "shop", "topics": "x"})[0] == 200


@pytest.mark.parametrize("name", ["a/b", "a//b/", "50%", "a%2Fb", "a b+c", "é", "@:?#&"])
def test_any_name_can_be_asked_for(api: InMemoryApi, name: str) -> None:
    path = f"/connectors/{quote(name, safe='')}"
    assert api.ask("POST", "/connectors", {"name": name, "config": SOURCE})[0] == 201
    for method, end, status in (
        ("GET", "/status", 200),
        ("GET", "/tasks/1/status", 200),
        ("PUT", "/config", 200),
        ("PUT", "/stop", 204),
        ("DELETE", "/offsets", 200),
        ("GET", "/topics/", 200),
    ):
        assert api.ask(method, path + end, SOURCE if end == "/config" else None)[0] == status, end
    assert api.ask("GET", path)[1] == {
        "name": name,
        "config": {**SOURCE, "name": name},
        "tasks": [],
        "type": "source",
    }
    assert api.ask("DELETE", path)[0] == 204
    assert api.ask("GET", "/connectors") == (200, ["shop"])


def test_parts_of_a_path_may_be_encoded(api: InMemoryApi) -> None:
    assert api.ask("GET", "/%63onnectors/sho%70/statu%73/")[0] == 200
    assert api.ask("GET", "/connectors%2Fshop")[0] == 404


def test_a_process_that_starts_passes_over_earlier_levels() -> None:
    """KIP-976: they end with the process."""
    told: list[tuple[str, str]] = []
    stored = logger_records([("before", "DEBUG")])
    with in_memory_api(stored=stored, on_log_level=lambda *level: told.append(level)) as api:
        assert api.ask("PUT", "/admin/loggers/sparkmirror?scope=cluster", {"level": "WARN"})[0] == 204
        wait_for(lambda: ("sparkmirror", "WARN") in told, 10, "the level is set")
    assert told == [("sparkmirror", "WARN")]


def test_new_loggers_are_few(api: InMemoryApi) -> None:
    """Python keeps each for ever, and the topic the levels of those of the whole cluster."""
    prefix = f"new{time.monotonic_ns()}"
    there = len(logging.root.manager.loggerDict)
    long = "x" * (LONGEST + 1)
    for scope in ("", "?scope=cluster"):
        status, said = api.ask("PUT", f"/admin/loggers/{long}{scope}", {"level": "INFO"})
        assert (status, "there may be 100 new ones" in str(said)) == (400, True)
    statuses = [
        api.ask("PUT", f"/admin/loggers/{prefix}{number}{'?scope=cluster' * (number % 2)}", {"level": "INFO"})[0]
        for number in range(MOST_NEW + 20)
    ]
    assert set(statuses[:MOST_NEW]) == {200, 204}
    assert set(statuses[MOST_NEW:]) == {400}
    assert len(logging.root.manager.loggerDict) - there == MOST_NEW
    assert len([key for key, _ in api.configs.records if prefix.encode() in key]) == MOST_NEW / 2
    logging.getLogger(f"{prefix}there")
    assert api.ask("PUT", f"/admin/loggers/{prefix}there", {"level": "INFO"})[0] == 200
    assert api.ask("PUT", f"/admin/loggers/{prefix}there?scope=cluster", {"level": "INFO"})[0] == 204
    assert api.ask("PUT", f"/admin/loggers/{prefix}1", {"level": "INFO"})[0] == 200, "it is there"
    for name in [name for name in logging.root.manager.loggerDict if name.startswith(prefix)]:
        del logging.root.manager.loggerDict[name]


def test_levels_in_the_topic_beyond_the_limits_have_no_effect() -> None:
    assert Loggers().set("x" * (LONGEST + 1), "INFO") == []
