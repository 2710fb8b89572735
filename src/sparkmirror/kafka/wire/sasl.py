"""SASL conversations between client and broker: one message in, one out.

The module has no socket and no configuration. PLAIN is RFC 4616, SCRAM RFC 5802 with RFC 7677's hashes and SHA-512,
OAUTHBEARER RFC 7628, GSSAPI RFC 4752, each as Kafka's own client speaks it: without channel binding and SASLprep, and
(GSSAPI excepted) without authorization ids.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Protocol

from sparkmirror.errors import HandledError

LEAST_ITERATIONS = 4096
"""Fewest SCRAM iterations that are accepted, as in Kafka's client.

Fewer would make the password easier to find.
"""

MOST_ITERATIONS = 1_000_000
"""Most iterations accepted: more would take seconds of CPU for each connection."""

_SASL_EXTENSION = re.compile(r"[A-Za-z]+")


class SaslError(HandledError):
    """Client and broker disagree; the text is one line without a secret."""


class Conversation(Protocol):
    """One sign-in."""

    def respond(self, challenge: bytes) -> bytes | None:
        """Return the next message to send; None at the end.

        The first challenge is empty. Raises `SaslError`.
        """


class Plain:
    """Name and password, in clear."""

    def __init__(self, username: str, password: str) -> None:
        self._message: bytes | None = f"\0{username}\0{password}".encode()

    def respond(self, challenge: bytes) -> bytes | None:
        """Return the only message; then None."""
        message, self._message = self._message, None
        return message


class Scram:
    """Mutual proof that client and broker know the password, without sending it."""

    def __init__(self, mechanism: str, username: str, password: str, nonce: str = "") -> None:
        self._hash = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}[mechanism]
        self._password = password.encode()
        self._nonce = nonce or secrets.token_urlsafe(24)
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={self._nonce}"
        self._server_signature = b""
        self._step: Callable[[bytes], bytes | None] = self._begin

    def respond(self, challenge: bytes) -> bytes | None:
        """Take one of three steps: name, proof, and check of the broker's proof."""
        return self._step(challenge)

    def _begin(self, _: bytes) -> bytes | None:
        self._step = self._prove
        return f"n,,{self._bare}".encode()

    def _prove(self, challenge: bytes) -> bytes | None:
        said = _fields(challenge)
        try:
            nonce, salt, iterations = said["r"], base64.b64decode(said["s"], validate=True), int(said["i"])
        except (KeyError, ValueError):
            raise SaslError("the broker's SCRAM message can't be read") from None
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise SaslError("the broker's SCRAM message does not answer sparkmirror's")
        if not LEAST_ITERATIONS <= iterations <= MOST_ITERATIONS:
            raise SaslError(f"the broker asks for {iterations} iterations, not {LEAST_ITERATIONS} to {MOST_ITERATIONS}")
        without_proof = f"c=biws,r={nonce}"
        message = f"{self._bare},{challenge.decode()},{without_proof}".encode()
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
        client_key = self._hmac(salted, b"Client Key")
        signature = self._hmac(hashlib.new(self._hash, client_key).digest(), message)
        proof = bytes(key ^ sign for key, sign in zip(client_key, signature, strict=True))
        self._server_signature = self._hmac(self._hmac(salted, b"Server Key"), message)
        self._step = self._check
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def _check(self, challenge: bytes) -> bytes | None:
        said = _fields(challenge)
        if "e" in said:
            raise SaslError(said["e"])
        try:
            signature = base64.b64decode(said.get("v", ""), validate=True)
        except ValueError:  # no base64, or no ASCII
            signature = b""
        if not hmac.compare_digest(signature, self._server_signature):
            raise SaslError("the broker could not prove that it knows sparkmirror's password: it may be an impostor")
        return None

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash)


def _fields(message: bytes) -> dict[str, str]:
    """Return the attributes in a SCRAM message. Raises `SaslError`."""
    try:
        return {part[0]: part[2:] for part in message.decode().split(",") if part[1:2] == "="}
    except UnicodeDecodeError:
        raise SaslError("the broker's SCRAM message can't be read") from None


class OAuthBearer:
    """A token, with the operator's own extensions."""

    def __init__(self, token: str, extensions: Mapping[str, str]) -> None:
        for name in extensions:
            if name == "auth" or not _SASL_EXTENSION.fullmatch(name):
                raise SaslError(f"an extension can't be called {name}: letters only, and not auth")
        said = "".join(f"{name}={value}\x01" for name, value in extensions.items())
        self._message: bytes | None = f"n,,\x01auth=Bearer {token}\x01{said}\x01".encode()
        self._refusal = ""

    def respond(self, challenge: bytes) -> bytes | None:
        """Return the token first; treat a challenge after the token as a refusal.

        RFC 7628 demands a one-byte answer to the refusal; the call after raises `SaslError`.
        """
        if self._refusal:
            raise SaslError(self._refusal)
        if self._message is not None:
            message, self._message = self._message, None
            return message
        if not challenge:
            return None
        try:
            status = json.loads(challenge).get("status")
        except (ValueError, AttributeError, RecursionError):
            status = None
        self._refusal = f"the broker refuses the token ({status or 'without a reason'})"
        return b"\x01"


class SecurityContext(Protocol):
    """A Kerberos negotiation (RFC 2743). Its methods raise `SaslError`."""

    @property
    def complete(self) -> bool:
        """True once client and broker have authenticated each other."""

    @property
    def initiator(self) -> str:
        """The client's principal, known once the context is complete."""

    def step(self, token: bytes) -> bytes:
        """Return the next token to send, perhaps empty.

        `token` is the broker's last token, empty at first.
        """

    def wrap(self, message: bytes) -> bytes:
        """Return the message with a proof of who sent it."""

    def unwrap(self, message: bytes) -> bytes:
        """Check the proof in the broker's message, and return the message."""


class Gssapi:
    """Kerberos tickets, then the agreement to send unwrapped data.

    See RFC 4752, section 3.1.
    """

    NO_LAYER = 1
    """Bit for "no security layer" in the broker's offer of layers."""

    def __init__(self, context: SecurityContext) -> None:
        self._context = context
        self._agreed = False

    def respond(self, challenge: bytes) -> bytes | None:
        """Return tokens until the context is complete, then the agreement, then None.

        A token is empty if there is none to send.
        """
        if not self._context.complete:
            return self._context.step(challenge)
        if self._agreed:
            return None
        offer = self._context.unwrap(challenge)
        if len(offer) != 4 or not offer[0] & self.NO_LAYER:  # a byte of layers, three of a size
            raise SaslError("the broker wants all that follows to be wrapped, which Kafka's brokers don't")
        self._agreed = True
        return self._context.wrap(bytes((self.NO_LAYER, 0, 0, 0)) + self._context.initiator.encode())
