"""Requests to the REST interface that bring connectors to a plan's state."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from sparkmirror.operator.plan import WantedConnector

_HIDDEN = "[hidden]"
"""Value in the REST interface's answers for a secret in plain text."""
_VERBS = {"running": "resume", "paused": "pause", "stopped": "stop"}
_OTHER = frozenset(("RUNNING", "PAUSED", "STOPPED"))


@dataclass(frozen=True, slots=True)
class Call:
    """One request; `why` is the log line about it."""

    method: str
    path: str
    body: object = None
    why: str = ""


def connector_path(name: str, *more: str) -> str:
    """Return a connector's path, with further segments."""
    return "/".join(("/connectors", quote(name, safe=""), *more))


def config_digest(connector: WantedConnector) -> str:
    """Return a digest of the configuration, secrets included, that reveals no value."""
    return hashlib.sha256(json.dumps(connector.config, sort_keys=True).encode()).hexdigest()


def changes(
    wanted: Sequence[WantedConnector], there: Mapping[str, Mapping[str, Any]], put: Mapping[str, str]
) -> Iterator[Call]:
    """Yield the requests, in order, that turn the present connectors into the wanted.

    `there` is the answer to `/connectors?expand=info&expand=status`. `put` holds the digest of the configuration that
    this operator put last, by connector; without a digest, a configuration with hidden values is put once more.
    """
    names = {connector.name for connector in wanted}
    for name in there:
        if name not in names:
            yield Call("DELETE", connector_path(name), why=f"connector {name} is no longer asked for")
    for connector in wanted:
        name, seen = connector.name, there.get(connector.name)
        if seen is None:
            body = {"name": name, "config": dict(connector.config)}
            initial = {} if connector.state == "running" else {"initial_state": connector.state.upper()}
            yield Call("POST", "/connectors", {**body, **initial}, why=f"connector {name} is created")
            continue
        config = (seen.get("info") or {}).get("config") or {}
        if _differs(connector, config, put.get(name)):
            yield Call(
                "PUT", connector_path(name, "config"), dict(connector.config), why=f"connector {name} is changed"
            )
        state = ((seen.get("status") or {}).get("connector") or {}).get("state", "")
        if _must_move(state, connector.state):
            why = f"connector {name} is to be {connector.state}"
            yield Call("PUT", connector_path(name, _VERBS[connector.state]), why=why)


def _differs(connector: WantedConnector, config: Mapping[str, str], put: str | None) -> bool:
    shown = {key: value for key, value in config.items() if value != _HIDDEN and key != "name"}
    hidden = {key for key, value in config.items() if value == _HIDDEN}
    wanted = {key: value for key, value in connector.config.items() if key not in hidden and key != "name"}
    return shown != wanted or (bool(hidden) and put != config_digest(connector))


def _must_move(state: str, wanted: str) -> bool:
    """Tell whether a connector's state must be changed.

    A failed connector, or one in transition, is running as far as Connect's target state goes: only a pause or a stop
    is requested.
    """
    if state in _OTHER:
        return state != {"running": "RUNNING", "paused": "PAUSED", "stopped": "STOPPED"}[wanted]
    return wanted != "running"
