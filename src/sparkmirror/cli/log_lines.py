"""Log lines, one an event, as text or JSON.

Names come from clusters and clients, and must not write lines of their own.
"""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")

_TALKS_OF_SETTINGS = "py4j"
"""It prints what is said to the JVM below INFO, and Spark is told settings, passwords among them."""


def plain(text: str) -> str:
    """`text` in one line, with control characters as Python writes them: `\\n`, `\\x1b`."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


class PlainLines(logging.Filter):
    """A filter that lets all records through, each as one line; what follows of a traceback is indented."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Take out what is no text."""
        record.msg, record.args = plain(record.getMessage()), None
        if record.exc_info:
            lines = logging.Formatter().formatException(record.exc_info).split("\n")
            record.exc_text = "\n".join(f"  {plain(line)}" for line in lines)
        return True


class NoSettings(logging.Filter):
    """A filter against lines that would hold settings, whatever level somebody sets."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether the line can be shown."""
        return record.levelno >= logging.INFO or record.name.partition(".")[0] != _TALKS_OF_SETTINGS


class TextLines(logging.Formatter):
    """Each record as one line: time, level, its event's name in brackets if it has one, and the message."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(told)s%(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        event = getattr(record, "event", None)
        record.told = f"[{event}] " if event is not None else ""
        return super().formatMessage(record)


class JsonLines(logging.Formatter):
    """Each record as one JSON object in one line; docs/logs.md has its members."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end; what is not ASCII is escaped, so that nothing in it ends a line for anybody."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        members = {"time": at, "level": _level(record.levelno), "logger": record.name}
        event = getattr(record, "event", None)
        if event is not None:
            members["event"] = event
        members["message"] = record.getMessage()
        if record.exc_info:
            members["exception"] = self.formatException(record.exc_info)
        return json.dumps(members)


def _level(number: int) -> str:
    """Kafka's name of it."""
    return {logging.WARNING: "WARN", logging.CRITICAL: "FATAL"}.get(number, logging.getLevelName(number))
