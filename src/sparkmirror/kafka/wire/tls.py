"""TLS over a connected socket: handshake, clear errors, and a channel.

The channel is for the hot requests, Fetch and Produce. The caller's `ssl.SSLContext` says what is trusted and offered
(`cluster.tls_contexts`).
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Sequence

from sparkmirror.errors import ClusterTrouble
from sparkmirror.kafka.wire.buffers import FramePool
from sparkmirror.kafka.wire.channel import Buffer, Channel, ChannelClosed, Session

RECORD = 16_384
"""Most bytes in a TLS record (RFC 8446, section 5.1)."""

_WRONG_NAME = {62, 64}
"""OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH."""

_EXPIRED = 10
"""OpenSSL's X509_V_ERR_CERT_HAS_EXPIRED."""
_NO_COMMON_VERSION = ("PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL")
_NO_CERTIFICATE = (
    "ALERT_BAD_CERTIFICATE",
    "ALERT_CERTIFICATE_REQUIRED",
    "ALERT_CERTIFICATE_UNKNOWN",
    "ALERT_HANDSHAKE_FAILURE",
    "ALERT_UNKNOWN_CA",
)
"""Alerts that brokers send to a client without a trusted certificate.

Java's and OpenSSL's alerts differ.
"""


class HandshakeFailed(ClusterTrouble):
    """Client and broker disagree on TLS; one line with reason and remedy."""


def shake_hands(sock: socket.socket, context: ssl.SSLContext, host: str) -> ssl.SSLSocket:
    """Speak TLS from now on, within the socket's timeout; close the socket on failure.

    The broker's certificate must name `host` if the context says so. Raises `HandshakeFailed`, or `TimeoutError` if the
    broker did not answer.
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
    """Explain a failure on a TLS connection in one line."""
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
        return "it speaks no version of TLS that sparkmirror offers; check ssl.enabled.protocols and ssl.protocol"
    if reason.endswith("ALERT_CERTIFICATE_EXPIRED"):
        return "it says that sparkmirror's certificate has expired; renew the certificate in ssl.keystore"
    if reason.endswith(_NO_CERTIFICATE):
        words = "check ssl.keystore, and until when its certificate is valid"
        return f"it refuses sparkmirror's certificate, or asks for one ({_words(reason)}); {words}"
    return f"TLS failed ({_words(reason) or error}); check the port and security.protocol"


def _words(reason: str) -> str:
    return reason.replace("_", " ").lower()


def open_channel(sock: socket.socket, pool: FramePool, session: Session | None = None) -> Channel:
    """Return a channel over this connected socket, with or without TLS.

    `session` is the sign-in that was made over the socket.
    """
    kind = TlsChannel if isinstance(sock, ssl.SSLSocket) else Channel
    return kind(sock, pool, session)


class TlsChannel(Channel):
    """A channel over TLS that sends small buffers together.

    Each piece that is sent makes its own TLS record. OpenSSL decrypts a whole record at once, and so may hold data that
    no selector reports: `receive` always reads until nothing is left. OpenSSL wants an unsent piece again, unchanged.
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
    """Yield the same bytes in pieces: large buffers unchanged, small ones joined.

    A large buffer gives its first bytes to the record that the small buffers before have begun.
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
