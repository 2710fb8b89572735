"""Paths of Connect's REST interface, each a few lines over the herder."""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any
from urllib.parse import quote, unquote

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import Scope

from sparkmirror.connect.bodies import check_name, read_creation, read_offsets, read_settings, with_name
from sparkmirror.connect.cluster_requests import MOST_OF_ONE, ClusterRequests
from sparkmirror.connect.connector_model import ConnectorStatus, TargetState, TaskStatus
from sparkmirror.connect.errors import RestError, bad_request, not_found
from sparkmirror.connect.herder import Herder
from sparkmirror.connect.loggers import LONGEST, MOST_NEW, Loggers
from sparkmirror.connect.plugin_versions import ANY_VERSION, InvalidRange, VersionRange
from sparkmirror.connect.plugins import (
    VERSION,
    find_class,
    plugin_config,
    plugin_list,
    version_not_found,
    without_suffix,
)
from sparkmirror.events import Event
from sparkmirror.log_levels import LEVELS

log = logging.getLogger(__name__)

_HEALTHY = {"status": "healthy", "message": "Worker has completed startup and is ready to handle requests."}
_UNHEALTHY = "Worker was unable to handle this request and may be unable to handle other requests."
_PHRASES = {404: "Not Found", 405: "Method Not Allowed"}


async def _read_body(request: Request) -> bytes:
    return await request.body()


Body = Annotated[bytes, Depends(_read_body)]


Endpoint = Callable[..., object]
Apart = Callable[[Endpoint], Endpoint]


def _apart(requests: ClusterRequests) -> Apart:
    """Return a decorator for endpoints that wait for a cluster."""

    def decorate(endpoint: Endpoint) -> Endpoint:
        @functools.wraps(endpoint)
        async def asked(**given: Any) -> object:
            return await requests.run(given.get("name", ""), functools.partial(endpoint, **given))

        return asked

    return decorate


class _Route(APIRoute):
    """Route over encoded paths, as `Manners` passes them on.

    Names are decoded after the match, since a decoded name may have slashes.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child_scope = super().matches(scope)
        names = {key: unquote(value) for key, value in child_scope.get("path_params", {}).items()}
        return match, {**child_scope, "path_params": names}


def routers(
    herder: Herder, loggers: Loggers | None, cluster_id: str, commit: str, *, topic_tracking: bool, topic_reset: bool
) -> list[APIRouter]:
    """Return all paths of the REST interface.

    `commit` is the commit that `GET /` reports. Without `loggers` there are no paths under `/admin`.
    """
    writing = _apart(ClusterRequests())
    paths = [
        _about(herder, cluster_id, commit),
        _plugins(herder),
        _connectors(herder, writing),
        _states(herder, writing),
        _offsets(herder, _apart(ClusterRequests(MOST_OF_ONE))),
        _topics(herder, writing, tracking=topic_tracking, resetting=topic_reset),
    ]
    return paths if loggers is None else [*paths, _loggers(herder, loggers, writing)]


def build_api(paths: Iterable[APIRouter]) -> FastAPI:
    """Build the application, with Connect's error bodies.

    The application serves no OpenAPI description, as Connect serves none.
    """
    app = FastAPI(
        title="Kafka Connect's REST interface",
        version=VERSION,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.add_exception_handler(RestError, _answer_refusal)
    app.add_exception_handler(HTTPException, _answer_http_error)
    app.add_exception_handler(Exception, _answer_failure)
    for router in paths:
        app.include_router(router)
    return app


def _answer_refusal(_: Request, error: Exception) -> Response:
    assert isinstance(error, RestError)  # noqa: S101 - it is registered for nothing else
    return _error(error.status, error.message)


def _answer_http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - it is registered for nothing else
    phrase = _PHRASES.get(error.status_code, error.detail)
    answer = _error(error.status_code, f"HTTP {error.status_code} {phrase}")
    del answer.headers["content-type"]
    return answer


def _answer_failure(_: Request, error: Exception) -> Response:
    log.error("a request failed", exc_info=error, extra=Event.REQUEST_FAILED.extra)
    return _error(500, f"{type(error).__name__}: the log of this process has more")


def _error(status: int, message: str) -> JSONResponse:
    return JSONResponse({"error_code": status, "message": message}, status)


def _about(herder: Herder, cluster_id: str, commit: str) -> APIRouter:
    router = APIRouter()

    @router.get("/")
    def about() -> dict[str, str]:
        return {"version": VERSION, "commit": commit, "kafka_cluster_id": cluster_id}

    @router.get("/health")
    def health() -> JSONResponse:
        if trouble := herder.trouble:
            return JSONResponse({"status": "unhealthy", "message": f"{_UNHEALTHY} {trouble}"}, 500)
        return JSONResponse(_HEALTHY)

    return router


def _plugins(herder: Herder) -> APIRouter:
    router = APIRouter(prefix="/connector-plugins", route_class=_Route)

    @router.get("")
    def plugins(request: Request) -> list[dict[str, str]]:
        return plugin_list(connectors_only=_flag(request, "connectorsOnly", default=True))

    @router.get("/{plugin}/config")
    def config(plugin: str, version: str = ANY_VERSION) -> list[dict[str, object]]:
        wanted = VersionRange(version)
        try:
            wanted.check()
        except InvalidRange:
            raise bad_request(f"Invalid version specification: {version}") from None
        class_name = find_class(plugin)
        if class_name is None:
            raise not_found(f"Unknown plugin {plugin}.")
        if VERSION not in wanted:
            raise bad_request(version_not_found(class_name, wanted))
        return plugin_config(class_name)

    @router.put("/{plugin}/config/validate")
    def validate(plugin: str, body: Body) -> dict[str, object]:
        settings = read_settings(body)
        stated = settings.get("connector.class")
        if stated is not None and not without_suffix(stated).endswith(without_suffix(plugin)):
            raise bad_request(f"Included connector type {stated} does not match request type {plugin}")
        return herder.validate(settings).as_json()

    return router


def _connectors(herder: Herder, writing: Apart) -> APIRouter:
    router = APIRouter(prefix="/connectors", route_class=_Route)

    @router.get("")
    def connectors(request: Request) -> Any:
        if "expand" not in request.query_params:
            return herder.names()
        return _expanded(herder, request.query_params.getlist("expand"))

    @router.post("", status_code=201)
    @writing
    def create(request: Request, response: Response, body: Body) -> dict[str, object]:
        creation = read_creation(body)
        info = herder.create(creation.name, creation.config, creation.initial)
        response.headers["location"] = _location(request, creation.name)
        return info

    @router.get("/{name}")
    def info(name: str) -> dict[str, object]:
        return herder.info(name)

    @router.delete("/{name}", status_code=204, response_class=Response)
    @writing
    def delete(name: str) -> Response:
        herder.delete(name)
        return Response(status_code=204)

    @router.get("/{name}/config")
    def config(name: str) -> dict[str, str]:
        return herder.config(name)

    @router.put("/{name}/config")
    @writing
    def put(name: str, request: Request, response: Response, body: Body) -> dict[str, object]:
        created, info = herder.put(name, with_name(name, read_settings(body)))
        if created:
            response.status_code = 201
            response.headers["location"] = _location(request, name)
        return info

    @router.patch("/{name}/config")
    @writing
    def patch(name: str, body: Body) -> dict[str, object]:
        changes = read_settings(body)
        check_name(name, changes)
        return herder.patch(name, changes)

    return router


def _states(herder: Herder, writing: Apart) -> APIRouter:
    router = APIRouter(prefix="/connectors/{name}", route_class=_Route)

    @router.get("/status")
    def status(name: str) -> dict[str, object]:
        return _status(herder.status(name))

    @router.put("/pause", status_code=202, response_class=Response)
    @writing
    def pause(name: str) -> Response:
        herder.set_target(name, TargetState.PAUSED)
        return Response(status_code=202)

    @router.put("/resume", status_code=202, response_class=Response)
    @writing
    def resume(name: str) -> Response:
        herder.set_target(name, TargetState.STARTED)
        return Response(status_code=202)

    @router.put("/stop", status_code=204, response_class=Response)
    @writing
    def stop(name: str) -> Response:
        herder.set_target(name, TargetState.STOPPED)
        return Response(status_code=204)

    @router.post("/restart")
    @writing
    def restart(name: str, request: Request) -> Response:
        include_tasks, only_failed = _flag(request, "includeTasks"), _flag(request, "onlyFailed")
        plan = herder.restart(name, include_tasks=include_tasks, only_failed=only_failed)
        # A request without either flag is the older form, whose answer has no body.
        return JSONResponse(_status(plan), 202) if include_tasks or only_failed else Response(status_code=204)

    @router.get("/tasks")
    def tasks(name: str) -> list[dict[str, object]]:
        return herder.tasks(name)

    @router.get("/tasks/{task}/status")
    def task_status(name: str, task: str) -> dict[str, object]:
        return _task(herder.task_status(name, _number(task)))

    @router.post("/tasks/{task}/restart", status_code=204, response_class=Response)
    @writing
    def restart_task(name: str, task: str) -> Response:
        herder.restart_task(name, _number(task))
        return Response(status_code=204)

    return router


def _offsets(herder: Herder, apart: Apart) -> APIRouter:
    router = APIRouter(prefix="/connectors/{name}/offsets", route_class=_Route)

    @router.get("")
    @apart
    def offsets(name: str) -> dict[str, object]:
        return {"offsets": [{"partition": part, "offset": offset} for part, offset in herder.offsets(name)]}

    @router.patch("")
    @apart
    def alter(name: str, body: Body) -> dict[str, str]:
        return {"message": herder.alter_offsets(name, read_offsets(body))}

    @router.delete("")
    @apart
    def delete(name: str) -> dict[str, str]:
        return {"message": herder.delete_offsets(name)}

    return router


def _topics(herder: Herder, writing: Apart, *, tracking: bool, resetting: bool) -> APIRouter:
    router = APIRouter(prefix="/connectors/{name}/topics", route_class=_Route)

    def must_be_tracked() -> None:
        if not tracking:
            raise RestError(403, "Topic tracking is disabled.")

    @router.get("")
    def topics(name: str) -> dict[str, dict[str, list[str]]]:
        must_be_tracked()
        return {name: {"topics": herder.topics(name)}}

    @router.put("/reset", status_code=202, response_class=Response)
    @writing
    def reset(name: str) -> Response:
        must_be_tracked()
        if not resetting:
            raise RestError(403, "Topic tracking reset is disabled.")
        herder.reset_topics(name)
        return Response(status_code=202)

    return router


def _loggers(herder: Herder, loggers: Loggers, writing: Apart) -> APIRouter:
    router = APIRouter(prefix="/admin/loggers", route_class=_Route)

    @router.get("")
    def all_loggers() -> dict[str, dict[str, object]]:
        return loggers.all()

    @router.get("/{name}")
    def logger(name: str) -> dict[str, object]:
        described = loggers.one(name)
        if described is None:
            raise not_found(f"Logger {name} not found.")
        return described

    @router.put("/{name}")
    @writing
    def set_level(name: str, request: Request, body: Body) -> Any:
        level = read_settings(body).get("level")
        if level is None:
            raise bad_request("Desired 'level' parameter was not specified in request.")
        if level.upper() not in LEVELS:
            raise not_found(f"invalid log level '{level}'.")
        if not loggers.admit(name):
            raise bad_request(f"No logger has this name, and there may be {MOST_NEW} new ones of {LONGEST} characters")
        if request.query_params.get("scope", "worker").lower() != "cluster":
            return loggers.set(name, level)
        herder.set_cluster_log_level(name, level.upper())
        return Response(status_code=204)

    return router


def _expanded(herder: Herder, wanted: list[str]) -> dict[str, dict[str, object]]:
    """Return the wanted parts (`status`, `info`) for all connectors.

    A connector that is deleted in the meantime is left out.
    """
    expanded: dict[str, dict[str, object]] = {}
    for name in herder.names():
        try:
            parts = {
                "status": lambda name=name: _status(herder.status(name)),
                "info": lambda name=name: herder.info(name),
            }
            expanded[name] = {word: parts[word]() for word in wanted if word in parts}
        except RestError:
            continue
    return expanded


def _status(status: ConnectorStatus) -> dict[str, object]:
    """Connect's `ConnectorStateInfo`."""
    return {
        "name": status.name,
        "connector": _state(status),
        "tasks": [_task(task) for task in status.tasks],
        "type": status.type,
    }


def _task(task: TaskStatus) -> dict[str, object]:
    return {"id": task.id, **_state(task)}


def _state(status: ConnectorStatus | TaskStatus) -> Mapping[str, object]:
    traced = {"trace": status.trace} if status.trace else {}
    return {"state": status.state, "worker_id": status.worker_id, **traced, "version": VERSION}


def _location(request: Request, name: str) -> str:
    return f"{request.base_url}connectors/{quote(name, safe='')}"


def _number(task: str) -> int:
    """Return a task's number as Java's `Integer` reads it."""
    number = int(task) if re.fullmatch(r"[+-]?[0-9]{1,20}", task) else None
    if number is None or not -(2**31) <= number < 2**31:
        raise not_found("HTTP 404 Not Found")
    return number


def _flag(request: Request, name: str, *, default: bool = False) -> bool:
    """Return a query's boolean as Java reads it: every text but `true` is false."""
    given = request.query_params.get(name)
    return default if given is None else given.lower() == "true"
