"""Which of a source topic's properties its remote topic is created with.

MirrorMaker 2's `targetConfig(incremental=false)` with its default property filter (`mm2.md` 1.5, 3.2).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from sparkmirror.cluster.admin import ConfigEntry
from sparkmirror.config.model import DEFAULT_CONFIG_EXCLUDE

LEFT_TO_THE_TARGET = frozenset({"DEFAULT_CONFIG", "STATIC_BROKER_CONFIG"})


def creation_configs(entries: Iterable[ConfigEntry], exclude: Iterable[str] = DEFAULT_CONFIG_EXCLUDE) -> dict[str, str]:
    """Return the properties that someone set: for the topic, or for the source's brokers while they ran."""
    excluded = re.compile("|".join(f"(?:{pattern})" for pattern in exclude) or r"(?!)")
    return {
        entry.name: entry.value
        for entry in entries
        if entry.value is not None
        and entry.source not in LEFT_TO_THE_TARGET
        and not entry.read_only
        and not entry.sensitive
        and not excluded.fullmatch(entry.name)
    }
