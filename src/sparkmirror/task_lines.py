"""Log lines on their way from a Spark task's process to the driver's log.

The lines pass through the process's standard error and the JVM.
"""

from __future__ import annotations

import logging
import re

_LINE = re.compile(r"(DEBUG|INFO|WARNING|ERROR|CRITICAL) (sparkmirror[\w.]*)(?: \[([a-z-]+)\])?: (.*)")


class TaskLines(logging.Formatter):
    """Format of a line: level, logger, event and message; a traceback follows."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line without its line end."""
        event = f" [{record.event}]" if hasattr(record, "event") else ""
        message = record.getMessage().replace("\r", "\\r").replace("\n", "\\n")
        line = f"{record.levelname} {record.name}{event}: {message}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def set_up_task_logging() -> None:
    """Log to standard error, unless this process logs already.

    Logs warnings and worse, unless a level is set for more.
    """
    if not logging.root.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(TaskLines())
        logging.root.addHandler(handler)


def log_again(line: str) -> bool:
    """Log a task's line in this process as the task has logged it.

    Returns False for any other line.
    """
    match = _LINE.fullmatch(line)
    if match is None:
        return False
    level, name, event, message = match.groups()
    extra = {"event": event} if event else None
    logging.getLogger(name).log(logging.getLevelNamesMapping()[level], "%s", message, extra=extra)
    return True
