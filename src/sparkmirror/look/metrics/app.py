"""A running mirror's HTTP application: metrics, health, and given routers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence

from fastapi import APIRouter, FastAPI, Response

from sparkmirror.events import Event
from sparkmirror.look.metrics.collector import MirrorCollector
from sparkmirror.look.metrics.profile import Profile
from sparkmirror.snapshot.snapshot import Flow, FlowState, Role, Snapshot
from sparkmirror.web.series import CONTENT_TYPE

log = logging.getLogger(__name__)

STALLED_S = 300.0
"""Seconds without a turn after which the control loop counts as stuck.

All calls that may delay the loop have shorter timeouts.
"""

_NOT_READY = (
    FlowState.WRONG_CLUSTER,
    FlowState.JOINING,
    FlowState.STARTING,
    FlowState.ENDING,
    FlowState.UNREACHABLE,
)


def metrics_router(snapshots: Callable[[], Snapshot], profiles: Collection[Profile] = ()) -> APIRouter:
    """Return a router for `/metrics` alone, for a listener with further paths."""
    router = APIRouter()
    collector = MirrorCollector(snapshots, profiles)

    @router.get("/metrics")
    def metrics() -> Response:
        try:
            return Response(collector.text(), media_type=CONTENT_TYPE)
        except Exception:  # old figures would look new; Prometheus shows an error as `up == 0`
            log.exception("the figures can't be gathered", extra=Event.REQUEST_FAILED.extra)
            return Response("the figures can't be gathered: the log says why\n", 500, media_type="text/plain")

    return router


def app_of(routers: Mapping[str, APIRouter]) -> FastAPI:
    """Build an application from routers by their prefix, without health."""
    app = _bare()
    for prefix, router in routers.items():
        app.include_router(router, prefix=prefix)
    return app


def build_app(
    snapshots: Callable[[], Snapshot],
    profiles: Collection[Profile] = (),
    routers: Sequence[APIRouter] = (),
    tick_age_s: Callable[[], float] = lambda: 0.0,
) -> FastAPI:
    """Build the application: `/metrics`, `/health`, `/ready` and the routers' paths.

    `tick_age_s` returns the seconds since the control loop's last turn.
    """
    app = _bare()
    app.include_router(metrics_router(snapshots, profiles))

    @app.get("/health")
    def health(response: Response) -> dict[str, str]:
        """Report that the process answers and its control loop turns.

        Answers 503 if the loop has stood still for `STALLED_S`. An unreachable cluster does not count: a new
        process could not reach the cluster either.
        """
        stalled = tick_age_s() > STALLED_S
        response.status_code = 503 if stalled else 200
        return {"status": "stalled" if stalled else "alive"}

    @app.get("/ready")
    def ready(response: Response) -> dict[str, object]:
        """Report that the mirror works on each flow, or stands by.

        Answers 503 until then, and while a cluster does not answer.
        """
        waiting = [flow.flow for flow in snapshots().flows if _waits(flow)]
        response.status_code = 503 if waiting else 200
        return {"status": "waiting" if waiting else "ready", "flows": waiting}

    for router in routers:
        app.include_router(router)
    return app


def _bare() -> FastAPI:
    return FastAPI(title="sparkmirror", docs_url=None, redoc_url=None, openapi_url=None)


def _waits(flow: Flow) -> bool:
    """Tell whether a flow has neither a worker nor a standby here.

    A process without access to the lease or to a cluster would not take over.
    """
    refused = flow.state is FlowState.STANDING_BY and flow.role is Role.JOINING
    return refused or flow.state in _NOT_READY or bool(flow.source.away or flow.target.away)
