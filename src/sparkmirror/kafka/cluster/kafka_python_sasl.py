"""sparkmirror's SASL mechanisms for kafka-python's clients.

kafka-python's clients thus sign in by the same conversations, with secrets read again each time, behind the same gate.
kafka-python's own mechanisms keep the password that the client was created with, and don't escape user names.
kafka-python looks mechanisms up by name in a table for the whole process, so the entries put there leave the
application's own clients alone.
"""

from __future__ import annotations

import logging
from typing import Any

from kafka.net.sasl import SASL_MECHANISMS, register_sasl_mechanism
from kafka.net.sasl.abc import SaslMechanism
from kafka.net.sasl.oauth import AbstractTokenProvider

from sparkmirror.config.login import GSSAPI, OAUTHBEARER, SCRAM
from sparkmirror.config.model import ClusterConfig
from sparkmirror.kafka.cluster.sign_in import ClusterSignIn, sign_in
from sparkmirror.kafka.wire.sasl import Conversation


class _Carrier(AbstractTokenProvider):  # type: ignore[misc]
    """Carrier for the sign-in to `_OurMechanism`.

    Among a kafka-python client's settings, only `sasl_oauth_token_provider` takes an object.
    """

    def __init__(self, how: ClusterSignIn) -> None:
        super().__init__()
        self.how = how

    def token(self) -> str:
        raise NotImplementedError("it is asked by none of kafka-python's mechanisms")


def _no_raw_bytes(record: logging.LogRecord) -> bool:
    """Drop log records with whole requests' bytes.

    kafka-python logs them at DEBUG, and any REST interface user may set that level.
    """
    return not (isinstance(record.args, tuple) and any(isinstance(arg, bytes | bytearray) for arg in record.args))


class _Unprinted(bytes):
    """A sign-in's bytes that print only their number, as a request's field in a log."""

    def __repr__(self) -> str:
        return f"<{len(self)} bytes of a sign-in>"

    __str__ = __repr__


class _OurMechanism(SaslMechanism):  # type: ignore[misc]
    """A conversation of `wire.sasl`, behind kafka-python's interface for mechanisms."""

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
    how = sign_in(config)
    if how is None:
        return {}
    _register()
    return {"sasl_mechanism": how.mechanism, "sasl_oauth_token_provider": _Carrier(how)}


def _register() -> None:
    logging.getLogger("kafka.protocol.parser").addFilter(_no_raw_bytes)  # `addFilter` adds the same filter only once
    for name in ("PLAIN", *SCRAM, OAUTHBEARER, GSSAPI):
        original = SASL_MECHANISMS[name]
        if not isinstance(original, _Either):
            register_sasl_mechanism(name, _Either(original), overwrite=True)


class _Either:
    """Mechanism factory: `_OurMechanism` for sparkmirror's clients.

    The process's other clients get kafka-python's own mechanism.
    """

    def __init__(self, original: Any) -> None:
        self._theirs = original

    def __call__(self, **config: Any) -> Any:
        carrier = config.get("sasl_oauth_token_provider")
        if isinstance(carrier, _Carrier):
            return _OurMechanism(carrier.how.begin(config["host"]))
        return self._theirs(**config)
