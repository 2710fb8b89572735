"""Process that passes bytes on later: TCP over a line of any length on 127.0.0.1.

`distance.DistanceProxy` starts this file as a program, which therefore imports only Python's own modules. The kernel
moves the bytes from socket to pipe to socket (`splice`), and the program keeps the release times: a third of the CPU
time that reading and writing takes.

Orders come as JSON lines on standard input, the first one before anything else; each is answered with a line. The
program ends when standard input does. A line played here has no TCP window and no slow start.
"""

from __future__ import annotations

import fcntl
import heapq
import itertools
import json
import os
import random
import resource
import select
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

LOCALHOST = "127.0.0.1"
BYTES_PER_S_AT_MOST = 1_000_000_000
"""Rate up to which a line without limit holds a connection's bytes."""
MARGIN_BYTES = 4 << 20
QUEUE_S = 0.02
"""Bytes that wait before a line with limited bandwidth, as time."""
_PORTION_S = 0.005
_PORTION_BYTES = 4 << 20
_LEAST_PORTION_BYTES = 1 << 14
_PIPE_BYTES = 1 << 20
_SOCKET_BYTES = 1 << 20
_BACKLOG = 128
_READ, _WRITE = select.EPOLLIN, select.EPOLLOUT
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER of 0 s: close() sends RST and drops unsent bytes
_SETTLE_S = 0.0005


@dataclass(frozen=True, slots=True)
class Distance:
    """A line's length and quality; ValueError if that can't be.

    All connections share each direction's bandwidth. A connection's end comes after the delay, like a byte. Bytes never
    overtake, so a late byte holds up all later bytes.
    """

    round_trip_ms: float = 0.0
    """Time that both ways take together.

    A new connection's first bytes wait for a second round trip, the handshake.
    """
    jitter_ms: float = 0.0
    """Most that bytes take longer each way, evenly distributed."""
    bytes_per_s: float = 0.0
    """Bandwidth each way; 0: no limit."""
    mean_life_s: float = 0.0
    """Mean time until a connection is lost both ways (RST), at random; 0: no loss."""

    def __post_init__(self) -> None:
        for name in ("round_trip_ms", "jitter_ms", "bytes_per_s", "mean_life_s"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name} of a distance is {getattr(self, name)}; it must be 0 or more")

    @property
    def one_way_s(self) -> float:
        """Delay each way, without jitter."""
        return self.round_trip_ms / 2e3

    @property
    def most_in_flight(self) -> int:
        """Bytes of a connection and direction beyond which the sender has to wait.

        Bandwidth times delay, the queue, and a margin.

        A slow receiver therefore slows the sender down.
        """
        delay_s = self.one_way_s + self.jitter_ms / 1e3 + QUEUE_S
        return int((self.bytes_per_s or BYTES_PER_S_AT_MOST) * delay_s) + MARGIN_BYTES

    @property
    def portion(self) -> int:
        """Bytes taken from a connection at a time: at most 5 ms of a narrow line."""
        if not self.bytes_per_s:
            return _PORTION_BYTES
        return min(max(int(self.bytes_per_s * _PORTION_S), _LEAST_PORTION_BYTES), _PORTION_BYTES)


class _Pipe:
    """A kernel pipe and how many bytes are in it."""

    def __init__(self) -> None:
        self.exit, self.entrance = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.held = 0
        # Who is not root gets 64 MiB of them in all; beyond that they are small, and there are more of them.
        with suppress(OSError):
            fcntl.fcntl(self.entrance, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

    def close(self) -> None:
        os.close(self.exit)
        os.close(self.entrance)


class _Pipes:
    """A byte queue in the kernel, as many pipes long as needed."""

    _empty: list[_Pipe] = []  # noqa: RUF012 - empty pipes of the whole process: making one is dear

    def __init__(self) -> None:
        self._pipes: deque[_Pipe] = deque()

    def take(self, source: int, most: int) -> int:
        """Move waiting bytes from a socket to the queue; return their number.

        The number is 0 at the connection's end. Raises BlockingIOError if none wait, another OSError if the connection
        broke.
        """
        try:
            taken = self._fill(source, most)
        except BlockingIOError:
            if not self._pipes[-1].held:
                raise
            self._lengthen()  # who calls knows that bytes wait: it was the pipe that had no room
            taken = self._fill(source, most)
        with suppress(BlockingIOError):
            while taken < most and (more := self._fill(source, most - taken)):
                taken += more
        return taken

    def give(self, sink: int, most: int) -> int:
        """Move up to `most` bytes from the queue to a socket; return their number.

        Raises BlockingIOError if the socket takes none, another OSError if the connection broke.
        """
        first = self._pipes[0]
        given = os.splice(first.exit, sink, min(most, first.held))
        first.held -= given
        if not first.held and len(self._pipes) > 1:
            self._empty.append(self._pipes.popleft())
        return given

    def close(self) -> None:
        """Drop all bytes."""
        for pipe in self._pipes:
            if pipe.held:
                pipe.close()
            else:
                self._empty.append(pipe)
        self._pipes.clear()

    def _fill(self, source: int, most: int) -> int:
        # For each free slot the kernel counts 4 KiB and often puts in more, so a pipe's last slots get very little.
        if not self._pipes or self._pipes[-1].held >= _PIPE_BYTES:
            self._lengthen()
        last = self._pipes[-1]
        taken = os.splice(source, last.entrance, most)
        last.held += taken
        return taken

    def _lengthen(self) -> None:
        self._pipes.append(self._empty.pop() if self._empty else _Pipe())


class _Road:
    """One direction of the line, which all connections share."""

    def __init__(self) -> None:
        self.free_at = 0.0
        self.queue: list[_Way] = []
        """Ways that met a full road; an appointment for them is made."""

    def is_full(self, now: float) -> bool:
        return self.free_at - now > QUEUE_S

    def send(self, size: int, now: float, bytes_per_s: float) -> float:
        """Return the time at which the last of `size` bytes has left."""
        if not bytes_per_s:
            return now
        self.free_at = max(self.free_at, now) + size / bytes_per_s
        return self.free_at


class _Way:
    """One connection's bytes in one direction."""

    def __init__(self, pair: _Pair, road: _Road, source: socket.socket, sink: socket.socket) -> None:
        self.pair = pair
        self.road = road
        self.source = source
        self.sink = sink
        self.pipes = _Pipes()
        self.coming: deque[tuple[float, int]] = deque()
        """Release time and byte count; no bytes: the end."""
        self.in_flight = 0
        self.due = 0
        """Bytes that are there and that the receiver has not taken yet."""
        self.end_is_due = False
        self.is_read_out = False
        """The source has said its last."""
        self.is_done = False
        """The sink knows that, too."""
        self.is_blocked = False
        """The receiver takes no more at present."""
        self.is_queued = False
        """The road has no room at present."""
        self.last_release = 0.0


class _Pair:
    """A client, its connection to the server, and the bytes under way."""

    def __init__(self, client: socket.socket, server: socket.socket, there: _Road, back: _Road, opened: float) -> None:
        self.client = client
        self.server = server
        self.opened = opened
        """Time at which the handshake of a line of that length is over."""
        self.ways = (_Way(self, there, client, server), _Way(self, back, server, client))
        self.is_lost = False


class Relay:
    """All connections over one line, in one loop.

    Delays are up to 1.5 ms too long, and never too short: a turn of the loop takes what has come within half a
    millisecond, and the kernel's timer counts whole ones.
    """

    def __init__(self, routes: dict[int, int], distance: Distance) -> None:
        self._distance = distance
        self._epoll = select.epoll()
        self._watched: dict[int, int] = {}
        self._handlers: dict[int, Callable[[int], None]] = {}
        self._appointments: list[tuple[float, int, Callable[[float], None]]] = []
        self._numbers = itertools.count()
        self._chance = random.Random(1)  # noqa: S311
        self._pairs: set[_Pair] = set()
        self._roads = _Road(), _Road()
        self._passed = 0
        self._orders = b""
        self._ended = False
        self._listeners = [self._listen(port, upstream) for port, upstream in routes.items()]

    def run(self) -> None:
        """Pass on until standard input ends."""
        self._handlers[sys.stdin.fileno()] = self._obey
        self._watch(sys.stdin.fileno(), _READ)
        while not self._ended:
            wait_s = max(self._appointments[0][0] - time.monotonic(), 0.0) if self._appointments else None
            for fd, events in self._epoll.poll(wait_s):
                handler = self._handlers.get(fd)
                if handler is not None:  # else its connection was lost in this very turn
                    handler(events)
            now = time.monotonic()
            while self._appointments and self._appointments[0][0] <= now:
                heapq.heappop(self._appointments)[2](now)
            time.sleep(_SETTLE_S)

    # --- orders ---------------------------------------------------------------------------------

    def _obey(self, _: int) -> None:
        read = os.read(sys.stdin.fileno(), 1 << 16)
        self._ended = not read
        *lines, self._orders = (self._orders + read).split(b"\n")
        for line in lines:
            order = json.loads(line)
            if "distance" in order:
                self._distance = Distance(**order["distance"])
            if order.get("lose"):
                for pair in tuple(self._pairs):
                    self._lose(pair)
            in_flight = sum(way.in_flight for pair in self._pairs for way in pair.ways)
            tell({"connections": len(self._pairs), "in_flight": in_flight, "passed": self._passed})

    # --- connections ----------------------------------------------------------------------------

    def _listen(self, port: int, upstream: int) -> socket.socket:
        listener = socket.create_server((LOCALHOST, port), backlog=_BACKLOG)
        listener.setblocking(False)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SOCKET_BYTES)
        self._handlers[listener.fileno()] = lambda _: self._accept(listener, upstream)
        self._watch(listener.fileno(), _READ)
        return listener

    def _accept(self, listener: socket.socket, upstream: int) -> None:
        try:
            client, _ = listener.accept()
        except OSError:  # the client has gone again
            return
        server = socket.socket()
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SOCKET_BYTES)
        for end in (client, server):
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BYTES)
        now = time.monotonic()
        pair = _Pair(client, server, *self._roads, now + 2 * self._distance.one_way_s)
        server.connect_ex((LOCALHOST, upstream))  # the first use of the socket tells the outcome
        self._pairs.add(pair)
        for end in (client, server):
            self._handlers[end.fileno()] = self._handler(pair, end)
        if self._distance.mean_life_s:
            life_s = self._chance.expovariate(1 / self._distance.mean_life_s)
            self._appoint(now + life_s, lambda _: self._lose(pair))
        self._rewatch(pair)

    def _handler(self, pair: _Pair, end: socket.socket) -> Callable[[int], None]:
        there, back = pair.ways
        outgoing, incoming = (there, back) if end is pair.client else (back, there)

        def handle(events: int) -> None:
            try:
                if events & _WRITE and incoming.is_blocked:
                    incoming.is_blocked = False
                    self._give(incoming)
                if events & ~_WRITE and not outgoing.is_read_out:
                    self._take(outgoing)
            except OSError:
                self._lose(pair)
                return
            self._conclude(pair)

        return handle

    def _conclude(self, pair: _Pair) -> None:
        if all(way.is_done for way in pair.ways):
            self._forget(pair)
        else:
            self._rewatch(pair)

    def _lose(self, pair: _Pair) -> None:
        if pair.is_lost:
            return
        for end in (pair.client, pair.server):
            with suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._forget(pair)

    def _forget(self, pair: _Pair) -> None:
        pair.is_lost = True
        self._pairs.discard(pair)
        for end in (pair.client, pair.server):
            self._watch(end.fileno(), 0)
            del self._handlers[end.fileno()]
            end.close()
        for way in pair.ways:
            way.pipes.close()

    # --- bytes ----------------------------------------------------------------------------------

    def _take(self, way: _Way) -> None:
        distance = self._distance
        if distance.bytes_per_s and way.road.is_full(time.monotonic()):
            self._queue(way)
            return
        with suppress(BlockingIOError):
            size = way.pipes.take(way.source.fileno(), distance.portion)
            way.is_read_out = not size
            way.in_flight += size
            now = time.monotonic()  # not before the bytes were taken: bytes that came meanwhile would be too early
            left_at = max(way.road.send(size, now, distance.bytes_per_s), way.pair.opened)
            late_s = self._chance.uniform(0, distance.jitter_ms / 1e3) if distance.jitter_ms else 0.0
            way.last_release = max(left_at + distance.one_way_s + late_s, way.last_release)
            way.coming.append((way.last_release, size))
            if len(way.coming) == 1:
                self._appoint(way.last_release, lambda now: self._release(way, now))

    def _queue(self, way: _Way) -> None:
        """Let a way wait until the road has room."""
        if way.is_queued:
            return
        way.is_queued = True
        if not way.road.queue:
            self._appoint(way.road.free_at - QUEUE_S / 2, lambda _: self._reopen(way.road))
        way.road.queue.append(way)

    def _reopen(self, road: _Road) -> None:
        queue, road.queue = road.queue, []
        for way in queue:
            way.is_queued = False
            if not way.pair.is_lost:
                self._rewatch(way.pair)

    def _release(self, way: _Way, now: float) -> None:
        """Hand on the bytes whose time has come."""
        if way.pair.is_lost:
            return
        while way.coming and way.coming[0][0] <= now:
            _, size = way.coming.popleft()
            way.due += size
            way.end_is_due |= not size
        if way.coming:
            self._appoint(way.coming[0][0], lambda now: self._release(way, now))
        try:
            self._give(way)
        except OSError:
            self._lose(way.pair)
        else:
            self._conclude(way.pair)

    def _give(self, way: _Way) -> None:
        try:
            while way.due and not way.is_blocked:
                given = way.pipes.give(way.sink.fileno(), way.due)
                way.due -= given
                way.in_flight -= given
                self._passed += given
        except BlockingIOError:
            way.is_blocked = True
        if way.end_is_due and not way.due and not way.is_done:
            way.is_done = True
            with suppress(OSError):
                way.sink.shutdown(socket.SHUT_WR)

    # --- the kernel's attention -------------------------------------------------------------------

    def _appoint(self, at: float, meet: Callable[[float], None]) -> None:
        heapq.heappush(self._appointments, (at, next(self._numbers), meet))

    def _rewatch(self, pair: _Pair) -> None:
        there, back = pair.ways
        for outgoing, incoming in ((there, back), (back, there)):
            has_room = outgoing.in_flight < self._distance.most_in_flight
            reads = has_room and not outgoing.is_queued and not outgoing.is_read_out
            wanted = (_READ if reads else 0) | (_WRITE if incoming.is_blocked else 0)
            self._watch(outgoing.source.fileno(), wanted)

    def _watch(self, fd: int, wanted: int) -> None:
        now = self._watched.get(fd, 0)
        if wanted == now:
            return
        if not wanted:
            self._epoll.unregister(fd)
        elif not now:
            self._epoll.register(fd, wanted)
        else:
            self._epoll.modify(fd, wanted)
        self._watched[fd] = wanted


def tell(answer: dict[str, int]) -> None:
    """Answer on standard output."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Open the ports in the first order, say so, and run."""
    first = b""
    while not first.endswith(b"\n"):
        read = os.read(sys.stdin.fileno(), 1)
        if not read:
            return
        first += read
    order = json.loads(first)
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))  # two for each MB on its way
    relay = Relay({int(port): upstream for port, upstream in order["routes"].items()}, Distance(**order["distance"]))
    tell({})
    relay.run()


if __name__ == "__main__":
    main()
