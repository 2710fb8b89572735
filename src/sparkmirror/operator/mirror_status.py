"""A `Mirror`'s `status`: a pure function of a turn's observations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sparkmirror.config.formats.strimzi_status import TIME
from sparkmirror.mirror.engine.flow_health import first_reason, is_healthy
from sparkmirror.operator.names import Key, selector
from sparkmirror.operator.resource_status import SHARED, ResourceTrouble, TurnOutcome, too_few_ready
from sparkmirror.snapshot.snapshot import Flow, FlowState, Role

UNHEALTHY = "FlowUnhealthy"
"""Reason for a flow that runs and can't copy everything."""
_CALM = frozenset((SHARED, UNHEALTHY))
"""Reasons that do not end by themselves: turns need not hurry."""
_BEGINNING = frozenset((FlowState.STARTING, FlowState.FINDING_OUT, FlowState.ENDING))


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenMirror:
    """Observations on a `Mirror` in one turn."""

    key: Key
    generation: int
    replicas: int = 0
    """Number of existing pods."""
    wanted: int = 0
    """Number of wanted pods."""
    ready: int = 0
    """Number of ready pods with the present settings."""
    names: Sequence[str] = ()
    """Names of the file's flows; empty if the file was not read."""
    flows: Mapping[str, Flow] = field(default_factory=dict)
    """Flows as pods tell them."""
    trouble: ResourceTrouble | None = None
    """Reason why the turn ended early; None if it did not."""
    warnings: Sequence[ResourceTrouble] = field(default=())


def mirror_outcome(seen: SeenMirror, before: Mapping[str, Any], now: datetime | None = None) -> TurnOutcome:
    """Return a turn's outcome; `before` is the previous status."""
    trouble = why_mirror_not_ready(seen)
    calm = trouble is None or trouble.reason in _CALM
    return TurnOutcome(_status(seen, trouble, before, now or datetime.now(UTC)), trouble, calm)


def why_mirror_not_ready(seen: SeenMirror) -> ResourceTrouble | None:
    """Return the first cause why a Mirror is not ready; None if it is ready."""
    if seen.trouble is not None or not seen.wanted:
        return seen.trouble
    for name in seen.names:
        flow = seen.flows.get(name)
        if flow is None or flow.role is not Role.LEADER:
            words = f": {first_reason(flow)}" if flow is not None and first_reason(flow) else ""
            return ResourceTrouble("FlowsNotRunning", f"no pod works on {name} yet{words}")
        if not is_healthy(flow):
            reason = first_reason(flow)
            return ResourceTrouble(UNHEALTHY, f"{name} is {flow.state}" + (f": {reason}" if reason else ""))
        if flow.state in _BEGINNING:
            return ResourceTrouble("FlowsNotRunning", f"{name} is {flow.state}")
    return too_few_ready(seen.ready, seen.wanted)


def _status(
    seen: SeenMirror, trouble: ResourceTrouble | None, before: Mapping[str, Any], now: datetime
) -> dict[str, Any]:
    at = now.strftime(TIME)
    old = {
        (item["type"], item["status"]): item["lastTransitionTime"]
        for item in before.get("conditions") or ()
        if item.keys() >= {"type", "status", "lastTransitionTime"}
    }
    conditions = [
        {
            **item,
            "lastTransitionTime": old.get((item["type"], item["status"]), at),
            "observedGeneration": seen.generation,
        }
        for item in _conditions(seen, trouble)
    ]
    status: dict[str, Any] = {
        "conditions": conditions,
        "observedGeneration": seen.generation,
        "labelSelector": ",".join(f"{name}={value}" for name, value in selector(seen.key).items()),
        "replicas": seen.replicas,
    }
    known = [seen.flows[name] for name in seen.names or seen.flows if name in seen.flows]
    if not known:
        return status
    status["mirrors"] = [_row(flow) for flow in known]
    status["state"] = _worst(known).state.value
    lags = [flow.lag_s for flow in known if flow.lag_s is not None]
    return status | ({"lagSeconds": round(max(lags))} if lags else {})


def _conditions(seen: SeenMirror, trouble: ResourceTrouble | None) -> list[dict[str, Any]]:
    if trouble is not None:
        ready = _condition("Ready", "False", trouble)
    elif seen.wanted:
        ready = _condition("Ready", "True", ResourceTrouble("FlowsRunning", f"at work on {', '.join(seen.names)}"))
    else:
        ready = _condition("Ready", "True", ResourceTrouble("ScaledToZero", "no pod is asked for"))
    if not seen.warnings:
        return [ready]
    words = "; ".join(dict.fromkeys(item.message for item in seen.warnings))
    return [ready, _condition("Warning", "True", ResourceTrouble(seen.warnings[0].reason, words))]


def _condition(kind: str, status: str, trouble: ResourceTrouble) -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": trouble.reason, "message": trouble.message}


def _worst(flows: Sequence[Flow]) -> Flow:
    """Return the flow that an operator should look at first."""
    return max(flows, key=lambda flow: (not is_healthy(flow), flow.state in _BEGINNING, flow.lag_s or 0.0))


def _row(flow: Flow) -> dict[str, Any]:
    reason = first_reason(flow)
    told: dict[str, Any] = {"name": flow.flow, "state": flow.state.value}
    told |= {"lag": flow.lag} if flow.lag is not None else {}
    told |= {"lagSeconds": round(flow.lag_s)} if flow.lag_s is not None else {}
    return told | ({"reason": reason} if reason else {})
