"""Request bodies, read whole before the application sees them, up to a limit."""

from __future__ import annotations

import json

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LIMIT_BYTES = 1 << 20
"""Longest body.

A connector's configuration is one record, and Connect's producer sends none above `max.request.size`, 1,048,576 bytes
by default.
"""

_DRAINED_BYTES = 16 * LIMIT_BYTES
"""Bytes of a longer body that are read and thrown away.

A client may miss an answer that is sent while the client still writes.
"""


class BodyLimit:
    """ASGI middleware that passes on each body in one piece.

    A body above `LIMIT_BYTES` is refused with 413.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        stated = Headers(scope=scope).get("content-length", "0")
        body = None if int(stated) > _DRAINED_BYTES else await _read(receive)
        if body is None:
            await _refuse(send)
        elif body.complete:
            await self._app(scope, _once(body.content, receive), send)
        # else: the client has closed the connection


class _Body:
    def __init__(self) -> None:
        self.content = b""
        self.complete = False


async def _read(receive: Receive) -> _Body | None:
    """Return the body as far as it came, or None if it is too long."""
    body, size, parts = _Body(), 0, list[bytes]()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return body
        part = message.get("body", b"")
        size += len(part)
        if size <= LIMIT_BYTES:
            parts.append(part)
        if size > _DRAINED_BYTES or (size > LIMIT_BYTES and not message.get("more_body", False)):
            return None
        if not message.get("more_body", False):
            body.content, body.complete = b"".join(parts), True
            return body


def _once(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the body once.

    Later calls return the connection's own messages.
    """
    given = False

    async def next_message() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return next_message


async def _refuse(send: Send) -> None:
    words = (
        f"The body has more than {LIMIT_BYTES:,} bytes, which is more than a connector's record can have"
        " (max.request.size); offsets can be altered in several requests"
    )
    body = json.dumps({"error_code": 413, "message": words}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": body})
