"""The live page's paths: the page itself, its events, the snapshot, the actions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.resources import files
from typing import Annotated, TypeVar

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.concurrency import run_in_threadpool

from sparkmirror.errors import ClusterUnreachable, ConfigError
from sparkmirror.look.page.controls import Controls
from sparkmirror.look.page.feed import MOST_VIEWERS, PERIOD_S, Feed, TooManyViewers
from sparkmirror.look.page.past import past
from sparkmirror.look.page.rows import RowKind, WantedRows
from sparkmirror.look.page.sentences import Tone
from sparkmirror.snapshot.history import STEP_S, FlowHistory
from sparkmirror.snapshot.snapshot import Snapshot
from sparkmirror.web.access import ENDING, from_our_page, on_loopback

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy: only the page's own files, no inline code, no frames."""

_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_MOST_BODY = 64 * 1024
_MOST_ROWS = 200


def _dot(color: str, shape: str = '<circle cx="14" cy="14" r="5"/>') -> str:
    return f'<g fill="{color}" stroke="#fff" stroke-width="1.2">{shape}</g>'


_DOTS = {
    Tone.BAD: _dot("#d11a22", '<rect x="9" y="9" width="10" height="10"/>'),
    Tone.WARNING: _dot("#e08600", '<path d="M14 8 19.5 19H8.5Z"/>'),
    Tone.UNKNOWN: _dot("#8250c4"),
    Tone.WORKING: _dot("#1d4ed8"),
    Tone.GOOD: _dot("#1a9a4d"),
    Tone.STANDBY: _dot("#8a93a1"),
}
"""Sign of a tone in the browser tab's icon: its shape tells it, too."""

Name = Annotated[str, Field(min_length=1, max_length=1000)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Topics(BaseModel):
    model_config = ConfigDict(extra="forbid")
    flow: Name
    topics: list[Name] = Field(default=[], max_length=100)


class _Throttle(BaseModel):
    model_config = ConfigDict(extra="forbid")
    flow: Name
    bytes_per_s: Rate | None
    backfill: Rate | None = None


Body = TypeVar("Body", bound=BaseModel)


def page_router(
    snapshots: Callable[[], Snapshot],
    controls: Controls | None = None,
    may_act: Callable[[Request], bool] = on_loopback,
    period_s: float = PERIOD_S,
    history: FlowHistory | None = None,
) -> APIRouter:
    """Return the live page's routes.

    Paths are `/`, `/assets/…`, `/events`, `/rows`, `/history`, `/snapshot`, and with `controls` the actions under
    `/actions/`. Without a `history` a flow has no past. All
    addresses in the page are relative, so the router may be included under a prefix. `may_act` is asked for each
    request, and decides whether the client may act; a server with authentication passes its own function.
    """
    router = APIRouter(include_in_schema=False)
    feed = Feed(snapshots, period_s)
    assets = {file.name: file.read_bytes() for file in files("sparkmirror.look.page").joinpath("assets").iterdir()}
    for tone in Tone:
        assets[f"icon-{tone.value}.svg"] = assets["icon.svg"].replace(b"</svg>", _DOTS[tone].encode() + b"</svg>")

    def asset(name: str) -> Response:
        if name not in assets:
            raise HTTPException(404)
        return Response(assets[name], media_type=_TYPES[name[name.rindex(".") :]], headers=_HEADERS)

    router.add_api_route("/", partial(asset, "page.html"), methods=["GET"])
    router.add_api_route("/assets/{name}", asset, methods=["GET"])

    @router.get("/snapshot")
    def snapshot() -> Response:
        return Response(snapshots().to_json(), media_type="application/json", headers=_HEADERS)

    @router.get("/events")
    async def events(request: Request, kind: RowKind | None = None, flow: str = "", of: str = "") -> Response:
        try:
            feed.check_room()
        except TooManyViewers:
            raise HTTPException(503, f"{MOST_VIEWERS} browsers watch already; close one") from None
        hello = {"may_act": controls is not None and may_act(request), "can_act": controls is not None}
        ending = request.scope.get(ENDING, lambda: False)
        stream = feed.watch(WantedRows(kind, flow, of) if kind is not None else None, hello, ending)
        return StreamingResponse(
            stream, media_type="text/event-stream", headers={**_HEADERS, "x-accel-buffering": "no"}
        )

    @router.get("/rows")
    async def rows(
        kind: RowKind, flow: str, numbers: Annotated[list[int], Query(max_length=_MOST_ROWS)], of: str = ""
    ) -> Response:
        return JSONResponse(await feed.rows(WantedRows(kind, flow, of), numbers), headers=_HEADERS)

    @router.get("/history")
    def flow_history(flow: str, since_s: int = 0) -> Response:
        samples = past(history.of(flow), since_s) if history is not None else []
        return JSONResponse({"step_s": STEP_S, "samples": samples}, headers=_HEADERS)

    if controls is not None:
        _add_actions(router, controls, may_act)
    return router


def _add_actions(router: APIRouter, controls: Controls, may_act: Callable[[Request], bool]) -> None:
    async def asked(request: Request, shape: type[Body]) -> Body:
        if not may_act(request):
            raise HTTPException(403, "look only: actions need a listener with authentication, or this machine itself")
        if not from_our_page(request):
            raise HTTPException(403, "this did not come from the page")
        try:
            return shape.model_validate_json(await _body(request))
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            raise HTTPException(400, f"{'.'.join(map(str, first['loc'])) or 'body'}: {first['msg']}") from None

    @router.post("/actions/pause")
    async def pause(request: Request) -> Response:
        body = await asked(request, _Topics)
        return await _done(partial(controls.pause, body.flow, body.topics))

    @router.post("/actions/resume")
    async def resume(request: Request) -> Response:
        body = await asked(request, _Topics)
        return await _done(partial(controls.resume, body.flow, body.topics))

    @router.post("/actions/throttle")
    async def throttle(request: Request) -> Response:
        body = await asked(request, _Throttle)
        return await _done(partial(controls.throttle, body.flow, body.bytes_per_s, body.backfill))


async def _done(act: Callable[[], str]) -> Response:
    try:
        return JSONResponse({"said": await run_in_threadpool(act)}, headers=_HEADERS)
    except ConfigError as error:
        raise HTTPException(400, str(error)) from None
    except ClusterUnreachable as error:
        raise HTTPException(503, str(error)) from None


async def _body(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BODY:
            raise HTTPException(413, f"more than {_MOST_BODY:,} bytes")
    return body
