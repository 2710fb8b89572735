"""Python's loggers behind Connect's `/admin/loggers`, with its level names."""

from __future__ import annotations

import logging
import threading
import time

from sparkmirror.log_levels import LEVELS

_NAMES = {number: name for name, number in LEVELS.items()}
ROOT = "root"


class Loggers:
    """Reads and sets levels, and remembers when; takes effect at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._modified_ms: dict[str, int] = {}

    def all(self) -> dict[str, dict[str, object]]:
        """Those that are there, and the root, with the level that holds for each."""
        return {name: self._described(name) for name in sorted({ROOT, *_known()})}

    def one(self, name: str) -> dict[str, object] | None:
        """Its level, or that of its nearest parent that has one; None if there is no such logger."""
        return self._described(name) if name == ROOT or name in _known() else None

    def set(self, name: str, level: str) -> list[str]:
        """Set the level of a logger and of all below it; returns which were concerned."""
        number = LEVELS[level.upper()]
        with self._lock:
            if name == ROOT:
                concerned = sorted({ROOT, *_known()})
            else:
                concerned = sorted({name, *(known for known in _known() if known.startswith(name))})
            for one in concerned:
                if _get(one).getEffectiveLevel() != number or not _own_level(one):
                    _get(one).setLevel(number)
                    self._modified_ms[one] = int(time.time() * 1000)
            return concerned

    def _described(self, name: str) -> dict[str, object]:
        number = _get(name).getEffectiveLevel()
        return {"level": _NAMES.get(number, logging.getLevelName(number)), "last_modified": self._modified_ms.get(name)}


def _known() -> list[str]:
    return [name for name, one in list(logging.root.manager.loggerDict.items()) if isinstance(one, logging.Logger)]


def _get(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT else name)


def _own_level(name: str) -> int:
    return _get(name).level
