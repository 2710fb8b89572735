"""Log levels by Kafka's names, and levels that an operator sets at run time."""

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
"""Levels of Connect's `/admin/loggers`, which are log4j's."""

PACKAGES = ("sparkmirror", "kafka")
"""Packages whose levels an operator may set.

These packages log no passwords at any level.
"""

log = logging.getLogger(__name__)


def is_settable(package: str) -> bool:
    """True if a logger is one of `PACKAGES`, or below one."""
    return any(package == settable or package.startswith(f"{settable}.") for settable in PACKAGES)


class AskedLevels:
    """Levels that the flows' control topics ask for in this process.

    If two flows differ, the first flow in alphabetical order wins.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: dict[str, dict[str, str]] = {}
        self._wanted: dict[str, str] = {}
        """Levels in effect, by package."""
        self._before: dict[str, int] = {}

    def follow(self, flow: str, levels: Mapping[str, str]) -> None:
        """Apply the levels that a flow's topic asks for now.

        A package for which no flow asks any more gets its former level back. Other packages stay as they are:
        `/admin/loggers` may have set them meanwhile.
        """
        with self._lock:
            if self._asked.get(flow, {}) == levels:
                return
            self._asked[flow] = dict(levels)
            wanted: dict[str, str] = {}
            for _, asked in sorted(self._asked.items(), reverse=True):
                wanted |= asked
            changed = {package for package, _ in self._wanted.items() ^ wanted.items()}
            self._wanted = wanted
            for package in sorted(changed):
                self._set(package, wanted.get(package))

    def _set(self, package: str, level: str | None) -> None:
        logger = logging.getLogger(package)
        if level is None:
            number = self._before.pop(package)
        else:
            self._before.setdefault(package, logger.level)
            number = LEVELS[level]
        if logger.level != number:
            logger.setLevel(number)
            log.info("log level of %s: %s", package, level or "as before", extra=Event.LOG_LEVEL_CHANGED.extra)


asked_levels = AskedLevels()
"""Levels of this process, because loggers belong to the process."""
