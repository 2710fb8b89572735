"""The shapes of JSON in which people have connectors: as they post them, and as Connect answers.

A bare map of keys and values (`PUT /connectors/x/config`), `{"name": …, "config": {…}}` (`POST /connectors`,
`GET /connectors/x`), a list of these, or all by their names (`GET /connectors?expand=info`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sparkmirror.errors import ConfigError

_EXPANDED = ("info", "status")
"""What `GET /connectors?expand=…` has below each name."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One connector as it stands in JSON."""

    fields: dict[str, Any]
    """What stands beside the configuration; nothing if it is bare."""
    config: dict[str, Any]
    start: int
    """Where it begins in the text."""
    config_start: int
    name: str = ""
    """The key that it stands under, if it stands under one."""
    state: str = ""
    """As Connect tells it, in its status."""


def shapes(path: str, text: str, tree: Any) -> list[Shape]:
    """All connectors of one file. Raises `ConfigError`."""
    if isinstance(tree, dict) and _is_expanded(tree):
        return list(_expanded(path, text, tree))
    return [_shape(path, text, one, start) for one, start in _each(text, tree)]


def spot(text: str, key: str, start: int) -> int:
    """Where a key stands, behind `start`: the first of its name with a colon behind it."""
    quoted = json.dumps(key, ensure_ascii=False)
    at = text.find(quoted, start)
    while at >= 0 and not text[at + len(quoted) :].lstrip().startswith(":"):
        at = text.find(quoted, at + 1)
    return max(at, start)


def _is_expanded(tree: dict[str, Any]) -> bool:
    return bool(tree) and all(isinstance(one, dict) and one and one.keys() <= {*_EXPANDED} for one in tree.values())


def _expanded(path: str, text: str, tree: dict[str, Any]) -> Iterator[Shape]:
    for name, one in tree.items():
        start = spot(text, name, 0)
        if not isinstance(one.get("info"), dict):
            raise ConfigError(
                "has no configurations: ask Connect with GET /connectors?expand=info&expand=status",
                where=path,
                key=name,
            )
        shape = _shape(path, text, one["info"], spot(text, "info", start))
        connector = (one.get("status") or {}).get("connector") if isinstance(one.get("status"), dict) else None
        state = str(connector.get("state") or "") if isinstance(connector, dict) else ""
        yield Shape(shape.fields, shape.config, shape.start, shape.config_start, name, state)


def _shape(path: str, text: str, one: Any, start: int) -> Shape:
    if isinstance(one, str):
        raise ConfigError(
            "holds connectors' names only: ask Connect with GET /connectors?expand=info&expand=status", where=path
        )
    config = one.get("config", one) if isinstance(one, dict) else None
    if not isinstance(config, dict):
        raise ConfigError("is no connector's configuration: write a map of keys and values", where=path)
    wrapped = config is not one
    return Shape(one if wrapped else {}, config, start, spot(text, "config", start) if wrapped else start)


def _each(text: str, tree: Any) -> Iterator[tuple[Any, int]]:
    """The items of a list, or the one that is there, and where each begins."""
    if not isinstance(tree, list):
        yield tree, 0
        return
    at = text.index("[") + 1
    for one in tree:
        at += len(text[at:]) - len(text[at:].lstrip(", \t\r\n"))
        yield one, at
        at = json.JSONDecoder().raw_decode(text, at)[1]
