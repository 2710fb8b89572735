"""The `status` of a resource, in the format of Strimzi's operator.

A pure function of the observations of a turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sparkmirror import __version__
from sparkmirror.formats.connect_files import PACKAGE, ConnectorRole
from sparkmirror.formats.strimzi_status import TIME, failed_message
from sparkmirror.operator.names import Key, rest_url, selector

FAILED = "ConnectorsFailed"
"""Reason of a condition about failed connectors."""


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
    """Number of wanted pods."""
    ready: int = 0
    """Number of ready pods with the present settings."""
    running: Sequence[str] = field(default=())
    """Names of the connectors in the wanted state `running`."""
    connectors: Sequence[Mapping[str, Any]] | None = None
    """Connectors in the REST interface's answer; None if it was not asked."""
    trouble: ResourceTrouble | None = None
    """Reason why the turn ended early; None if it did not."""
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


def ready_pods(deployment: Mapping[str, Any]) -> int:
    """Return the number of ready pods of a Deployment's present template.

    Old pods, before their replacement by a rollout, don't count.
    """
    status, generation = deployment.get("status") or {}, (deployment.get("metadata") or {}).get("generation") or 0
    if int(status.get("observedGeneration") or 0) < int(generation):
        return 0
    old = int(status.get("replicas") or 0) - int(status.get("updatedReplicas") or 0)
    return max(0, int(status.get("readyReplicas") or 0) - old)


def why_not_ready(seen: SeenResource) -> ResourceTrouble | None:
    """Return the first cause why a resource is not ready; None if it is ready.

    None for a paused resource, too.
    """
    if seen.paused or seen.trouble is not None or not seen.wanted:
        return seen.trouble
    connectors = seen.connectors or ()
    if message := failed_message(connectors):
        return ResourceTrouble(FAILED, message)
    waiting = [f"{item['name']} is {state}" for item in connectors if (state := _waits(item, seen.running))]
    if waiting:
        return ResourceTrouble("ConnectorsNotRunning", "; ".join(waiting))
    if seen.ready < seen.wanted:
        return ResourceTrouble("PodsNotReady", f"{seen.ready} of {seen.wanted} pods are ready")
    return None


def _waits(connector: Mapping[str, Any], running: Sequence[str]) -> str:
    """Return the state of a wanted connector, with its trace's first line.

    Empty if the connector runs, or need not.
    """
    if connector.get("name") not in running:
        return ""
    parts = (connector.get("connector") or {}, *(connector.get("tasks") or ()))
    waiting = [part for part in parts if part.get("state") != "RUNNING"]
    if not waiting:
        return ""
    lines = str(waiting[0].get("trace") or "").splitlines()
    return str(waiting[0].get("state")) + (f": {lines[0]}" if lines else "")


def _conditions(seen: SeenResource) -> list[dict[str, Any]]:
    if seen.paused:
        return [_condition("ReconciliationPaused")]
    trouble = why_not_ready(seen)
    ready = _condition("NotReady", trouble) if trouble else _condition("Ready")
    return [ready, *(_condition("Warning", item) for item in dict.fromkeys(seen.warnings))]


def _condition(kind: str, trouble: ResourceTrouble | None = None) -> dict[str, Any]:
    told = {"reason": trouble.reason, "message": trouble.message} if trouble else {}
    return {"type": kind, "status": "True", **told}


def _said(condition: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the parts that a condition keeps its time with.

    A message may have changing figures.
    """
    told = ("type", "status", "reason") + (("message",) if condition.get("type") == "Warning" else ())
    return tuple(condition.get(name) for name in told)
