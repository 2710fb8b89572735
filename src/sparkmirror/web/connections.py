"""Connections of clients: how many there may be, and how long each may keep us waiting.

A client that sends a byte now and then, or never reads its answer, costs a file descriptor for as long as it likes; who
opens enough of them leaves none for the mirror. So those that wait longest make room for new ones, which are served.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST = 256
"""Connections of a listener that are served: a small part of the 1,024 file descriptors that a process may have by
default, as the mirror needs its own."""

PATIENCE_S = 30.0
"""How long a request may take to come, and an answer to be read: Jetty's idle timeout, which Connect doesn't change."""

HANDSHAKE_S = 10.0
"""How long TLS may take to be agreed on."""

_MOST_OPEN = 2 * MOST
"""With those that have not agreed on TLS yet, which no protocol knows of."""


class Connection(H11Protocol):
    """uvicorn's own, with an end to waiting."""

    since = 0.0
    """From when on it is the client's turn."""
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take it, in the place of the one that waits longest if there are too many."""
        super().connection_made(transport)
        self.since = self.loop.time()
        self._timer = self.loop.call_later(PATIENCE_S, self._look)
        if len(self.connections) > MOST:
            others = [one for one in self.connections if isinstance(one, Connection) and one.is_waiting]
            longest = min(others, key=lambda one: one.since)
            self.connections.discard(longest)
            longest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """It is the client's turn again."""
        self.since = self.loop.time()
        super().on_response_complete()

    @property
    def is_waiting(self) -> bool:
        """Whether it is the client's turn: to send a request's rest, or to read an answer."""
        asked = self.cycle is not None and not self.cycle.response_complete
        return not asked or self.conn.their_state is h11.SEND_BODY or self.flow.write_paused

    def _look(self) -> None:
        left = self.since + PATIENCE_S - self.loop.time()
        if self.is_waiting and left <= 0:
            self.transport.abort()
        else:
            self._timer = self.loop.call_later(left if left > 0 else PATIENCE_S, self._look)


class ServingLoop(asyncio.SelectorEventLoop):
    """An event loop whose servers don't wait for TLS as long as they like."""

    async def create_server(self, *args: Any, **more: Any) -> asyncio.Server:
        """As asyncio's."""
        if more.get("ssl") is not None:
            more["ssl_handshake_timeout"] = HANDSHAKE_S
        return await super().create_server(*args, **more)


class ListeningSocket(socket.socket):
    """Accepts as many as may be open at a time, and hangs up on others at once."""

    _open = 0

    def accept(self) -> tuple[socket.socket, Any]:
        """Raises `ConnectionAbortedError` where there are too many, as where the client has gone."""
        accepted, address = super().accept()
        if self._open >= _MOST_OPEN:
            accepted.close()
            raise ConnectionAbortedError("there are too many connections")
        self._open += 1
        return _Accepted(self, accepted), address

    def closed(self) -> None:
        """One of those that were accepted is no more."""
        self._open -= 1


class _Accepted(socket.socket):
    def __init__(self, listening: ListeningSocket, accepted: socket.socket) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, accepted.detach())
        self._listening: ListeningSocket | None = listening

    def close(self) -> None:
        """And tell so."""
        super().close()
        if self._listening is not None:
            self._listening.closed()
            self._listening = None
