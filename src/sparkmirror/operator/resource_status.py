"""A resource's `status`, in the format of Strimzi's operator.

A pure function of a turn's observations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sparkmirror import __version__
from sparkmirror.config.formats.connect_files import PACKAGE, ConnectorRole
from sparkmirror.config.formats.strimzi_status import TIME, failed_message
from sparkmirror.operator.names import Key, rest_url, selector
from sparkmirror.operator.peers import Sharing

FAILED = "ConnectorsFailed"
"""Reason in a condition about failed connectors."""
NO_EFFECT = "NoEffect"
"""Reason in a warning about a field that has no effect here."""
SHARED = "GroupShared"
"""Reason in a condition about another resource with the same names."""
_CALM = frozenset((NO_EFFECT, SHARED, FAILED))
"""Reasons that do not end by themselves: turns need not hurry."""


class ResourceTrouble(NamedTuple):
    """A condition's reason and message."""

    reason: str
    message: str


class TurnOutcome(NamedTuple):
    """Status after a turn, and the cause why the resource is not ready."""

    status: dict[str, Any]
    trouble: ResourceTrouble | None
    calm: bool
    """True if the next turn may come after the long pause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenResource:
    """Observations on a resource in one turn."""

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


def held_trouble(sharing: Sharing) -> ResourceTrouble:
    """Return the trouble of a resource held because of an older resource."""
    words = f"{sharing.earlier}, and was created first: this resource is held until it has names of its own"
    return ResourceTrouble(SHARED, words)


def holding_warnings(sharing: Sharing) -> list[ResourceTrouble]:
    """Return the warnings about younger resources that are held."""
    return [ResourceTrouble(SHARED, f"{words}, and is held until it has names of its own") for words in sharing.later]


def outcome_of(seen: SeenResource, before: Mapping[str, Any]) -> TurnOutcome:
    """Return a turn's outcome; `before` is the previous status."""
    trouble = why_not_ready(seen)
    told = (*seen.warnings, *([trouble] if trouble else ()))
    return TurnOutcome(status_of(seen, before), trouble, all(item.reason in _CALM for item in told))


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
        "labelSelector": ",".join(f"{name}={value}" for name, value in selector(seen.key).items()),
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
    return too_few_ready(seen.ready, seen.wanted)


def too_few_ready(ready: int, wanted: int) -> ResourceTrouble | None:
    """Return the trouble with too few ready pods, or None."""
    return ResourceTrouble("PodsNotReady", f"{ready} of {wanted} pods are ready") if ready < wanted else None


def _waits(connector: Mapping[str, Any], running: Sequence[str]) -> str:
    """Return a wanted connector's state, with its trace's first line.

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
