"""Logs as JSON: one object a line, whatever is logged, and nothing in it that nobody may read."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.in_process import own_log, sparkmirror

from sparkmirror.cli.log_lines import JsonLines, NoSettings, TextLines
from sparkmirror.config import load_mm2_properties
from sparkmirror.connect.worker_properties import read_worker_properties
from sparkmirror.errors import ConfigError
from sparkmirror.events import Event
from sparkmirror.mirror.engine.jvm_output import relay
from sparkmirror.task_lines import TaskLines, log_again

SPARKMIRROR = str(Path(sys.executable).with_name("sparkmirror"))
FILE = """\
clusters = A, B
A.bootstrap.servers = 127.0.0.1:1
B.bootstrap.servers = 127.0.0.1:1
A->B.enabled = true
A->B.strange = 1
admin.timeout.ms = 1000
"""
"""No broker answers there, so the admin clients give up soon."""
WORKER = """\
bootstrap.servers = 127.0.0.1:1
group.id = g
config.storage.topic = c
offset.storage.topic = o
status.storage.topic = s
key.converter = org.apache.kafka.connect.converters.ByteArrayConverter
value.converter = org.apache.kafka.connect.converters.ByteArrayConverter
"""


def run(tmp_path: Path, text: str, *options: str, verb: str = "run") -> tuple[int, list[str]]:
    """The exit code, and the lines of standard error."""
    file = tmp_path / "mm2.properties"
    file.write_text(text)
    with own_log():
        ended = sparkmirror(verb, str(file), *options)
    return ended.returncode, ended.stderr.splitlines()


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What our loggers write as JSON, from DEBUG on."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    handler.addFilter(NoSettings())
    loggers = [logging.getLogger(name) for name in ("sparkmirror", "py4j")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
    yield stream
    for logger, level in zip(loggers, levels, strict=True):
        logger.removeHandler(handler)
        logger.setLevel(level)


def formatted(message: str, **members: object) -> str:
    record = logging.makeLogRecord({"name": "sparkmirror.x", "levelno": logging.WARNING, "msg": message, **members})
    return JsonLines().format(record)


@given(st.text())
def test_any_text_is_one_line_and_comes_back(text: str) -> None:
    line = formatted("%s", args=(text,))
    assert len(line.splitlines()) == 1
    assert line.isascii()
    found = json.loads(line)
    assert found["message"] == text
    assert found["level"] == "WARN"
    assert "event" not in found


def test_members(written: io.StringIO) -> None:
    try:
        raise ValueError("no")
    except ValueError:
        logging.getLogger("sparkmirror.x").exception("failed", extra=Event.DUTY_FAILED.extra)
    found = json.loads(written.getvalue())
    assert list(found) == ["time", "level", "logger", "event", "message", "exception"]
    assert (found["level"], found["logger"], found["event"]) == ("ERROR", "sparkmirror.x", "duty-failed")
    assert found["exception"].endswith("ValueError: no")
    assert found["time"].endswith("Z")


def test_what_spark_is_told_is_never_shown(written: io.StringIO) -> None:
    logging.getLogger("py4j.java_gateway").debug("Command to send: spark.authenticate.secret hunter2")
    logging.getLogger("py4j.java_gateway").warning("gone")
    assert [json.loads(line)["message"] for line in written.getvalue().splitlines()] == ["gone"]


def test_what_the_jvm_prints(written: io.StringIO) -> None:
    """A line of its own is an event; one that a task has logged is what it was there."""
    task = logging.makeLogRecord(
        {"name": "sparkmirror.pump.pump", "levelno": 30, "levelname": "WARNING", "msg": "A->B: ended"}
        | Event.PUMP_ENDED_EARLY.extra
    )
    descriptor = relay()
    with os.fdopen(descriptor, "w") as jvm:
        jvm.write("22:10:00 spark ERROR Task: lost\n\nSetting default log level to ERROR\n")
        jvm.write(TaskLines().format(task) + "\n")
    deadline = 100
    while written.getvalue().count("\n") < 2 and deadline:
        deadline -= 1
        time.sleep(0.05)
    spark, pump = map(json.loads, written.getvalue().splitlines())
    assert (spark["logger"], spark["event"]) == ("sparkmirror.spark", "spark-output")
    assert (pump["logger"], pump["event"], pump["message"]) == (
        "sparkmirror.pump.pump",
        "pump-ended-early",
        "A->B: ended",
    )


class Kept(logging.Handler):
    """Keeps what is logged."""

    def __init__(self, seen: list[logging.LogRecord]) -> None:
        super().__init__()
        self._seen = seen

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self._seen.append(record)


def test_a_line_of_text_names_its_event() -> None:
    def line(**members: object) -> str:
        record = logging.makeLogRecord({"levelname": "INFO", "msg": "lease held", **members})
        return TextLines().format(record).split(" ", 2)[2]

    assert line(event=Event.LEASE_HELD) == "INFO [lease-held] lease held"
    assert line() == "INFO lease held"


@given(st.text(), st.sampled_from([None, *Event]), st.sampled_from(["DEBUG", "INFO", "WARNING", "ERROR"]))
def test_a_tasks_line_comes_through(text: str, event: Event | None, level: str) -> None:
    members: dict[str, object] = {"name": "sparkmirror.tasks.test", "levelname": level, "msg": "%s", "args": (text,)}
    members |= event.extra if event else {}
    line = TaskLines().format(logging.makeLogRecord(members))
    seen: list[logging.LogRecord] = []
    logger = logging.getLogger("sparkmirror.tasks.test")
    logger.setLevel(logging.DEBUG)
    handler = Kept(seen)
    logger.addHandler(handler)
    try:
        assert log_again(line)
    finally:
        logger.removeHandler(handler)
    (record,) = seen
    assert (record.levelname, getattr(record, "event", None)) == (level, event)
    assert record.getMessage() == text.replace("\r", "\\r").replace("\n", "\\n")


@pytest.mark.parametrize("line", ["", "WARNING kafka.x: no", "22:00:00 spark ERROR x: y", "INFO sparkmirrorx", "x\n"])
def test_other_lines_are_none_of_a_tasks(line: str) -> None:
    assert not log_again(line)


def test_an_unreachable_cluster_as_json(tmp_path: Path) -> None:
    """All that a process writes to standard error is JSON: the warning about the file, and why it ends."""
    file = tmp_path / "mm2.properties"
    file.write_text(FILE + "sparkmirror.log.format = json\nA.sasl.jaas.config = hunter2\n")
    command = [SPARKMIRROR, "run", str(file), "--no-lease"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    lines = ended.stderr.splitlines()
    found = [json.loads(line) for line in lines]
    assert ended.returncode == 3, lines
    assert {one["event"] for one in found} >= {"config-warning", "fatal"}
    assert any("strange" in one["message"] for one in found if one["event"] == "config-warning")
    assert "hunter2" not in "".join(lines)


def test_the_option_counts_before_the_file(tmp_path: Path) -> None:
    code, lines = run(tmp_path, FILE + "sparkmirror.log.format = json\n", "--log-format", "text")
    assert code == 3
    assert lines[-1].startswith("sparkmirror: ")
    code, lines = run(tmp_path, "clusters = A\n", "--log-format", "json")
    assert code == 2
    assert [json.loads(line)["event"] for line in lines] == ["fatal"]


def test_verify_logs_as_the_file_or_the_option_says(tmp_path: Path) -> None:
    late = ("--from-time", "yesterday")
    for text, options in ((FILE + "sparkmirror.log.format = json\n", late), (FILE, (*late, "--log-format", "json"))):
        code, lines = run(tmp_path, text, *options, verb="verify")
        assert (code, [json.loads(line)["event"] for line in lines]) == (2, ["config-warning", "fatal"])


def test_the_offset_sync_app_logs_as_json(tmp_path: Path) -> None:
    file = tmp_path / "consumer.properties"
    file.write_text("bootstrap.servers = 127.0.0.1:1\n")
    with own_log():
        ended = sparkmirror("sync-groups", "-src", "A", "-pfp", str(file), "--runFor", "1", "--log-format", "json")
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    assert ended.returncode == 0
    assert [one["event"] for one in lines if one["level"] != "INFO"] == ["group-sync-failed"]


def test_the_key_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(FILE)
    assert load_mm2_properties(str(file)).log_format == "text"
    file.write_text(FILE + "sparkmirror.log.format = json\n")
    config = load_mm2_properties(str(file))
    assert config.log_format == "json"
    assert not [line for line in config.warnings if "log.format" in line]
    file.write_text(FILE + "sparkmirror.log.format = xml\n")
    with pytest.raises(ConfigError, match="'xml' is not allowed, it must be text or json"):
        load_mm2_properties(str(file))


def test_the_key_of_a_workers_file(tmp_path: Path) -> None:
    file = tmp_path / "worker.properties"
    file.write_text(WORKER)
    assert read_worker_properties(str(file)).log_format == "text"
    file.write_text(WORKER + "sparkmirror.log.format = json\n")
    config = read_worker_properties(str(file))
    assert config.log_format == "json"
    assert not [line for line in config.warnings if "log.format" in line]
    assert "sparkmirror.log.format" not in config.for_connectors
    file.write_text(WORKER + "sparkmirror.log.format = xml\n")
    with pytest.raises(ConfigError, match="must be text or json"):
        read_worker_properties(str(file))
