"""One blocking connection to a broker, for everything but the two hot requests.

The messages are kafka-python's (`kafka.protocol`); this only carries them, with a deadline on every call.
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from contextlib import suppress
from typing import Any, Self

from kafka.protocol.metadata import ApiVersionsRequest

from sparkmirror.wire.tls import HandshakeFailed, explain, shake_hands

_SIZE = struct.Struct(">i")

MAX_FRAME = 1 << 28
"""Bytes; a larger answer is none: whatever listens there does not speak Kafka."""

TLS_ALERT = 0x1503
"""How a TLS alert begins (RFC 8446, section 5.1): what a TLS port says to those that speak in clear."""

USER_TIMEOUT_MS = 5_000
"""For TCP_USER_TIMEOUT: the kernel gives up on unacknowledged data, so that it can't deliver it much later (R6)."""


class BrokerUnreachable(ConnectionError):
    """A broker can't be connected to, or doesn't answer in time."""


class TlsRefused(BrokerUnreachable):
    """A broker answers, but the two of us can't agree on TLS: asking again won't help."""


class UnsupportedBroker(ConnectionError):
    """A broker speaks no version of a request that we know."""


def connect(
    host: str,
    port: int,
    *,
    timeout_s: float,
    tls: ssl.SSLContext | None = None,
    send_buffer: int = -1,
    receive_buffer: int = -1,
) -> socket.socket:
    """A connected socket with a timeout set, TLS spoken if `tls` is given; buffers of -1 are the system's own."""
    deadline = time.monotonic() + timeout_s
    try:
        sock = socket.create_connection((host, port), timeout=timeout_s)
    except OSError as error:
        raise BrokerUnreachable(f"{host}:{port}: {error.strerror or error}") from error
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, USER_TIMEOUT_MS)
    if send_buffer > 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
    if receive_buffer > 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    if tls is None:
        return sock
    sock.settimeout(max(deadline - time.monotonic(), 0.001))
    try:
        return shake_hands(sock, tls, host)
    except HandshakeFailed as error:
        raise TlsRefused(f"{host}:{port}: {error}") from error
    except TimeoutError as error:
        raise BrokerUnreachable(f"{host}:{port}: no answer to the TLS handshake in {timeout_s:.0f} s") from error


class RpcConnection:
    """Call and answer, one at a time. Socket errors and timeouts surface as `BrokerUnreachable`."""

    def __init__(self, sock: socket.socket, client_id: str, timeout_s: float) -> None:
        self._sock = sock
        self._timeout_s = timeout_s
        self._client_id = client_id
        self._correlation_id = 0
        self._ranges: dict[int, tuple[int, int]] = {}
        answer = self._exchange(ApiVersionsRequest(version=0))
        if answer.error_code:
            raise UnsupportedBroker(f"ApiVersions was answered with error {answer.error_code}")
        self._ranges = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}

    @classmethod
    def dial(
        cls,
        host: str,
        port: int,
        *,
        client_id: str,
        timeout_s: float,
        tls: ssl.SSLContext | None = None,
        send_buffer: int = -1,
        receive_buffer: int = -1,
    ) -> Self:
        """Connect, and ask what the broker speaks."""
        sock = connect(host, port, timeout_s=timeout_s, tls=tls, send_buffer=send_buffer, receive_buffer=receive_buffer)
        try:
            return cls(sock, client_id, timeout_s)
        except TlsRefused as error:
            sock.close()
            raise TlsRefused(f"{host}:{port}: {error}") from error
        except BaseException:
            sock.close()
            raise

    def version(self, api_key: int, ours: tuple[int, int], name: str) -> int:
        """The newest version of a request that both sides speak."""
        low, high = self._ranges.get(api_key, (0, -1))
        best = min(high, ours[1])
        if best < max(low, ours[0]):
            raise UnsupportedBroker(f"the broker speaks {name} v{low} to v{high}, sparkmirror v{ours[0]} to v{ours[1]}")
        return best

    def call(self, request: Any, *, newest: int | None = None) -> Any:
        """Send one of kafka-python's requests in the newest version of both, and wait for its answer.

        `newest`: no version above it, because it asks in other words.
        """
        kind = type(request)
        ours = kind.min_version, kind.max_version if newest is None else newest
        request.API_VERSION = self.version(kind.API_KEY, ours, kind.name)
        return self._exchange(request)

    def _exchange(self, request: Any) -> Any:
        self._correlation_id += 1
        request.with_header(correlation_id=self._correlation_id, client_id=self._client_id)
        frame = self._round_trip(request.encode(framed=True, header=True))
        return request.header.get_response_class().decode(memoryview(frame), header=True)

    def exchange_raw(self, buffers: list[bytes | memoryview]) -> memoryview:
        """Send one ready-made request and give the frame that answers it."""
        return memoryview(self._round_trip(_SIZE.pack(sum(map(len, buffers))) + b"".join(buffers)))

    def _round_trip(self, request: bytes | bytearray) -> bytearray:
        deadline = time.monotonic() + self._timeout_s
        try:
            self._sock.settimeout(self._timeout_s)
            with suppress(BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):  # it may have said why
                self._sock.sendall(request)
            return self._receive(_SIZE.unpack(self._receive(4, deadline))[0], deadline)
        except ssl.SSLError as error:  # with TLS 1.3 a broker may refuse us after the handshake
            raise TlsRefused(explain(error)) from error
        except OSError as error:
            raise BrokerUnreachable(str(error) or type(error).__name__) from error

    def _receive(self, size: int, deadline: float) -> bytearray:
        if size >> 16 == TLS_ALERT:
            raise ConnectionError("it wants TLS; write security.protocol = SSL for this cluster, or take another port")
        if not 0 <= size <= MAX_FRAME:
            raise ConnectionError(f"a frame of {size} bytes: this is not a Kafka broker")
        data = bytearray(size)
        view = memoryview(data)
        got = 0
        while got < size:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise TimeoutError(f"timed out after {self._timeout_s:.0f} s")
            self._sock.settimeout(left_s)
            received = self._sock.recv_into(view[got:])
            if received == 0:
                raise ConnectionResetError("the broker closed the connection")
            got += received
        return data

    def detach(self) -> socket.socket:
        """Hand the connected socket over; this object is done."""
        return self._sock

    def close(self) -> None:
        self._sock.close()
