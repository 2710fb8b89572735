"""SASL: what client and broker say to each other, one message in, one out. No socket here, no configuration.

PLAIN is RFC 4616, SCRAM RFC 5802 with the hashes of RFC 7677 and SHA-512, OAUTHBEARER RFC 7628, GSSAPI RFC 4752,
each as Kafka's own client speaks it: without channel binding, SASLprep or, but for GSSAPI, authorization ids.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Protocol

LEAST_ITERATIONS = 4096
"""Of SCRAM; fewer are refused, as Kafka's client does: they would make the password easier to find."""

MOST_ITERATIONS = 1_000_000
"""More would keep this machine busy for seconds with each connection."""

_SASL_EXTENSION = re.compile(r"[A-Za-z]+")


class SaslError(Exception):
    """The two sides don't agree; one line, without a secret."""


class Conversation(Protocol):
    """One sign-in."""

    def respond(self, challenge: bytes) -> bytes | None:
        """What to send next; None: we are done. The first challenge is empty. Raises `SaslError`."""


class Plain:
    """Name and password, in clear."""

    def __init__(self, username: str, password: str) -> None:
        self._message: bytes | None = f"\0{username}\0{password}".encode()

    def respond(self, challenge: bytes) -> bytes | None:
        """The one message, then nothing."""
        message, self._message = self._message, None
        return message


class Scram:
    """A proof that we know the password, and one that the broker does; it never travels."""

    def __init__(self, mechanism: str, username: str, password: str, nonce: str = "") -> None:
        self._hash = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}[mechanism]
        self._password = password.encode()
        self._nonce = nonce or secrets.token_urlsafe(24)
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={self._nonce}"
        self._server_signature = b""
        self._step: Callable[[bytes], bytes | None] = self._begin

    def respond(self, challenge: bytes) -> bytes | None:
        """Three steps: who we are, the proof, and the check of the broker's."""
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
            raise SaslError("the broker's SCRAM message is no answer to ours")
        if not LEAST_ITERATIONS <= iterations <= MOST_ITERATIONS:
            raise SaslError(f"the broker asks for {iterations} iterations, not {LEAST_ITERATIONS} to {MOST_ITERATIONS}")
        without_proof = f"c=biws,r={nonce}"
        message = f"{self._bare},{challenge.decode()},{without_proof}".encode()
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
        client_key = self._hmac(salted, b"Client Key")
        signature = self._hmac(hashlib.new(self._hash, client_key).digest(), message)
        proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        self._server_signature = self._hmac(self._hmac(salted, b"Server Key"), message)
        self._step = self._check
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def _check(self, challenge: bytes) -> bytes | None:
        said = _fields(challenge)
        if "e" in said:
            raise SaslError(said["e"])
        try:
            signature = base64.b64decode(said.get("v", ""), validate=True)
        except binascii.Error:
            signature = b""
        if not hmac.compare_digest(signature, self._server_signature):
            raise SaslError("the broker could not prove that it knows our password: it may be somebody else's")
        return None

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash)


def _fields(message: bytes) -> dict[str, str]:
    """The attributes of a SCRAM message. Raises `SaslError`."""
    try:
        return {part[0]: part[2:] for part in message.decode().split(",") if part[1:2] == "="}
    except UnicodeDecodeError:
        raise SaslError("the broker's SCRAM message can't be read") from None


class OAuthBearer:
    """A token, and extensions of the user's own."""

    def __init__(self, token: str, extensions: Mapping[str, str]) -> None:
        for name in extensions:
            if name == "auth" or not _SASL_EXTENSION.fullmatch(name):
                raise SaslError(f"an extension can't be called {name}: letters only, and not auth")
        said = "".join(f"{name}={value}\x01" for name, value in extensions.items())
        self._message: bytes | None = f"n,,\x01auth=Bearer {token}\x01{said}\x01".encode()
        self._refusal = ""

    def respond(self, challenge: bytes) -> bytes | None:
        """The token; a challenge is a refusal, which RFC 7628 has us answer with one byte."""
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
    """What two sides come to by Kerberos (RFC 2743); raises `SaslError` where they don't."""

    @property
    def complete(self) -> bool:
        """Whether each is sure of the other."""

    @property
    def initiator(self) -> str:
        """Our principal, once it is complete."""

    def step(self, token: bytes) -> bytes:
        """What to send next, perhaps nothing; `token` is what the broker sent, at first nothing."""

    def wrap(self, message: bytes) -> bytes:
        """The message with a proof that it is ours."""

    def unwrap(self, message: bytes) -> bytes:
        """The message of the broker's, its proof checked."""


class Gssapi:
    """Tickets, then the agreement that what follows is not wrapped (RFC 4752, section 3.1)."""

    NO_LAYER = 1
    """Of the security layers that a broker may offer, a bit each."""

    def __init__(self, context: SecurityContext) -> None:
        self._context = context
        self._agreed = False

    def respond(self, challenge: bytes) -> bytes | None:
        """Tokens until both are sure, an empty one if there is none to send; the agreement; nothing."""
        if not self._context.complete:
            return self._context.step(challenge)
        if self._agreed:
            return None
        offer = self._context.unwrap(challenge)
        if len(offer) != 4 or not offer[0] & self.NO_LAYER:  # a byte of layers, three of a size
            raise SaslError("the broker wants all that follows to be wrapped, which Kafka's brokers don't")
        self._agreed = True
        return self._context.wrap(bytes((self.NO_LAYER, 0, 0, 0)) + self._context.initiator.encode())
