"""One non-blocking connection to a broker: `sendmsg` out, `recv_into` in.

A channel gets a connected socket (see `rpc.RpcConnection.dial` and `tls.open_channel`). The channel's owner watches the
socket, and calls `flush` when it is writable and `receive` when it is readable.
"""

from __future__ import annotations

import socket
import struct
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Protocol

from sparkmirror.errors import ClusterTrouble
from sparkmirror.kafka.wire.answer_bounds import AnswerBound
from sparkmirror.kafka.wire.buffers import Frame, FramePool

_SIZE = struct.Struct(">i")
_MAX_BUFFERS = 1024  # IOV_MAX of Linux
Buffer = bytes | bytearray | memoryview


class ChannelClosed(ClusterTrouble):
    """The connection is closed or broken; all requests in flight on it are in doubt."""


class Session(Protocol):
    """A sign-in with a limited lifetime, renewable on the same connection (KIP-368)."""

    @property
    def renewal_due(self) -> bool:
        """True if the session must be renewed before the next request."""

    def sign_in(self) -> None:
        """Renew the session; blocks."""


class Channel:
    """Frames over a connected socket; any socket error surfaces as `ChannelClosed`."""

    _not_now: ClassVar[tuple[type[OSError], ...]] = (BlockingIOError,)
    """Exceptions by which the socket tells that it has, or takes, no more for now."""

    def __init__(self, sock: socket.socket, pool: FramePool, session: Session | None = None) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._session = session
        self._pool = pool
        self._out: deque[memoryview] = deque()
        self.in_time: Callable[[], bool] | None = None
        """Check made right before any byte is handed to the kernel.

        False means that sending is too late, and raises `ChannelClosed`.
        """
        self.bound = AnswerBound("a request that was not sent", 0)
        """Bound for the next answers, which the owner sets with each request."""
        self._size_bytes = bytearray(4)
        self._size_view = memoryview(self._size_bytes)
        self._got = 0
        self._frame: Frame | None = None

    def fileno(self) -> int:
        return self._sock.fileno()

    @property
    def unsent(self) -> bool:
        """True if `flush` must be called again once the socket is writable."""
        return bool(self._out)

    @property
    def renewal_due(self) -> bool:
        """True if `renew` must be called before the next request."""
        return self._session is not None and self._session.renewal_due

    def renew(self) -> None:
        """Sign in again; no request may be in flight.

        Blocks, so a thread other than the loop's calls it. Until it returns, no other thread may touch the channel or
        its socket.
        """
        if self._session is not None:
            self._session.sign_in()
        self._sock.setblocking(False)

    def send(self, buffers: Sequence[Buffer]) -> None:
        """Send one request behind its size; queue the bytes that the socket refuses now."""
        size = sum(len(buffer) for buffer in buffers)
        self._queue(_SIZE.pack(size), buffers)
        self.flush()

    def _queue(self, size: bytes, buffers: Sequence[Buffer]) -> None:
        self._out.append(memoryview(size))
        self._out.extend(memoryview(buffer) for buffer in buffers)

    def flush(self) -> None:
        out = self._out
        while out:
            buffers = list(out) if len(out) <= _MAX_BUFFERS else self._first(_MAX_BUFFERS)
            self._must_be_in_time()
            try:
                sent = self._sock.sendmsg(buffers)
            except BlockingIOError:
                return
            except OSError as error:
                raise ChannelClosed(str(error)) from error
            if len(buffers) == len(out) and sent == sum(map(len, buffers)):
                out.clear()
                return
            while sent:
                first = out[0]
                if sent >= len(first):
                    sent -= len(first)
                    out.popleft()
                else:
                    out[0] = first[sent:]
                    sent = 0
            while out and not out[0]:
                out.popleft()

    def _must_be_in_time(self) -> None:
        if self.in_time is not None and not self.in_time():
            raise ChannelClosed("this process was suspended while it was sending")

    def _first(self, count: int) -> list[memoryview]:
        return [self._out[index] for index in range(count)]

    def receive(self) -> Iterator[Frame]:
        """Yield every frame that is complete by now; the caller releases each frame."""
        while True:
            frame = self._frame
            if frame is None:
                if not self._read(self._size_view, 4):
                    return
                size = _SIZE.unpack(self._size_bytes)[0]
                if why := self.bound.excess(size):
                    raise ChannelClosed(why)
                self._must_have_room(size, begun=False)
                frame = self._frame = self._pool.take(size)
                self._got = 0
            whole = self._read(frame.view, frame.size)
            frame.fill(self._got, whole=whole)
            if not whole:
                self._must_have_room(frame.size, begun=True)
                return
            self._frame = None
            self._got = 0
            yield frame

    def _must_have_room(self, size: int, *, begun: bool) -> None:
        """Raise `ChannelClosed` if all answers under way take too much memory.

        Only brokers that send far more than they are asked for, and many of them, bring that about.
        """
        if not self._pool.admits(size, begun=begun):
            what = f"an answer to {self.bound.request} of {size:,} bytes"
            raise ChannelClosed(f"{what}, and all answers together would take more than {self._pool.most:,}")

    def _read(self, into: memoryview, size: int) -> bool:
        """Fill `into`; return False if the socket has no more bytes for now."""
        while self._got < size:
            try:
                got = self._sock.recv_into(into[self._got :] if self._got else into)
            except self._not_now:
                return False
            except OSError as error:
                raise ChannelClosed(str(error)) from error
            if got == 0:
                raise ChannelClosed("the broker closed the connection")
            self._got += got
        return True

    def close(self) -> None:
        if self._frame is not None:
            self._frame.release()
            self._frame = None
        self._out.clear()
        self._sock.close()
