"""HTTP middleware that behaves as Connect's server.

The middleware handles slashes, HEAD, OPTIONS, media types and cross-origin headers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

from starlette.datastructures import Headers, MutableHeaders
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_JSON = "application/json"
_CHANGING = ("POST", "PUT", "PATCH")
_TAKEN = (_JSON, "application/*", "*/*")


@dataclass(frozen=True, slots=True)
class CrossOrigin:
    """Values for `access.control.allow.origin` and `access.control.allow.methods`.

    Without origins no header is added.
    """

    origins: tuple[str, ...] = ()
    methods: tuple[str, ...] = ("GET", "POST", "HEAD")
    """Methods that Connect allows if none are set."""

    def headers(self, origin: str | None, *, preflight: bool) -> dict[str, str]:
        """Return the headers to add to an answer to a request from `origin`."""
        if not origin or not ({origin, "*"} & set(self.origins)):
            return {}
        allowed = {"access-control-allow-origin": origin, "access-control-allow-credentials": "true", "vary": "Origin"}
        if preflight:
            allowed["access-control-allow-methods"] = ",".join(self.methods)
            allowed["access-control-allow-headers"] = "X-Requested-With,Content-Type,Accept,Origin"
        return allowed


class Manners:
    """ASGI middleware that passes on requests with an encoded path.

    `routes` are `app`'s routes, which tell a path's methods. `mounted` has applications by the first part of their
    paths; their requests are passed on as they are.
    """

    def __init__(
        self,
        app: ASGIApp,
        routes: Sequence[BaseRoute],
        cross_origin: CrossOrigin,
        headers: Sequence[tuple[str, str]] = (),
        mounted: Mapping[str, ASGIApp] | None = None,
    ) -> None:
        self._app = app
        self._mounted = mounted or {}
        self._routes = routes
        self._cross_origin = cross_origin
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, method = Headers(scope=scope), scope["method"]
        answer_with = self._decorated(send, headers, method)
        other = self._mounted.get(scope["path"][1:].partition("/")[0])
        if other is not None:
            await other(scope, receive, answer_with)
            return
        scope = {**scope, "path": _encoded_path(scope)}
        if method == "HEAD":
            scope["method"], answer_with = "GET", _without_body(answer_with)
        methods = self._methods(scope)
        if method == "OPTIONS" and methods:
            await _answer_options(methods, answer_with)
        elif refused := _refused(scope["method"], methods, headers):
            await _answer_error(*refused, answer_with)
        else:
            await self._app(scope, receive, answer_with)

    def _methods(self, scope: Scope) -> list[str]:
        methods: list[str] = []
        for route in self._routes:
            if route.matches(scope)[0] is not Match.NONE:
                methods += sorted(getattr(route, "methods", None) or ())
        return methods

    def _decorated(self, send: Send, headers: Headers, method: str) -> Send:
        """Return a `send` that adds the headers common to all answers."""
        preflight = method == "OPTIONS" and "access-control-request-method" in headers
        added = [*self._headers, *self._cross_origin.headers(headers.get("origin"), preflight=preflight).items()]

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start" and added:
                present = MutableHeaders(raw=list(message.get("headers", ())))
                for name, value in added:
                    present[name] = value
                message = {**message, "headers": present.raw}
            await send(message)

        return answer


def _encoded_path(scope: Scope) -> str:
    """Return the path as sent, with each part encoded in the same way.

    `%2F` belongs to a name, and separates no parts.
    """
    sent = scope.get("raw_path", quote(scope["path"]).encode()).decode("latin-1")
    return "/".join(quote(unquote(part), safe="") for part in sent.rstrip("/").split("/")) or "/"


def _refused(method: str, methods: Sequence[str], headers: Headers) -> tuple[int, str, bool] | None:
    """Return status and message for a wrong path, method or media type; else None.

    The last part tells whether the answer names its body's type. Connect's names it once a method has been chosen.
    """
    if not methods:
        return 404, "HTTP 404 Not Found", False
    if method not in methods:
        return 405, "HTTP 405 Method Not Allowed", False
    given = headers.get("content-type", "").partition(";")[0].strip().lower()
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    if given != _JSON and (given or (has_body and method in _CHANGING)):
        return 415, "HTTP 415 Unsupported Media Type", not given
    accepted = [part.partition(";")[0].strip().lower() for part in headers.get("accept", "*/*").split(",")]
    if not any(word in _TAKEN for word in accepted):
        return 406, "HTTP 406 Not Acceptable", False
    return None


async def _answer_error(status: int, message: str, typed: bool, send: Send) -> None:
    body = json.dumps({"error_code": status, "message": message}).encode()
    headers = [(b"content-length", b"%d" % len(body)), *([(b"content-type", _JSON.encode())] if typed else [])]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _answer_options(methods: list[str], send: Send) -> None:
    allowed = ", ".join(dict.fromkeys([*methods, *(["HEAD"] if "GET" in methods else []), "OPTIONS"])).encode()
    headers = [(b"allow", allowed), (b"content-type", b"text/plain"), (b"content-length", b"%d" % len(allowed))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": allowed})


def _without_body(send: Send) -> Send:
    async def answer(message: Message) -> None:
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return answer
