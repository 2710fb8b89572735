"""Levels that an operator sets while a mirror runs: as the control topic has them, and as processes take them."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from sparkmirror.cli.app import app
from sparkmirror.kafka.cluster.topic_log import LogEntry
from sparkmirror.log_levels import AskedLevels, is_settable
from sparkmirror.pump.messages.control import Control, ControlState
from sparkmirror.task_lines import set_up_task_logging

PACKAGE = "sparkmirror.levels_of_a_test"


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Give the level back."""
    yield
    logging.getLogger(PACKAGE).setLevel(logging.NOTSET)


def level() -> int:
    return logging.getLogger(PACKAGE).level


class Written:
    """A log that keeps what is appended."""

    failures = 0

    def __init__(self) -> None:
        self.entries: list[LogEntry] = []

    def append(self, _: int, entries: list[tuple[bytes, bytes | None]]) -> int:
        self.entries += [LogEntry(len(self.entries), key, value) for key, value in entries]
        return len(self.entries) - 1


def test_what_is_said_is_heard() -> None:
    topic, state = Written(), ControlState()
    control = Control(topic)  # type: ignore[arg-type]
    control.log_level("sparkmirror.mirror.engine", "DEBUG")
    control.log_level("kafka", "ERROR")
    assert state.apply(topic.entries)
    assert state.log_levels == {"sparkmirror.mirror.engine": "DEBUG", "kafka": "ERROR"}
    control.log_level("kafka", None)
    state.apply(topic.entries[2:])
    assert state.log_levels == {"sparkmirror.mirror.engine": "DEBUG"}
    state.apply([LogEntry(9, b"log:sparkmirror.mirror.engine", None)])
    assert state.log_levels == {}


@pytest.mark.parametrize("value", [{"level": "LOUD"}, {"level": 10}, {"other": 1}, [1], "DEBUG"])
def test_what_is_no_level_is_left_out(value: object, caplog: pytest.LogCaptureFixture) -> None:
    state = ControlState()
    state.apply([LogEntry(0, b"log:sparkmirror", json.dumps(value).encode())])
    assert state.log_levels == {}
    assert "control record at offset 0" in caplog.text


@pytest.mark.parametrize("package", ["py4j", "root", "", "sparkmirrors", "kafkas.client", "uvicorn"])
def test_other_packages_are_nobodys_to_set(package: str) -> None:
    assert not is_settable(package)
    state = ControlState()
    state.apply([LogEntry(0, b"log:" + package.encode(), b'{"level": "DEBUG"}')])
    assert state.log_levels == {}


def test_a_level_is_taken_and_given_back() -> None:
    logging.getLogger(PACKAGE).setLevel(logging.ERROR)
    levels = AskedLevels()
    levels.follow("A->B", {PACKAGE: "DEBUG"})
    assert level() == logging.DEBUG
    levels.follow("A->B", {PACKAGE: "TRACE"})
    assert level() == 5
    levels.follow("A->B", {})
    assert level() == logging.ERROR


def test_what_somebody_else_sets_stays_until_it_is_asked_for_again() -> None:
    levels = AskedLevels()
    levels.follow("A->B", {PACKAGE: "DEBUG"})
    logging.getLogger(PACKAGE).setLevel(logging.ERROR)
    levels.follow("A->B", {PACKAGE: "DEBUG"})
    assert level() == logging.ERROR


@pytest.mark.parametrize("asked", [{}, {PACKAGE: "DEBUG"}], ids=["given back", "still asked for"])
def test_what_somebody_else_sets_stays_while_other_packages_change(asked: dict[str, str]) -> None:
    levels = AskedLevels()
    levels.follow("A->B", {PACKAGE: "DEBUG"})
    levels.follow("A->B", asked)
    logging.getLogger(PACKAGE).setLevel(logging.ERROR)
    levels.follow("A->B", {**asked, f"{PACKAGE}.below": "DEBUG"})
    levels.follow("A->B", asked)
    assert level() == logging.ERROR


def test_the_flow_named_first_wins() -> None:
    levels = AskedLevels()
    levels.follow("B->A", {PACKAGE: "DEBUG"})
    levels.follow("A->B", {PACKAGE: "ERROR"})
    assert level() == logging.ERROR
    levels.follow("B->A", {PACKAGE: "INFO"})
    assert level() == logging.ERROR
    levels.follow("A->B", {})
    assert level() == logging.INFO
    levels.follow("B->A", {})
    assert level() == logging.NOTSET


def test_a_tasks_process_logs_from_warnings_on_unless_more_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])
    set_up_task_logging()
    set_up_task_logging()
    logger = logging.getLogger(PACKAGE)
    logger.info("not asked for")
    logger.warning("two\nlines", extra={"event": "loss"})
    levels = AskedLevels()
    levels.follow("A->B", {PACKAGE: "DEBUG"})
    logger.debug("asked for")
    assert capsys.readouterr().err.splitlines() == [
        f"WARNING {PACKAGE} [loss]: two\\nlines",
        f"DEBUG {PACKAGE}: asked for",
    ]


@pytest.mark.parametrize(
    ("package", "wanted", "told"),
    [("py4j", "DEBUG", "PACKAGE: py4j: write sparkmirror or kafka"), ("kafka", "LOUD", "LEVEL: LOUD: write OFF")],
)
def test_what_the_verb_refuses(package: str, wanted: str, told: str) -> None:
    refused = CliRunner().invoke(app, ["log-level", "nowhere.properties", package, wanted])
    assert str(refused.exception).startswith(told)
