"""Forward requests to the leader, the process with the lease."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sparkmirror.connect.cluster_requests import THREADS
from sparkmirror.connect.errors import STALE

_ONLY_THERE = re.compile(
    r"(POST|PUT|PATCH|DELETE) /connectors(/.*)?|GET /connectors/[^/]+/offsets/?|PUT /admin/loggers/.*scope=cluster.*"
)
Answer = tuple[int, dict[bytes, str], bytes]
"""An answer's status, headers and body."""

_MARK = "x-sparkmirror-forwarded"
_KEPT = ("authorization", "content-type", "accept")
_TIMEOUT_S = 90.0
"""Connect's `DEFAULT_REST_REQUEST_TIMEOUT_MS`."""
_PATIENCE_S = 30.0
"""A request's longest wait for a known leader.

A real worker's requests wait for a rebalance in the same way.
"""
_POLL_S = 0.05
NO_LEADER = "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway."


class Forwarding:
    """ASGI middleware that forwards requests to the leader unless `leads()` is True.

    Requests that every process can answer are never forwarded.
    """

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
        self._pool = ThreadPoolExecutor(THREADS, "forwarding")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._leads() or not _ONLY_THERE.fullmatch(_request_line(scope)):
            await self._app(scope, receive, send)
            return
        body = await _body(receive)
        forwarded = _MARK in Headers(scope=scope)
        answer = await self._from_leader(scope, body, forwarded=forwarded)
        if answer is not None:
            await _send(*answer, send)
        elif self._leads():
            await self._app(scope, _again(body), send)
        else:
            await _refuse(STALE if forwarded else NO_LEADER, send)

    async def _from_leader(self, scope: Scope, body: bytes, *, forwarded: bool) -> Answer | None:
        """Return the leader's answer; None if this process leads or no leader is reached.

        The known leader may be gone, and a new one on its way: the wait is `_PATIENCE_S` at most. A request is
        forwarded once only, so that a `forwarded` request waits for this process to lead.
        """
        deadline = time.monotonic() + _PATIENCE_S
        while not self._leads() and time.monotonic() < deadline:
            leader = self._leader_url()
            if leader not in ("", self._own_url) and not forwarded:
                loop = asyncio.get_running_loop()
                answer = await loop.run_in_executor(self._pool, self._ask, leader, scope, body)
                if answer is not None:
                    return answer
            await asyncio.sleep(_POLL_S)
        return None

    def _ask(self, leader: str, scope: Scope, body: bytes) -> Answer | None:
        """Send the request to the leader; return None if the connection is refused."""
        headers = Headers(scope=scope)
        kept = {name: headers[name] for name in _KEPT if name in headers}
        if body:  # urllib would call it a form, which the leader refuses
            kept.setdefault("content-type", "application/json")
        path = scope.get("raw_path", scope["path"].encode()).decode("latin-1")
        query = scope["query_string"].decode("latin-1")
        request = urllib.request.Request(  # noqa: S310 - a URL that another sparkmirror process has written
            leader + path + (f"?{query}" if query else ""),
            data=body or None,
            headers={**kept, _MARK: "1"},
            method=scope["method"],
        )
        tls = self._tls() if self._tls and urlsplit(leader).scheme == "https" else None
        try:
            with _opener(tls).open(request, timeout=_TIMEOUT_S) as answer:
                return answer.status, _headers(answer.headers), answer.read()
        except urllib.error.HTTPError as error:
            return error.code, _headers(error.headers), error.read()
        except (OSError, http.client.HTTPException) as error:
            if isinstance(getattr(error, "reason", error), ConnectionRefusedError):
                return None
            text = {"error_code": 500, "message": f"IO Error trying to forward REST request: {error}"}
            return 500, {b"content-type": "application/json"}, json.dumps(text).encode()


def _opener(tls: ssl.SSLContext | None) -> urllib.request.OpenerDirector:
    """Return an opener that asks the leader directly.

    Proxies named in the environment are for servers outside the group.
    """
    return urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=tls))


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


def _again(body: bytes) -> Receive:
    """Return a `receive` that gives a body again that was read before."""

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


async def _send(status: int, headers: dict[bytes, str], body: bytes, send: Send) -> None:
    encoded = [(name, value.encode()) for name, value in headers.items()]
    encoded.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


async def _refuse(message: str, send: Send) -> None:
    body = json.dumps({"error_code": 409, "message": message}).encode()
    await _send(409, {b"content-type": "application/json"}, body, send)
