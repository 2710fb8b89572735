"""Requests that only the process with the lease can answer, sent on to it."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from sparkmirror.connect.errors import STALE

_ONLY_THERE = re.compile(
    r"(POST|PUT|PATCH|DELETE) /connectors(/.*)?|GET /connectors/[^/]+/offsets/?|PUT /admin/loggers/.*scope=cluster.*"
)
_MARK = "x-sparkmirror-forwarded"
_KEPT = ("authorization", "content-type", "accept")
_TIMEOUT_S = 90.0
"""Connect's `DEFAULT_REST_REQUEST_TIMEOUT_MS`."""
_PATIENCE_S = 30.0
"""How long a request waits until it is clear who works, as a real worker's requests wait for a rebalance."""
_POLL_S = 0.05
NO_LEADER = "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway."


class Forwarding:
    """An ASGI application around another: answers by it where `leads`, else has the leader answer."""

    def __init__(
        self,
        app: ASGIApp,
        leads: Callable[[], bool],
        leader_url: Callable[[], str],
        own_url: str,
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        self._app = app
        self._leads = leads
        self._leader_url = leader_url
        self._own_url = own_url
        self._tls = tls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _ONLY_THERE.fullmatch(_request_line(scope)):
            await self._app(scope, receive, send)
            return
        forwarded = _MARK in Headers(scope=scope)
        leader = await self._wait_for_leader(forwarded=forwarded)
        if self._leads():
            await self._app(scope, receive, send)
        elif forwarded:
            await _refuse(STALE, send)
        elif not leader:
            await _refuse(NO_LEADER, send)
        else:
            status, content_type, body = await asyncio.to_thread(self._ask, leader, scope, await _body(receive))
            headers = [(b"content-length", b"%d" % len(body))]
            headers += [(name, value.encode()) for name, value in content_type.items()]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": body})

    async def _wait_for_leader(self, *, forwarded: bool) -> str:
        """Where another process is that leads; nothing if it is this one, or if none is known for too long."""
        deadline = time.monotonic() + _PATIENCE_S
        while not self._leads() and time.monotonic() < deadline:
            leader = self._leader_url()
            if leader not in ("", self._own_url) and not forwarded:
                return leader
            await asyncio.sleep(_POLL_S)
        return ""

    def _ask(self, leader: str, scope: Scope, body: bytes) -> tuple[int, dict[bytes, str], bytes]:
        headers = Headers(scope=scope)
        kept = {name: headers[name] for name in _KEPT if name in headers}
        path = scope.get("raw_path", scope["path"].encode()).decode("latin-1")
        query = scope["query_string"].decode("latin-1")
        request = urllib.request.Request(  # noqa: S310 - a URL that a process of ours wrote
            leader + path + (f"?{query}" if query else ""),
            data=body or None,
            headers={**kept, _MARK: "1"},
            method=scope["method"],
        )
        tls = self._tls() if self._tls and urlsplit(leader).scheme == "https" else None
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S, context=tls) as answer:  # noqa: S310
                return answer.status, _headers(answer.headers), answer.read()
        except urllib.error.HTTPError as error:
            return error.code, _headers(error.headers), error.read()
        except OSError as error:
            text = {"error_code": 500, "message": f"IO Error trying to forward REST request: {error}"}
            return 500, {b"content-type": "application/json"}, json.dumps(text).encode()


def _headers(headers: object) -> dict[bytes, str]:
    names = ("content-type", "location")
    return {name.encode(): value for name in names if (value := headers.get(name)) is not None}  # type: ignore[attr-defined]


def _request_line(scope: Scope) -> str:
    query = scope["query_string"].decode("latin-1")
    return f"{scope['method']} {scope['path']}" + (f"?{query}" if query and "scope=" in query else "")


async def _body(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


async def _refuse(message: str, send: Send) -> None:
    body = json.dumps({"error_code": 409, "message": message}).encode()
    headers = [(b"content-length", b"%d" % len(body)), (b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 409, "headers": headers})
    await send({"type": "http.response.body", "body": body})
