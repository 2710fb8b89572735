"""Output from Spark's JVM, without meaningless lines.

A live view shares the terminal with the JVM.
"""

from __future__ import annotations

import logging
import os
import threading

from sparkmirror.events import Event
from sparkmirror.task_lines import log_again

_CHATTER = (
    "WARNING: Using incubator modules",
    "Setting default log level",
    "To adjust logging level",
    "Setting Spark log level",
    "Using Spark's default log4j profile",
)

log = logging.getLogger("sparkmirror.spark")


def relay() -> int:
    """Return a file descriptor for a child's standard error.

    Each line from the child becomes a warning in our log. Lines logged by a task keep the task's level and event. The
    caller closes the descriptor once the child has started.
    """
    reading, writing = os.pipe()
    threading.Thread(target=_read, args=(reading,), name="spark's output", daemon=True).start()
    return writing


def _read(descriptor: int) -> None:
    with os.fdopen(descriptor, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.strip() and not line.startswith(_CHATTER) and not log_again(line.rstrip()):
                log.warning("%s", line.rstrip(), extra=Event.SPARK_OUTPUT.extra)
