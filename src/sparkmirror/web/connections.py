"""Limits for clients' connections: their number, and the time each may wait.

A client that sends a byte now and then, or never reads its answer, holds a file descriptor without end; a client with
enough such connections leaves none for the mirror. So the connections that wait longest make room for new ones, and the
new ones are served.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST = 256
"""Most connections on a listener that are served.

A small part of the 1,024 file descriptors that a process has by default, as the mirror needs descriptors, too.
"""

PATIENCE_S = 30.0
"""Seconds for a request to arrive, and for an answer to be read.

The value is Jetty's idle timeout, which Connect doesn't change.
"""

HANDSHAKE_S = 10.0
"""Seconds for a TLS handshake."""

_MOST_OPEN = 2 * MOST
"""Most open connections with those still in the TLS handshake.

The HTTP protocol doesn't know about a connection before its handshake has ended.
"""


class Connection(H11Protocol):
    """uvicorn's connection with a limit on waiting for the client."""

    since = 0.0
    """Time at which the connection began to wait for the client."""
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection; above `MOST`, abort the connection that waits longest."""
        super().connection_made(transport)
        self.since = self.loop.time()
        self._timer = self.loop.call_later(PATIENCE_S, self._look)
        if len(self.connections) > MOST:
            waiting = [peer for peer in self.connections if isinstance(peer, Connection) and peer.is_waiting]
            longest = min(waiting, key=lambda peer: peer.since)
            self.connections.discard(longest)
            longest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the connection's timer."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Restart the wait for the client."""
        self.since = self.loop.time()
        super().on_response_complete()

    @property
    def is_waiting(self) -> bool:
        """True if the client must act: send the rest of a request, or read an answer."""
        asked = self.cycle is not None and not self.cycle.response_complete
        return not asked or self.conn.their_state is h11.SEND_BODY or self.flow.write_paused

    def _look(self) -> None:
        left = self.since + PATIENCE_S - self.loop.time()
        if self.is_waiting and left <= 0:
            self.transport.abort()
        else:
            self._timer = self.loop.call_later(left if left > 0 else PATIENCE_S, self._look)


class ServingLoop(asyncio.SelectorEventLoop):
    """An event loop whose servers limit the time for TLS handshakes."""

    async def create_server(self, *args: Any, **more: Any) -> asyncio.Server:
        """Create asyncio's server with a limit of `HANDSHAKE_S`."""
        if more.get("ssl") is not None:
            more["ssl_handshake_timeout"] = HANDSHAKE_S
        return await super().create_server(*args, **more)


class ListeningSocket(socket.socket):
    """A listening socket that hangs up at once on connections beyond `_MOST_OPEN`."""

    _open = 0

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection.

        Raises `ConnectionAbortedError` for a connection beyond the limit, as for a client that has gone.
        """
        accepted, address = super().accept()
        if self._open >= _MOST_OPEN:
            accepted.close()
            raise ConnectionAbortedError("there are too many connections")
        self._open += 1
        return _Accepted(self, accepted), address

    def closed(self) -> None:
        """Count one accepted connection less."""
        self._open -= 1


class _Accepted(socket.socket):
    def __init__(self, listening: ListeningSocket, accepted: socket.socket) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, accepted.detach())
        self._listening: ListeningSocket | None = listening

    def close(self) -> None:
        """Close the socket, and tell the listening socket."""
        super().close()
        if self._listening is not None:
            self._listening.closed()
            self._listening = None
