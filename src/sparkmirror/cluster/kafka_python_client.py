"""kafka-python's own clients, with sparkmirror's settings.

Only the lease has such a client: a consumer group's member, which sparkmirror does not speak for itself.
"""

from __future__ import annotations

import logging
from typing import Any

from sparkmirror.cluster.kafka_python_sasl import sasl_settings
from sparkmirror.cluster.tls_contexts import ssl_context
from sparkmirror.config.model import ClusterConfig


def client_settings(config: ClusterConfig, role: str) -> dict[str, Any]:
    """Return the settings of every kafka-python client of this cluster.

    `role` goes into the client id. Quietens the `kafka` logger unless the application has set its level:
    sparkmirror retries or raises each failure, and reports the raised ones itself.
    """
    logger = logging.getLogger("kafka")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL)
    return {
        "bootstrap_servers": list(config.bootstrap_servers),
        "security_protocol": config.security_protocol,
        "ssl_context": ssl_context(config),
        **sasl_settings(config),
        "client_id": f"{config.client_id}|{role}" if config.client_id else role,
        "request_timeout_ms": config.request_timeout_ms,
        "reconnect_backoff_max_ms": 1000,
    }


def build_client(kind: Any, **settings: Any) -> Any:
    """Construct a kafka-python client, leaving no thread behind after a failure.

    The client's own constructor does leave one.
    """
    built: list[Any] = []

    def network(**configs: Any) -> Any:
        built.append(kind.DEFAULT_CONFIG["kafka_client"](**configs))
        return built[-1]

    try:
        return kind(kafka_client=network, **settings)
    except BaseException:
        for half in built:
            half.close()
        raise
