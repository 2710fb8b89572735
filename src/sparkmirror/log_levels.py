"""Levels of loggers by the names that Kafka has for them, and those that an operator sets while a mirror runs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping

from sparkmirror.events import Event

TRACE = 5
LEVELS = {
    "OFF": logging.CRITICAL + 10,
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": TRACE,
    "ALL": 1,
}
"""Those of Connect's `/admin/loggers`, log4j's."""

PACKAGES = ("sparkmirror", "kafka")
"""Whose levels an operator may set: what these log holds no passwords at any level."""

log = logging.getLogger(__name__)


def is_settable(package: str) -> bool:
    """Whether a logger is one of `PACKAGES`, or below."""
    return any(package == one or package.startswith(f"{one}.") for one in PACKAGES)


class AskedLevels:
    """The levels that flows' control topics ask for in this process; where two differ the flow named first wins."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: dict[str, dict[str, str]] = {}
        self._before: dict[str, int] = {}

    def follow(self, flow: str, levels: Mapping[str, str]) -> None:
        """Take what a flow's topic asks for now; what nobody asks for any more is as it was before."""
        with self._lock:
            if self._asked.get(flow, {}) == levels:
                return
            self._asked[flow] = dict(levels)
            wanted: dict[str, str] = {}
            for _, asked in sorted(self._asked.items(), reverse=True):
                wanted |= asked
            for package in sorted(self._before.keys() | wanted.keys()):
                self._set(package, wanted.get(package))

    def _set(self, package: str, level: str | None) -> None:
        logger = logging.getLogger(package)
        before = self._before.setdefault(package, logger.level)
        number = before if level is None else LEVELS[level]
        if logger.level != number:
            logger.setLevel(number)
            log.info("log level of %s: %s", package, level or "as before", extra=Event.LOG_LEVEL_CHANGED.extra)


asked_levels = AskedLevels()
"""Of this process: its loggers are, too."""
