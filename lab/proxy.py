"""A TCP proxy on 127.0.0.1 before one server, which breaks the network on demand.

    with Proxy(broker.port) as proxy:
        proxy.stall()

One thread passes on all connections' bytes. Each order takes effect before the call returns.
"""

from __future__ import annotations

import selectors
import socket
import struct
import threading
import time
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from enum import Enum, auto
from typing import TYPE_CHECKING, Self

from sparkmirror.demo.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Callable

_CHUNK = 1 << 16
_BACKLOG = 128
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER of 0 s: close() sends RST and drops unsent bytes
_SLOW_TURN_S = 0.02
_NEVER = 0


class _Network(Enum):
    WHOLE = auto()
    SLOW = auto()
    STALLED = auto()
    CUT = auto()


class _Direction:
    """Bytes from one socket to another, one chunk at a time."""

    def __init__(self, source: socket.socket, sink: socket.socket) -> None:
        self.source = source
        self.sink = sink
        self.pending = memoryview(b"")
        self.ended = False

    def read(self, limit: int) -> int:
        """Take the waiting bytes; return their number.

        Raises OSError if the connection broke.
        """
        chunk = self.source.recv(min(limit, _CHUNK))
        if not chunk:
            self.ended = True
            self._pass_on_the_end()
        self.pending = memoryview(chunk)
        return len(chunk)

    def write(self) -> None:
        """Pass on the taken bytes.

        Raises OSError if the connection broke.
        """
        self.pending = self.pending[self.sink.send(self.pending) :]

    def _pass_on_the_end(self) -> None:
        with suppress(OSError):
            self.sink.shutdown(socket.SHUT_WR)


class _Connection:
    """One client, and the connection to the server made for this client."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client = client
        self.server = server
        self.connected = False
        self.directions = (_Direction(client, server), _Direction(server, client))

    @property
    def ended(self) -> bool:
        return all(direction.ended for direction in self.directions)

    def interest(self, end: socket.socket) -> int:
        """Return the events to wait for at one of the two sockets."""
        if not self.connected:
            return selectors.EVENT_WRITE if end is self.server else _NEVER
        wanted = _NEVER
        for direction in self.directions:
            if direction.source is end and not direction.pending and not direction.ended:
                wanted |= selectors.EVENT_READ
            if direction.sink is end and direction.pending:
                wanted |= selectors.EVENT_WRITE
        return wanted


class Proxy:
    """Proxy from `port` to `upstream_port`, both on 127.0.0.1.

    As a context the proxy runs, and is closed at the end. The proxy does not look at the bytes. Its methods may be
    called from any thread, and again after `close` and `start`.
    """

    def __init__(self, upstream_port: int, *, port: int | None = None) -> None:
        self.upstream_port = upstream_port
        self.port = free_ports(1)[0] if port is None else port
        self._network = _Network.WHOLE
        self._bytes_per_s = 0.0
        self._allowance = 0.0
        self._allowed_at = 0.0
        self._connections: set[_Connection] = set()
        self._listener: socket.socket | None = None
        self._orders: deque[tuple[Callable[[], None], Future[None]]] = deque()
        self._thread: threading.Thread | None = None
        self._closing = False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- orders from any thread -----------------------------------------------------------------

    def start(self) -> None:
        """Listen and pass on, unless the proxy runs.

        Raises OSError if the port is taken.
        """
        if self._thread is not None:
            return
        self._closing = False
        self._network = _Network.WHOLE
        self._selector = selectors.DefaultSelector()
        self._waker, self._woken = socket.socketpair()
        self._woken.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._listen()
        self._thread = threading.Thread(target=self._run, name=f"proxy-{self.port}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Reset all connections and stop listening.

        Does nothing if the proxy does not run.
        """
        if self._thread is None:
            return
        self._tell(self._end)
        self._thread.join()
        self._thread = None
        for resource in (self._selector, self._waker, self._woken):
            resource.close()

    def cut(self) -> None:
        """Reset all connections (RST) and refuse new ones, until `heal`."""
        self._tell(lambda: self._become(_Network.CUT))

    def stall(self) -> None:
        """Accept connections but pass nothing, until `heal`: a black hole.

        Bytes sent meanwhile come out after `heal`.
        """
        self._tell(lambda: self._become(_Network.STALLED))

    def slow(self, bytes_per_s: float) -> None:
        """Limit the proxy to `bytes_per_s` until `heal`.

        All connections and both directions share the limit.
        """

        def slow() -> None:
            self._bytes_per_s, self._allowance, self._allowed_at = bytes_per_s, 0.0, time.monotonic()
            self._become(_Network.SLOW)

        self._tell(slow)

    def heal(self) -> None:
        """End `cut`, `stall` or `slow`."""
        self._tell(lambda: self._become(_Network.WHOLE))

    def drop_connections(self) -> None:
        """Reset all connections (RST) once; new ones are served."""
        self._tell(self._reset_all)

    @property
    def connections(self) -> int:
        """Number of connected clients."""
        return len(self._connections)

    # --- the thread -----------------------------------------------------------------------------

    def _tell(self, order: Callable[[], None]) -> None:
        """Have the thread carry out an order, and wait until it is done.

        Raises the order's exception; RuntimeError if there is no thread.
        """
        if self._thread is None:
            raise RuntimeError(f"the proxy on port {self.port} does not run")
        done: Future[None] = Future()
        self._orders.append((order, done))
        self._waker.send(b"!")
        done.result()

    def _run(self) -> None:
        while not self._closing:
            wait_s = _SLOW_TURN_S if self._network is _Network.SLOW else None
            for key, events in self._selector.select(wait_s):
                if key.fileobj is self._woken:
                    self._woken.recv(_CHUNK)
                elif key.fileobj is self._listener:
                    self._accept()
                elif key.data in self._connections:  # else the connection was reset in this very turn
                    self._serve(key.data, key.fileobj, events)
            self._obey()
            if self._network is _Network.SLOW:
                self._refill()

    def _obey(self) -> None:
        while self._orders:
            order, done = self._orders.popleft()
            try:
                order()
            except OSError as error:  # another process took the port meanwhile
                done.set_exception(error)
            else:
                done.set_result(None)

    def _become(self, network: _Network) -> None:
        self._network = network
        if network is _Network.CUT:
            self._close_listener()
            self._reset_all()
        elif self._listener is None:
            self._listen()
        self._watch_all()

    def _end(self) -> None:
        self._closing = True
        self._close_listener()
        self._reset_all()

    def _listen(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=_BACKLOG)
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)

    def _close_listener(self) -> None:
        if self._listener is not None:
            self._selector.unregister(self._listener)
            self._listener.close()
            self._listener = None

    def _accept(self) -> None:
        if self._listener is None:
            return
        with suppress(OSError):  # the client has gone again
            client, _ = self._listener.accept()
            server = socket.socket()
            for end in (client, server):
                end.setblocking(False)
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server.connect_ex(("127.0.0.1", self.upstream_port))  # the socket is writable when the outcome is known
            connection = _Connection(client, server)
            self._connections.add(connection)
            self._watch(connection)

    def _serve(self, connection: _Connection, end: object, events: int) -> None:
        try:
            if not connection.connected:
                error = connection.server.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if error:
                    raise OSError(error, "the server can't be reached")
                connection.connected = True
            else:
                self._pass(connection, end, events)
        except BlockingIOError:
            pass
        except OSError:
            self._reset(connection)
            return
        if connection.ended:
            self._forget(connection)
        else:
            self._watch(connection)

    def _pass(self, connection: _Connection, end: object, events: int) -> None:
        for direction in connection.directions:
            if events & selectors.EVENT_WRITE and direction.sink is end and direction.pending:
                direction.write()
            if events & selectors.EVENT_READ and direction.source is end and not direction.pending:
                limit = self._limit()
                if limit:
                    self._allowance -= direction.read(limit)

    def _limit(self) -> int:
        return max(int(self._allowance), 0) if self._network is _Network.SLOW else _CHUNK

    def _refill(self) -> None:
        now = time.monotonic()
        grown = self._allowance + (now - self._allowed_at) * self._bytes_per_s
        # At most a tenth of a second's worth is saved up, but always enough for one byte.
        self._allowance, self._allowed_at = min(grown, max(self._bytes_per_s / 10, 1.0)), now
        self._watch_all()

    def _watch_all(self) -> None:
        for connection in self._connections:
            self._watch(connection)

    def _watch(self, connection: _Connection) -> None:
        for end in (connection.client, connection.server):
            wanted = _NEVER if self._network is _Network.STALLED else connection.interest(end)
            if self._network is _Network.SLOW and not self._limit():
                wanted &= ~selectors.EVENT_READ
            self._wait_for(end, wanted, connection)

    def _wait_for(self, end: socket.socket, wanted: int, connection: _Connection) -> None:
        now = self._selector.get_map().get(end)
        if now is None and wanted:
            self._selector.register(end, wanted, connection)
        elif now is not None and not wanted:
            self._selector.unregister(end)
        elif now is not None and now.events != wanted:
            self._selector.modify(end, wanted, connection)

    def _reset_all(self) -> None:
        for connection in tuple(self._connections):
            self._reset(connection)

    def _reset(self, connection: _Connection) -> None:
        for end in (connection.client, connection.server):
            with suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._forget(connection)

    def _forget(self, connection: _Connection) -> None:
        self._connections.discard(connection)
        for end in (connection.client, connection.server):
            self._wait_for(end, _NEVER, connection)
            end.close()
