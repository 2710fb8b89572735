"""The HTTP application of a running mirror: metrics, health, and what else is given to it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence

from fastapi import APIRouter, FastAPI, Response

from sparkmirror.engine.snapshot import FlowState, Snapshot
from sparkmirror.events import Event
from sparkmirror.metrics.collector import MirrorCollector
from sparkmirror.metrics.profile import Profile
from sparkmirror.metrics.series import CONTENT_TYPE

log = logging.getLogger(__name__)

STALLED_S = 300.0
"""A control loop that has not turned for so long is taken for stuck: what may hold it up has shorter timeouts."""

_NOT_READY = (FlowState.JOINING, FlowState.STARTING, FlowState.ENDING)


def metrics_router(snapshots: Callable[[], Snapshot], profiles: Collection[Profile] = ()) -> APIRouter:
    """`/metrics` alone, for a listener that has more to answer."""
    router = APIRouter()
    collector = MirrorCollector(snapshots, profiles)

    @router.get("/metrics")
    def metrics() -> Response:
        try:
            return Response(collector.text(), media_type=CONTENT_TYPE)
        except Exception:  # old figures would look like new ones; an error is what Prometheus shows as `up == 0`
            log.exception("the figures can't be told", extra=Event.REQUEST_FAILED.extra)
            return Response("the figures can't be told: the log says why\n", 500, media_type="text/plain")

    return router


def build_app(
    snapshots: Callable[[], Snapshot],
    profiles: Collection[Profile] = (),
    routers: Sequence[APIRouter] = (),
    tick_age_s: Callable[[], float] = lambda: 0.0,
) -> FastAPI:
    """`/metrics`, `/health`, `/ready` and the routers' paths; `tick_age_s` tells when the control loop turned last."""
    app = FastAPI(title="sparkmirror", docs_url=None, redoc_url=None, openapi_url=None)
    app.include_router(metrics_router(snapshots, profiles))

    @app.get("/health")
    def health(response: Response) -> dict[str, str]:
        """Whether the process answers and its control loop turns; 503 if that has stood still for `STALLED_S`."""
        stalled = tick_age_s() > STALLED_S
        response.status_code = 503 if stalled else 200
        return {"status": "stalled" if stalled else "alive"}

    @app.get("/ready")
    def ready(response: Response) -> dict[str, object]:
        """Whether each flow is worked on here, or stood by for; 503 until then."""
        waiting = [flow.flow for flow in snapshots().flows if flow.state in _NOT_READY]
        response.status_code = 503 if waiting else 200
        return {"status": "waiting" if waiting else "ready", "flows": waiting}

    for router in routers:
        app.include_router(router)
    return app
