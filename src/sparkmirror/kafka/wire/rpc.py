"""One blocking connection to a broker, for all requests but Fetch and Produce.

The messages are kafka-python's (`kafka.protocol`); this module only carries messages, with a deadline on every call.
"""

from __future__ import annotations

import math
import random
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol, Self

from kafka.protocol.metadata import ApiVersionsRequest
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

from sparkmirror.errors import ClusterTrouble
from sparkmirror.kafka.wire.answer_bounds import AnswerBound, bound_of, raw_bound
from sparkmirror.kafka.wire.bounded_decoding import decode
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.primitives import INT32, Garbled, Reader, check_answer
from sparkmirror.kafka.wire.sasl import Conversation, SaslError
from sparkmirror.kafka.wire.tls import HandshakeFailed, explain, shake_hands

_SIZE = struct.Struct(">i")
_API_KEY = struct.Struct(">h")
_CORRELATION_ID_AT = 4
"""Place of the correlation id in each request, after its key and version."""

_FIRST_BYTES = 64 << 10
"""Memory bytes taken for an answer before any byte has come.

Then the memory doubles as the bytes come in, since the announced size is only the broker's claim.
"""

_UNDECODABLE = (struct.error, IndexError, KeyError, TypeError, ValueError, OverflowError, EOFError)
"""Exceptions that kafka-python's decoders raise for bytes of no valid answer.

kafka-python has no common class for these errors.
"""

TLS_ALERT = 0x1503
"""First two bytes of a TLS alert (RFC 8446, section 5.1).

A TLS port answers so to a client that speaks in clear.
"""

RENEWED_AFTER = (0.85, 0.95)
"""Share of a session's lifetime before a new sign-in, random in this range.

Kafka's own clients do the same (KIP-368).
"""

SHORTEST_SESSION_S = 1.1
"""Shortest time until a second sign-in on a connection.

Brokers take a second sign-in within a second for an attack.
"""

USER_TIMEOUT_MS = 5_000
"""TCP_USER_TIMEOUT: after this time the kernel drops unacknowledged data.

So the kernel can't deliver the data much later (R6).
"""


class BrokerUnreachable(ClusterTrouble):
    """A broker refuses connections, or doesn't answer in time."""


class AccessRefused(BrokerUnreachable):
    """A broker denies access, or its certificate is not trusted.

    The broker is reachable, but asking again at once won't help.
    """


class TlsRefused(AccessRefused):
    """Broker and sparkmirror can't agree on TLS."""


class SignInRefused(AccessRefused):
    """The broker refuses the credentials, or there are no credentials to show."""


class SignIn(Protocol):
    """A way to sign in by SASL."""

    @property
    def mechanism(self) -> str:
        """Kafka's name for the mechanism."""

    @property
    def principal(self) -> str:
        """Name that sparkmirror signs in as, in words; no secret."""

    def begin(self, host: str) -> Conversation:
        """Begin a sign-in at this broker.

        Raises `SaslError` if there are no credentials to sign in with.
        """


class AnswerTooLarge(BrokerUnreachable):
    """A broker announces a larger answer than its request can have.

    The answer is not read, and the connection is closed.
    """


class UnsupportedBroker(ClusterTrouble):
    """A broker speaks no version of a request that sparkmirror supports."""


def connect(
    host: str,
    port: int,
    *,
    timeout_s: float,
    tls: ssl.SSLContext | None = None,
    send_buffer: int = -1,
    receive_buffer: int = -1,
) -> socket.socket:
    """Return a connected socket with a timeout; with TLS if `tls` is given.

    A buffer size of -1 leaves the system's default.
    """
    deadline = time.monotonic() + timeout_s
    try:
        sock = socket.create_connection((host, port), timeout=timeout_s)
    except ValueError as error:
        raise BrokerUnreachable(f"{host!r}:{port} is no address ({error})") from error
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
    except ValueError as error:
        sock.close()
        raise BrokerUnreachable(f"{host!r}:{port} is no address ({error})") from error
    except TimeoutError as error:
        raise BrokerUnreachable(f"{host}:{port}: no answer to the TLS handshake in {timeout_s:.0f} s") from error


@contextmanager
def _reported() -> Iterator[None]:
    """Raise socket errors in sparkmirror's own words."""
    try:
        yield
    except ssl.SSLError as error:  # with TLS 1.3 a broker may refuse the client after the handshake
        raise TlsRefused(explain(error)) from error
    except BrokerUnreachable:
        raise
    except OSError as error:
        raise BrokerUnreachable(str(error) or type(error).__name__) from error


class RpcConnection:
    """Calls to a broker, one at a time.

    Socket errors and timeouts surface as `BrokerUnreachable`.
    """

    def __init__(
        self, sock: socket.socket, client_id: str, timeout_s: float, sign_in: SignIn | None = None, host: str = ""
    ) -> None:
        self.renew_at = float("inf")
        """Time at which `sign_in` must renew the session, by `time.monotonic`'s clock."""
        self._sign_in = sign_in
        self._host = host
        self._sock = sock
        self._timeout_s = timeout_s
        self._client_id = client_id
        self._correlation_id = 0
        self._answers = 0
        self._bound = AnswerBound("", 0)
        """Bound for the answer to the request in flight."""
        self._deadline = 0.0
        """Latest time of the answer to the request in flight, by `time.monotonic`'s clock."""
        self.round_trip_s = math.inf
        """Shortest time from a request to its answer so far."""
        self._ranges: dict[int, tuple[int, int]] = {}
        answer = self.ask_versions()
        if answer.error_code:
            raise UnsupportedBroker(f"ApiVersions was answered with error {answer.error_code}")
        self._ranges = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
        self.sign_in()

    def ask_versions(self) -> Any:
        """Return the broker's answer to ApiVersions, the smallest request.

        No request may be in flight.
        """
        return self._exchange(ApiVersionsRequest(version=0))

    def sign_in(self) -> None:
        """Sign in by SASL, also again on the same connection; no request in flight.

        The mechanism and the principal must stay the same on a connection (KIP-368). Raises `SignInRefused`.
        """
        how = self._sign_in
        if how is None:
            return
        who = f"sign-in by {how.mechanism}{' as ' + how.principal if how.principal else ''}"
        self._agree_on(how.mechanism, who)
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
        share = random.uniform(*RENEWED_AFTER)  # noqa: S311 - spreads the renewals of many connections
        self.renew_at = time.monotonic() + max(lifetime_s * share, SHORTEST_SESSION_S) if lifetime_s else float("inf")

    @property
    def renewal_due(self) -> bool:
        """True if `sign_in` must be called before anything else is sent.

        Signing in somewhat later than due is early enough.
        """
        return time.monotonic() >= self.renew_at

    def renew_if_due(self) -> None:
        """Sign in again if it is time; raises as `sign_in`."""
        if self.renewal_due:
            self.sign_in()

    def _agree_on(self, mechanism: str, who: str) -> None:
        request = SaslHandshakeRequest(mechanism=mechanism)
        request.API_VERSION = self.version(request.API_KEY, (1, request.max_version), request.name)
        answer = self._exchange(request)
        if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            offered = ", ".join(answer.mechanisms)
            raise SignInRefused(f"{who} is not possible here, only by {offered}; check sasl.mechanism and the port")
        if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
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
        """Connect, ask the broker for its versions, and sign in."""
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
        """Return the broker's newest version for a request; -1 for an unknown request."""
        return self._ranges.get(api_key, (0, -1))[1]

    def version(self, api_key: int, supported: tuple[int, int], name: str) -> int:
        """Return a request's newest version that broker and sparkmirror speak.

        Raises `UnsupportedBroker` if there is none.
        """
        low, high = self._ranges.get(api_key, (0, -1))
        best = min(high, supported[1])
        if best < max(low, supported[0]):
            raise UnsupportedBroker(
                f"the broker speaks {name} v{low} to v{high}, sparkmirror v{supported[0]} to v{supported[1]}"
            )
        return best

    def call(self, request: Any, *, newest: int | None = None) -> Any:
        """Send a kafka-python request in the newest common version; return the answer.

        `newest` is the limit for a request whose later versions have other fields.
        """
        kind = type(request)
        self.renew_if_due()
        supported = kind.min_version, kind.max_version if newest is None else newest
        request.API_VERSION = self.version(kind.API_KEY, supported, kind.name)
        return self._exchange(request)

    def _exchange(self, request: Any) -> Any:
        self._correlation_id += 1
        request.with_header(correlation_id=self._correlation_id, client_id=self._client_id)
        encoded = request.encode(framed=True, header=True)
        self._bound = bound_of(request, len(encoded))
        frame = memoryview(self._round_trip(encoded))
        try:
            reader = Reader(frame, INT32.size)  # behind the correlation id, which is compared
            if request.flexible_version_q(request.API_VERSION):
                reader.tags()
            kind = request.header.get_response_class()
            return decode(kind, request.API_VERSION, frame, reader.at, self._bound.entries)
        except _UNDECODABLE as error:
            raise BrokerUnreachable(f"its answer to {request.name} can't be read ({error})") from error

    def exchange_raw(self, buffers: list[bytes | memoryview], bound: AnswerBound | None = None) -> memoryview:
        """Send a ready-made request, as `send_raw` does, and return the answering frame."""
        self.send_raw(buffers, bound)
        return self.receive_raw()

    def send_raw(self, buffers: list[bytes | memoryview], bound: AnswerBound | None = None) -> None:
        """Send a ready-made request; `receive_raw` must follow before any other call.

        The connection gives the request its correlation id. Without `bound` the answer has its kind's bound.
        """
        self.renew_if_due()
        self._correlation_id += 1
        size = sum(map(len, buffers))
        request = bytearray().join([_SIZE.pack(size), *buffers])
        self._bound = bound or raw_bound(_API_KEY.unpack_from(request, _SIZE.size)[0], size)
        _SIZE.pack_into(request, _SIZE.size + _CORRELATION_ID_AT, self._correlation_id)
        self._send(request)

    def receive_raw(self) -> memoryview:
        """Return the frame that answers the request sent by `send_raw`."""
        return memoryview(self._answer())

    def _round_trip(self, request: bytes | bytearray) -> bytearray:
        sent_at = time.monotonic()
        self._send(request)
        answer = self._answer()
        self.round_trip_s = min(self.round_trip_s, time.monotonic() - sent_at)
        return answer

    def _send(self, request: bytes | bytearray) -> None:
        self._deadline = time.monotonic() + self._timeout_s
        with _reported():
            self._sock.settimeout(self._timeout_s)
            with suppress(BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):  # its reason may still come
                self._sock.sendall(request)

    def _answer(self) -> bytearray:
        with _reported():
            answer = self._receive(_SIZE.unpack(self._receive(4, self._deadline))[0], self._deadline)
            self._answers += 1
        try:
            check_answer(memoryview(answer), self._correlation_id)
        except Garbled as error:
            self.close()
            raise BrokerUnreachable(str(error)) from error
        return answer

    def _receive(self, size: int, deadline: float) -> bytearray:
        if size >> 16 == TLS_ALERT:
            raise ConnectionError("it wants TLS; write security.protocol = SSL for this cluster, or take another port")
        if why := self._bound.excess(size):
            self.close()
            raise AnswerTooLarge(f"{self._host}: {why}" if self._host else why)
        data, got = bytearray(), 0
        while got < size:
            if got == len(data):
                data += bytes(min(size - got, max(got, _FIRST_BYTES)))
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
        """Return the hint that the broker may want SASL, if that is likely.

        A broker that answers ApiVersions and then closes the connection expects a sign-in.
        """
        stranger = self._sign_in is None and self._answers == 1
        return "; does it want SASL? check security.protocol and the port" if stranger else ""

    @property
    def spoken(self) -> tuple[tuple[int, int, int], ...]:
        """The broker's versions: each request's key with its oldest and newest version."""
        return tuple((key, *versions) for key, versions in sorted(self._ranges.items()))

    @property
    def socket(self) -> socket.socket:
        """The connected socket, for callers with their own protocol.

        `sign_in` is still called on this connection.
        """
        return self._sock

    def close(self) -> None:
        self._sock.close()
