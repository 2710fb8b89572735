"""kafka-python's own clients, with sparkmirror's settings.

Only the lease has such a client: a consumer group's member, which sparkmirror does not speak for itself.
"""

from __future__ import annotations

import logging
from typing import Any

from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from sparkmirror.config.model import ClusterConfig
from sparkmirror.kafka.cluster.kafka_python_sasl import sasl_settings
from sparkmirror.kafka.cluster.tls_contexts import ssl_context

LARGEST_ANSWER = 1 << 18
"""Largest answer that a client takes, in bytes.

kafka-python's own decoders may need a multiple of its bytes, and far more time. A lease asks for one topic with one
partition, the brokers, and the members in a group of few processes.
"""
RECEIVED_AT_ONCE = 1 << 16
"""Bytes after which a client looks at what it has received."""


class _Sips:
    """Socket that has no more for now after `RECEIVED_AT_ONCE` bytes.

    kafka-python gathers what a socket has until there is no more, and only then looks at it: a broker that sends
    without end would fill the memory.
    """

    def __init__(self, sock: Any) -> None:
        self._sock = sock
        self._taken = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)

    def recv(self, size: int) -> bytes:
        if self._taken >= RECEIVED_AT_ONCE and not self._is_held_by_tls():
            self._taken = 0
            raise BlockingIOError
        data: bytes = self._sock.recv(size)
        self._taken += len(data)
        return data

    def _is_held_by_tls(self) -> bool:
        """True if there is decrypted data that no selector reports."""
        return bool(getattr(self._sock, "pending", int)())


class _Connections(KafkaConnectionManager):  # type: ignore[misc]  # it has no types
    """Connections that receive no more at once than `RECEIVED_AT_ONCE`."""

    async def _build_transport(self, *args: Any, **settings: Any) -> Any:
        transport = await super()._build_transport(*args, **settings)
        transport._sock = _Sips(transport._sock)  # noqa: SLF001 - no public call reaches the socket
        return transport


def client_settings(config: ClusterConfig, role: str) -> dict[str, Any]:
    """Return the settings for every kafka-python client to this cluster.

    `role` is the client id, unless the user has written another. Quietens the `kafka` logger unless the application
    has set its level: sparkmirror retries or raises each failure, and reports the raised ones itself.
    """
    logger = logging.getLogger("kafka")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL)
    return {
        "bootstrap_servers": list(config.bootstrap_servers),
        "security_protocol": config.security_protocol,
        "ssl_context": ssl_context(config),
        **sasl_settings(config),
        "client_id": config.client_id or role,
        "request_timeout_ms": config.request_timeout_ms,
        "reconnect_backoff_max_ms": 1000,
        "receive_message_max_bytes": LARGEST_ANSWER,
        "fetch_max_bytes": LARGEST_ANSWER // 4,
        "max_partition_fetch_bytes": LARGEST_ANSWER // 4,
    }


def build_client(kind: Any, **settings: Any) -> Any:
    """Construct a kafka-python client, leaving no thread behind after a failure.

    The client's own constructor does leave one.
    """
    built: list[Any] = []

    def network(**configs: Any) -> Any:
        net = NetworkSelector(**configs)
        built.append(KafkaNetClient(net=net, manager=_Connections(net, **configs), **configs))
        return built[-1]

    try:
        return kind(kafka_client=network, **settings)
    except BaseException:
        for half in built:
            half.close()
        raise
