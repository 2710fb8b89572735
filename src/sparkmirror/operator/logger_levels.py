"""Levels for the REST interface's `/admin/loggers`, from a resource's `logging`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sparkmirror.log_levels import LEVELS

_OLD = re.compile(r"(?:log4j\.(?P<root>rootLogger)|log4j\.logger\.(?P<name>[\w.]+))")
_OURS = re.compile(r"sparkmirror(\.\w+)*")


def wanted_levels(loggers: Mapping[str, Any]) -> dict[str, str]:
    """Return each sparkmirror logger's level.

    Reads keys of log4j2 and of log4j; the root logger stands for `sparkmirror`, and other programs' loggers are left
    out. A log4j2 logger has its name and its level in two keys, `logger.ID.name` and `logger.ID.level`.
    """
    levels: dict[str, str] = {}
    for key, value in loggers.items():
        level = str(value).partition(",")[0].strip().upper()
        if key in ("rootLogger", "rootLogger.level"):
            levels["root"] = level
        elif old := _OLD.fullmatch(key):
            levels["root" if old["root"] else old["name"]] = level
        elif (name := re.fullmatch(r"logger\.(.+)\.level", key)) is not None:
            levels[str(loggers.get(f"logger.{name[1]}.name", name[1])).strip()] = level
    ours = {("sparkmirror" if name == "root" else name): level for name, level in levels.items()}
    return {name: ours[name] for name in sorted(ours) if ours[name] in LEVELS and _OURS.fullmatch(name)}
