"""The `status` of a resource, in the format of Strimzi's operator.

A pure function of the observations of a turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sparkmirror import __version__
from sparkmirror.formats.connect_files import PACKAGE, ConnectorRole
from sparkmirror.formats.strimzi_status import FAILED_MESSAGE, TIME
from sparkmirror.operator.names import Key, rest_url, selector


class ResourceTrouble(NamedTuple):
    """Reason and message of a condition."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenResource:
    """Observations of a resource in one turn."""

    key: Key
    generation: int
    replicas: int = 0
    """Number of existing pods."""
    wanted: int = 0
    connectors: Sequence[Mapping[str, Any]] | None = None
    """Connectors in the REST interface's answer; None if it was not asked."""
    trouble: ResourceTrouble | None = None
    """Reason why the resource is not ready; None if it is."""
    warnings: Sequence[ResourceTrouble] = field(default=())
    restarts: Sequence[Mapping[str, Any]] | None = None
    """Restarts by `autoRestart`; None if the connectors' states are unknown."""
    paused: bool = False


def status_of(seen: SeenResource, before: Mapping[str, Any], now: datetime | None = None) -> dict[str, Any]:
    """Return the new status; `before` is the previous status.

    An unchanged condition keeps its time.
    """
    at = (now or datetime.now(UTC)).strftime(TIME)
    old = {_said(item): item.get("lastTransitionTime", at) for item in before.get("conditions") or ()}
    conditions = [{**item, "lastTransitionTime": old.get(_said(item), at)} for item in _conditions(seen)]
    if seen.paused:
        return {**before, "conditions": conditions, "observedGeneration": seen.generation}
    status: dict[str, Any] = {
        "conditions": conditions,
        "observedGeneration": seen.generation,
        "connectorPlugins": [
            {"class": PACKAGE + role.value, "type": "source", "version": __version__} for role in ConnectorRole
        ],
        "labelSelector": ",".join(f"{name}={value}" for name, value in selector(seen.key.name).items()),
        "replicas": seen.replicas,
    }
    connectors = seen.connectors if seen.connectors is not None else before.get("connectors") or []
    restarts = seen.restarts if seen.restarts is not None else before.get("autoRestartStatuses") or []
    if seen.wanted:
        status |= {"autoRestartStatuses": [dict(item) for item in restarts]} if restarts else {}
        return status | {"url": rest_url(seen.key), "connectors": [dict(item) for item in connectors]}
    return status | {"connectors": []}


def merge_patch(status: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the JSON merge patch from old to new status; None without a difference."""
    gone = dict.fromkeys((name for name in before if name not in status), None)
    changed = {name: value for name, value in status.items() if before.get(name) != value}
    return {"status": {**changed, **gone}} if changed or gone else None


def has_failed(connectors: Iterable[Mapping[str, Any]]) -> bool:
    """True if a connector, or one of its tasks, has failed."""
    states = [
        part.get("state") for item in connectors for part in (item.get("connector") or {}, *(item.get("tasks") or ()))
    ]
    return "FAILED" in states


def _conditions(seen: SeenResource) -> list[dict[str, Any]]:
    if seen.paused:
        return [_condition("ReconciliationPaused")]
    if seen.trouble is not None:
        ready = _condition("NotReady", seen.trouble)
    elif has_failed(seen.connectors or ()):
        ready = _condition("NotReady", ResourceTrouble("ConnectorsFailed", FAILED_MESSAGE))
    else:
        ready = _condition("Ready")
    return [ready, *(_condition("Warning", item) for item in dict.fromkeys(seen.warnings))]


def _condition(kind: str, trouble: ResourceTrouble | None = None) -> dict[str, Any]:
    told = {"reason": trouble.reason, "message": trouble.message} if trouble else {}
    return {"type": kind, "status": "True", **told}


def _said(condition: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(condition.get(name) for name in ("type", "status", "reason", "message"))
