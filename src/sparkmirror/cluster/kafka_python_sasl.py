"""kafka-python's clients sign in as ours do: by the same conversations, with secrets read anew, behind the same gate.

Its own mechanisms keep the password that a client was made with, and don't escape user names. A mechanism is found by
its name in one table for the whole process, so what is put there leaves clients alone that are not ours.
"""

from __future__ import annotations

import logging
from typing import Any

from kafka.net.sasl import SASL_MECHANISMS, register_sasl_mechanism
from kafka.net.sasl.abc import SaslMechanism
from kafka.net.sasl.oauth import AbstractTokenProvider

from sparkmirror.cluster.sign_in import ClusterSignIn, sign_in
from sparkmirror.config.login import GSSAPI, OAUTHBEARER, SCRAM
from sparkmirror.config.model import ClusterConfig
from sparkmirror.wire.sasl import Conversation


class _Carrier(AbstractTokenProvider):  # type: ignore[misc]
    """Brings our sign-in to our mechanism: of all that a client is given, this key takes an object."""

    def __init__(self, how: ClusterSignIn) -> None:
        super().__init__()
        self.how = how

    def token(self) -> str:
        raise NotImplementedError("it is asked by none of kafka-python's mechanisms")


def _no_raw_bytes(record: logging.LogRecord) -> bool:
    """Of what kafka-python logs at DEBUG, which anybody may set over REST: not the bytes of whole requests."""
    return not (isinstance(record.args, tuple) and any(isinstance(one, bytes | bytearray) for one in record.args))


class _Unprinted(bytes):
    """Nor what is in their fields."""

    def __repr__(self) -> str:
        return f"<{len(self)} bytes of a sign-in>"

    __str__ = __repr__


class _OurMechanism(SaslMechanism):  # type: ignore[misc]
    """One of our conversations in kafka-python's words."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._next = conversation.respond(b"")

    def auth_bytes(self) -> bytes:
        return _Unprinted(self._next or b"")

    def receive(self, auth_bytes: bytes) -> None:
        self._next = self._conversation.respond(bytes(auth_bytes))

    def is_done(self) -> bool:
        return self._next is None

    def is_authenticated(self) -> bool:
        return self._next is None


def sasl_settings(config: ClusterConfig) -> dict[str, Any]:
    """What a client of kafka-python is given to sign in to this cluster."""
    how = sign_in(config)
    if how is None:
        return {}
    _register()
    return {"sasl_mechanism": how.mechanism, "sasl_oauth_token_provider": _Carrier(how)}


def _register() -> None:
    logging.getLogger("kafka.protocol.parser").addFilter(_no_raw_bytes)  # once: the same filter is not added again
    for name in ("PLAIN", *SCRAM, OAUTHBEARER, GSSAPI):
        theirs = SASL_MECHANISMS[name]
        if not isinstance(theirs, _Either):
            register_sasl_mechanism(name, _Either(theirs), overwrite=True)


class _Either:
    """Makes our mechanism for our clients, and kafka-python's own for others."""

    def __init__(self, theirs: Any) -> None:
        self._theirs = theirs

    def __call__(self, **config: Any) -> Any:
        carrier = config.get("sasl_oauth_token_provider")
        if isinstance(carrier, _Carrier):
            return _OurMechanism(carrier.how.begin(config["host"]))
        return self._theirs(**config)
