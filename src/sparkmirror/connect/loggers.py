"""Python's loggers behind Connect's `/admin/loggers`, with its level names."""

from __future__ import annotations

import logging
import threading
import time

from sparkmirror.log_levels import LEVELS

_NAMES = {number: name for name, number in LEVELS.items()}
ROOT = "root"
MOST_NEW, LONGEST = 100, 200
"""Limits for names that no logger has: how many, and how many characters each.

Python never forgets a logger, and makes one for each part in the name.
"""


class Loggers:
    """Levels of the process's loggers, and the times of their changes.

    A change takes effect at once.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._modified_ms: dict[str, int] = {}
        self._made = 0

    def all(self) -> dict[str, dict[str, object]]:
        """Return all existing loggers' effective levels and the root's."""
        return {name: self._described(name) for name in sorted({ROOT, *_known()})}

    def one(self, name: str) -> dict[str, object] | None:
        """Return a logger's effective level; None if the logger does not exist.

        The effective level is the logger's own, or its nearest parent's that has a level.
        """
        return self._described(name) if name == ROOT or name in _known() else None

    def admit(self, name: str) -> bool:
        """Make the logger if there is none; return False beyond the limits."""
        with self._lock:
            if name == ROOT or name in _known():
                return True
            if self._made >= MOST_NEW or len(name) > LONGEST:
                return False
            self._made += 1
            logging.getLogger(name)
            return True

    def set(self, name: str, level: str) -> list[str]:
        """Set the level for a logger and all below; return their names.

        Without effect for a name that `admit` refuses, as the topic may hold.
        """
        if not self.admit(name):
            return []
        number = LEVELS[level.upper()]
        with self._lock:
            if name == ROOT:
                concerned = sorted({ROOT, *_known()})
            else:
                concerned = sorted({name, *(existing for existing in _known() if existing.startswith(name))})
            for logger_name in concerned:
                if _get(logger_name).getEffectiveLevel() != number or not _own_level(logger_name):
                    _get(logger_name).setLevel(number)
                    self._modified_ms[logger_name] = int(time.time() * 1000)
            return concerned

    def _described(self, name: str) -> dict[str, object]:
        number = _get(name).getEffectiveLevel()
        return {"level": _NAMES.get(number, logging.getLevelName(number)), "last_modified": self._modified_ms.get(name)}


def _known() -> list[str]:
    return [
        name for name, logger in list(logging.root.manager.loggerDict.items()) if isinstance(logger, logging.Logger)
    ]


def _get(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT else name)


def _own_level(name: str) -> int:
    return _get(name).level
