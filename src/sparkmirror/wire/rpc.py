"""One blocking connection to a broker, for everything but the two hot requests.

The messages are kafka-python's (`kafka.protocol`); this only carries them, with a deadline on every call.
"""

from __future__ import annotations

import random
import socket
import ssl
import struct
import time
from contextlib import suppress
from typing import Any, Protocol, Self

from kafka.protocol.metadata import ApiVersionsRequest
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

from sparkmirror.wire.sasl import Conversation, SaslError
from sparkmirror.wire.tls import HandshakeFailed, explain, shake_hands

_SIZE = struct.Struct(">i")

MAX_FRAME = 1 << 28
"""Bytes; a larger answer is none: whatever listens there does not speak Kafka."""

_AT_ONCE = 8 << 20
"""Bytes: memory for a larger answer is taken as it comes, its size is only what the broker says."""

_UNDECODABLE = (struct.error, IndexError, KeyError, TypeError, ValueError, OverflowError, EOFError)
"""What kafka-python's decoders raise for bytes that are no answer; it has no name for it."""

TLS_ALERT = 0x1503
"""How a TLS alert begins (RFC 8446, section 5.1): what a TLS port says to those that speak in clear."""

UNSUPPORTED_MECHANISM = 33
NOT_ASKED_FOR = 34
SIGN_IN_FAILED = 58
"""Kafka's UNSUPPORTED_SASL_MECHANISM, ILLEGAL_SASL_STATE and SASL_AUTHENTICATION_FAILED."""

RENEWED_AFTER = (0.85, 0.95)
"""Of a session's lifetime, somewhere in between: when we sign in again, as Kafka's own clients do (KIP-368)."""

SHORTEST_SESSION_S = 1.1
"""Brokers take a second sign-in for an attack if it comes within a second of the first."""

USER_TIMEOUT_MS = 5_000
"""For TCP_USER_TIMEOUT: the kernel gives up on unacknowledged data, so that it can't deliver it much later (R6)."""


class BrokerUnreachable(ConnectionError):
    """A broker can't be connected to, or doesn't answer in time."""


class AccessRefused(BrokerUnreachable):
    """A broker answers, but does not let us in, or we don't trust it: asking again at once won't help."""


class TlsRefused(AccessRefused):
    """The two of us can't agree on TLS."""


class SignInRefused(AccessRefused):
    """The broker refuses who we say we are, or we have nothing to show."""


class SignIn(Protocol):
    """How to sign in by SASL."""

    @property
    def mechanism(self) -> str:
        """What brokers call it."""

    @property
    def principal(self) -> str:
        """Whom we sign in as, in words; no secret."""

    def begin(self, host: str) -> Conversation:
        """One sign-in at this broker; raises `SaslError` if there is nothing to sign in with."""


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

    def __init__(
        self, sock: socket.socket, client_id: str, timeout_s: float, sign_in: SignIn | None = None, host: str = ""
    ) -> None:
        self.renew_at = float("inf")
        """When the session must be renewed by `sign_in`, on `time.monotonic`'s clock."""
        self._sign_in = sign_in
        self._host = host
        self._sock = sock
        self._timeout_s = timeout_s
        self._client_id = client_id
        self._correlation_id = 0
        self._answers = 0
        self._ranges: dict[int, tuple[int, int]] = {}
        answer = self._exchange(ApiVersionsRequest(version=0))
        if answer.error_code:
            raise UnsupportedBroker(f"ApiVersions was answered with error {answer.error_code}")
        self._ranges = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
        self.sign_in()

    def sign_in(self) -> None:
        """Sign in by SASL, or again on the same connection, with nothing in flight; raises `SignInRefused`.

        What the broker has and who we are must not change in between (KIP-368).
        """
        how = self._sign_in
        if how is None:
            return
        who = f"sign-in by {how.mechanism}{' as ' + how.principal if how.principal else ''}"
        self._settle_on(how.mechanism, who)
        try:
            conversation = how.begin(self._host)
            message, answer = conversation.respond(b""), None
            while message is not None:
                request = SaslAuthenticateRequest(message)
                request.API_VERSION = self.version(request.API_KEY, (0, request.max_version), request.name)
                answer = self._exchange(request)
                if answer.error_code:
                    why = " ".join((answer.error_message or "without a reason").split())
                    raise SignInRefused(f"{who} is refused: {why}; check sasl.jaas.config, and the user at the broker")
                message = conversation.respond(bytes(answer.auth_bytes))
        except SaslError as error:
            raise SignInRefused(f"{who} failed: {error}") from None
        lifetime_s = getattr(answer, "session_lifetime_ms", 0) / 1000
        share = random.uniform(*RENEWED_AFTER)  # noqa: S311 - only so that not all come at once
        self.renew_at = time.monotonic() + max(lifetime_s * share, SHORTEST_SESSION_S) if lifetime_s else float("inf")

    @property
    def renewal_due(self) -> bool:
        """Whether `sign_in` must be called before anything else is sent; later than due is early enough."""
        return time.monotonic() >= self.renew_at

    def _renew_if_due(self) -> None:
        if self.renewal_due:
            self.sign_in()

    def _settle_on(self, mechanism: str, who: str) -> None:
        request = SaslHandshakeRequest(mechanism=mechanism)
        request.API_VERSION = self.version(request.API_KEY, (1, request.max_version), request.name)
        answer = self._exchange(request)
        if answer.error_code == UNSUPPORTED_MECHANISM:
            offered = ", ".join(answer.mechanisms)
            raise SignInRefused(f"{who} is not possible here, only by {offered}; check sasl.mechanism and the port")
        if answer.error_code == NOT_ASKED_FOR:
            raise SignInRefused(f"{who} is not asked for here; check security.protocol and the port")
        if answer.error_code:
            raise SignInRefused(f"{who} was answered with error {answer.error_code}")

    @classmethod
    def dial(
        cls,
        host: str,
        port: int,
        *,
        client_id: str,
        timeout_s: float,
        tls: ssl.SSLContext | None = None,
        sign_in: SignIn | None = None,
        send_buffer: int = -1,
        receive_buffer: int = -1,
    ) -> Self:
        """Connect, ask what the broker speaks, and sign in."""
        sock = connect(host, port, timeout_s=timeout_s, tls=tls, send_buffer=send_buffer, receive_buffer=receive_buffer)
        try:
            return cls(sock, client_id, timeout_s, sign_in, host)
        except AccessRefused as error:
            sock.close()
            raise type(error)(f"{host}:{port}: {error}") from error
        except BaseException:
            sock.close()
            raise

    def speaks(self, api_key: int) -> int:
        """The newest version of a request that the broker knows; -1: it does not know the request."""
        return self._ranges.get(api_key, (0, -1))[1]

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
        self._renew_if_due()
        ours = kind.min_version, kind.max_version if newest is None else newest
        request.API_VERSION = self.version(kind.API_KEY, ours, kind.name)
        return self._exchange(request)

    def _exchange(self, request: Any) -> Any:
        self._correlation_id += 1
        request.with_header(correlation_id=self._correlation_id, client_id=self._client_id)
        frame = self._round_trip(request.encode(framed=True, header=True))
        try:
            return request.header.get_response_class().decode(memoryview(frame), header=True)
        except _UNDECODABLE as error:
            raise BrokerUnreachable(f"its answer to {request.name} can't be read ({error})") from error

    def exchange_raw(self, buffers: list[bytes | memoryview]) -> memoryview:
        """Send one ready-made request and give the frame that answers it."""
        self._renew_if_due()
        return memoryview(self._round_trip(_SIZE.pack(sum(map(len, buffers))) + b"".join(buffers)))

    def _round_trip(self, request: bytes | bytearray) -> bytearray:
        deadline = time.monotonic() + self._timeout_s
        try:
            self._sock.settimeout(self._timeout_s)
            with suppress(BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):  # it may have said why
                self._sock.sendall(request)
            answer = self._receive(_SIZE.unpack(self._receive(4, deadline))[0], deadline)
            self._answers += 1
            return answer
        except ssl.SSLError as error:  # with TLS 1.3 a broker may refuse us after the handshake
            raise TlsRefused(explain(error)) from error
        except OSError as error:
            raise BrokerUnreachable(str(error) or type(error).__name__) from error

    def _receive(self, size: int, deadline: float) -> bytearray:
        if size >> 16 == TLS_ALERT:
            raise ConnectionError("it wants TLS; write security.protocol = SSL for this cluster, or take another port")
        if not 0 <= size <= MAX_FRAME:
            raise ConnectionError(f"a frame of {size} bytes: this is not a Kafka broker")
        data, got = bytearray(), 0
        while got < size:
            if got == len(data):
                data += bytes(min(size - got, _AT_ONCE))
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise TimeoutError(f"timed out after {self._timeout_s:.0f} s")
            self._sock.settimeout(left_s)
            with memoryview(data)[got:] as view:
                received = self._sock.recv_into(view)
            if received == 0:
                raise ConnectionResetError("the broker closed the connection" + self._hint())
            got += received
        return data

    def _hint(self) -> str:
        """Whoever may ask what a broker speaks, and nothing else, is expected to sign in."""
        stranger = self._sign_in is None and self._answers == 1
        return "; does it want SASL? check security.protocol and the port" if stranger else ""

    @property
    def spoken(self) -> tuple[tuple[int, int, int], ...]:
        """What the broker speaks: each request's key, with its oldest and newest version."""
        return tuple((key, *versions) for key, versions in sorted(self._ranges.items()))

    @property
    def socket(self) -> socket.socket:
        """The connected socket, for those that speak over it themselves; `sign_in` is still called here."""
        return self._sock

    def close(self) -> None:
        self._sock.close()
