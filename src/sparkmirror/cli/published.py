"""The published status of a flow, if it is new enough to be shown."""

from __future__ import annotations

from typing import Annotated

import typer

from sparkmirror.config import FlowConfig
from sparkmirror.engine.snapshot import Flow
from sparkmirror.engine.status_topic import Status
from sparkmirror.errors import ClusterUnreachable

Stale = Annotated[float, typer.Option("--stale", min=1.0, help="Seconds after which a published status is too old.")]


def fresh(flow: FlowConfig, status: Status, stale_s: float) -> tuple[Flow, float]:
    """Return the flow and the age of its status in seconds.

    Raises `ClusterUnreachable` if the status is missing or too old.
    """
    age_s = status.age_s()
    if status.flow is None or age_s is None:
        why = (
            "another version of sparkmirror published it; ask with the version that runs the mirror"
            if status.left_out
            else "no mirror has published it; is the mirror running?"
        )
        raise ClusterUnreachable(f"flow {flow.name}: its status is not known: {why}")
    if age_s > stale_s:
        raise ClusterUnreachable(
            f"flow {flow.name}: its last status is {age_s:,.0f} s old ({status.flow.state}); is the mirror running?"
        )
    return status.flow, age_s
