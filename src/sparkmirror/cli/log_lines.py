"""Log lines, one an event, as text or JSON.

Names come from clusters and clients, and must not write lines of their own.
"""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime

from sparkmirror.veil import VEIL

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")

_TALKS_OF_SETTINGS = "py4j"
"""Logger that prints settings, passwords among them.

Below INFO it prints all calls to the JVM, and these calls pass settings to Spark.
"""


def plain(text: str) -> str:
    """Return `text` in one line, control characters as in Python: `\\n`, `\\x1b`."""
    return _CONTROL.sub(lambda match: repr(match[0])[1:-1], text)


class PlainLines(logging.Filter):
    """Filter that lets all records through, each as one line.

    The lines of a traceback follow, indented.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Replace control characters in the record."""
        record.msg, record.args = plain(VEIL.over(record.getMessage())), None
        if record.exc_info:
            lines = VEIL.over(logging.Formatter().formatException(record.exc_info)).split("\n")
            record.exc_text = "\n".join(f"  {plain(line)}" for line in lines)
        return True


class NoSettings(logging.Filter):
    """Filter against lines that would hold settings, at every log level."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.INFO or record.name.partition(".")[0] != _TALKS_OF_SETTINGS


class TextLines(logging.Formatter):
    """Each record as one line: time, level, event and message.

    The event's name is in brackets, if there is one.
    """

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(told)s%(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        event = getattr(record, "event", None)
        record.told = f"[{event}] " if event is not None else ""
        return super().formatMessage(record)


class JsonLines(logging.Formatter):
    """Each record as one JSON object in one line.

    docs/logs.md lists its members.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its end.

        Characters beyond ASCII are escaped, so that no character in the line ends the line for any reader.
        """
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        members = {"time": at, "level": _level(record.levelno), "logger": record.name}
        event = getattr(record, "event", None)
        if event is not None:
            members["event"] = event
        members["message"] = VEIL.over(record.getMessage())
        if record.exc_info:
            members["exception"] = VEIL.over(self.formatException(record.exc_info))
        return json.dumps(members)


def _level(number: int) -> str:
    """Return Kafka's name of a level."""
    return {logging.WARNING: "WARN", logging.CRITICAL: "FATAL"}.get(number, logging.getLevelName(number))
