"""Connectors' shapes in JSON: as users post them, and as Connect answers.

A bare map from keys to values (`PUT /connectors/x/config`), `{"name": …, "config": {…}}` (`POST /connectors`,
`GET /connectors/x`), a list of these, or all by their names (`GET /connectors?expand=info`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sparkmirror.errors import ConfigError

_EXPANDED = ("info", "status")
"""Keys below each name in the answer to `GET /connectors?expand=…`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Connector as it stands in JSON."""

    fields: dict[str, Any]
    """Fields next to the configuration; empty for a bare configuration."""
    config: dict[str, Any]
    start: int
    """The connector's start in the text."""
    config_start: int
    name: str = ""
    """Key above the connector; empty without such a key."""
    state: str = ""
    """State in the connector's status, as Connect tells it."""


def shapes(path: str, text: str, tree: Any) -> list[Shape]:
    """Return all connectors in a file; raise `ConfigError`."""
    if isinstance(tree, dict) and _is_expanded(tree):
        return list(_expanded(path, text, tree))
    return [_shape(path, text, item, start) for item, start in _each(text, tree)]


def spot(text: str, key: str, start: int) -> int:
    """Return where a key is: the first with its name that has a colon behind it.

    The search begins at `start`; without a match the place is `start`.
    """
    quoted = json.dumps(key, ensure_ascii=False)
    at = text.find(quoted, start)
    while at >= 0 and not text[at + len(quoted) :].lstrip().startswith(":"):
        at = text.find(quoted, at + 1)
    return max(at, start)


def _is_expanded(tree: dict[str, Any]) -> bool:
    return bool(tree) and all(isinstance(item, dict) and item and item.keys() <= {*_EXPANDED} for item in tree.values())


def _expanded(path: str, text: str, tree: dict[str, Any]) -> Iterator[Shape]:
    for name, answer in tree.items():
        start = spot(text, name, 0)
        if not isinstance(answer.get("info"), dict):
            raise ConfigError(
                "has no configurations: ask Connect with GET /connectors?expand=info&expand=status",
                origin=path,
                key=name,
            )
        shape = _shape(path, text, answer["info"], spot(text, "info", start))
        connector = (answer.get("status") or {}).get("connector") if isinstance(answer.get("status"), dict) else None
        state = str(connector.get("state") or "") if isinstance(connector, dict) else ""
        yield Shape(
            fields=shape.fields,
            config=shape.config,
            start=shape.start,
            config_start=shape.config_start,
            name=name,
            state=state,
        )


def _shape(path: str, text: str, item: Any, start: int) -> Shape:
    if isinstance(item, str):
        raise ConfigError(
            "holds connectors' names only: ask Connect with GET /connectors?expand=info&expand=status", origin=path
        )
    config = item.get("config", item) if isinstance(item, dict) else None
    if not isinstance(config, dict):
        raise ConfigError("is no connector's configuration: write a map of keys and values", origin=path)
    wrapped = config is not item
    return Shape(
        fields=item if wrapped else {},
        config=config,
        start=start,
        config_start=spot(text, "config", start) if wrapped else start,
    )


def _each(text: str, tree: Any) -> Iterator[tuple[Any, int]]:
    """Yield a list's items, or a single item, each with its start in the text."""
    if not isinstance(tree, list):
        yield tree, 0
        return
    at = text.index("[") + 1
    for item in tree:
        at += len(text[at:]) - len(text[at:].lstrip(", \t\r\n"))
        yield item, at
        at = json.JSONDecoder().raw_decode(text, at)[1]
