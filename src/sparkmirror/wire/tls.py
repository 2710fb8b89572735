"""TLS over a connected socket: the handshake, its failures in plain words, and a channel for the hot requests.

What is trusted and offered is in an `ssl.SSLContext` that the caller has made (`cluster.tls`).
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Sequence

from sparkmirror.wire.buffers import FramePool
from sparkmirror.wire.channel import Buffer, Channel, ChannelClosed, Session

RECORD = 16_384
"""Bytes, the most that one TLS record holds (RFC 8446, section 5.1)."""

_WRONG_NAME = {62, 64}
"""X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH of OpenSSL."""

_EXPIRED = 10
"""X509_V_ERR_CERT_HAS_EXPIRED."""
_NO_COMMON_VERSION = ("PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL")
_NO_CERTIFICATE = (
    "ALERT_BAD_CERTIFICATE",
    "ALERT_CERTIFICATE_REQUIRED",
    "ALERT_CERTIFICATE_UNKNOWN",
    "ALERT_HANDSHAKE_FAILURE",
    "ALERT_UNKNOWN_CA",
)
"""What brokers say to a client without a certificate that they trust; Java's and OpenSSL's differ."""


class HandshakeFailed(ConnectionError):
    """The two sides don't agree on TLS; one line that says why and what to check."""


def shake_hands(sock: socket.socket, context: ssl.SSLContext, host: str) -> ssl.SSLSocket:
    """Speak TLS from now on, within the socket's timeout; it is closed if that fails.

    `host` is what the certificate must name, if the context says so. Raises `HandshakeFailed`, or
    `TimeoutError` if there was no answer.
    """
    try:
        return context.wrap_socket(sock, server_hostname=host)
    except TimeoutError:
        sock.close()
        raise
    except OSError as error:
        sock.close()
        hung_up = isinstance(error, ssl.SSLEOFError | ConnectionResetError | BrokenPipeError)
        why = "it hung up during the TLS handshake; check that this port speaks TLS" if hung_up else explain(error)
        raise HandshakeFailed(why) from error


def explain(error: OSError) -> str:
    """What went wrong on a TLS connection, as one line."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _WRONG_NAME:
            return (
                f"its certificate is not for this host ({error.verify_message.rstrip('.')}); "
                f"check bootstrap.servers, advertised.listeners and ssl.endpoint.identification.algorithm"
            )
        if error.verify_code == _EXPIRED:
            return "its certificate has expired; renew it at the broker, or set this machine's clock"
        return f"its certificate is not trusted ({error.verify_message}); check ssl.truststore"
    if not isinstance(error, ssl.SSLError):
        return error.strerror or str(error) or type(error).__name__
    reason = error.reason or ""
    if reason.endswith(_NO_COMMON_VERSION):
        return "it speaks no version of TLS that we offer; check ssl.enabled.protocols and ssl.protocol"
    if reason.endswith("ALERT_CERTIFICATE_EXPIRED"):
        return "it says that our certificate has expired; renew what ssl.keystore names"
    if reason.endswith(_NO_CERTIFICATE):
        words = "check ssl.keystore, and until when its certificate is valid"
        return f"it refuses our certificate, or wants one ({_words(reason)}); {words}"
    return f"TLS failed ({_words(reason) or error}); check the port and security.protocol"


def _words(reason: str) -> str:
    return reason.replace("_", " ").lower()


def open_channel(sock: socket.socket, pool: FramePool, session: Session | None = None) -> Channel:
    """A channel over this connected socket, as it is; `session` is what was signed in to over it."""
    kind = TlsChannel if isinstance(sock, ssl.SSLSocket) else Channel
    return kind(sock, pool, session)


class TlsChannel(Channel):
    """A channel over TLS: what is small is sent together, as each piece makes a record of its own.

    OpenSSL decrypts a record at once, so it may hold data that no selector shows: `receive` always reads
    until there is nothing left. A piece that it could not send it wants to see again, unchanged.
    """

    _not_now = (ssl.SSLWantReadError, ssl.SSLWantWriteError)

    def _queue(self, size: bytes, buffers: Sequence[Buffer]) -> None:
        self._out.extend(full_records([size, *buffers]))

    def flush(self) -> None:
        out = self._out
        try:
            while out:
                piece = out[0]
                self._must_be_in_time()
                sent = self._sock.send(piece)
                if sent == len(piece):
                    out.popleft()
                else:
                    out[0] = piece[sent:]
        except self._not_now:
            return
        except OSError as error:
            raise ChannelClosed(str(error)) from error


def full_records(buffers: Sequence[Buffer]) -> Iterator[memoryview]:
    """The same bytes in pieces: large buffers as they are, small ones put together.

    A large buffer gives its first bytes to the record that the small ones before it have begun.
    """
    gathered = bytearray()
    for buffer in buffers:
        view = memoryview(buffer)
        if gathered or len(view) < RECORD:
            room = RECORD - len(gathered)
            gathered += view[:room]
            view = view[room:]
            if len(gathered) == RECORD:
                yield memoryview(gathered)
                gathered = bytearray()
        if len(view) >= RECORD:
            yield view
        else:
            gathered += view
    if gathered:
        yield memoryview(gathered)
