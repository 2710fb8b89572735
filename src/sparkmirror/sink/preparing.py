"""A cluster made ready: the control topic, and how long brokers remember."""

from __future__ import annotations

from sparkmirror.errors import UnfitTarget
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.broker_versions import producer_state_ms
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.sink.agreement import create_control_topic
from sparkmirror.sink.order import MARGIN_MS

ASK_MS = 600_000
"""Time after which to ask the brokers again."""
_ROLE = "sparkmirror-sink"
_ADMIN_S = 30.0


def prepared(client: ClusterClient) -> int:
    """Create the control topic if it isn't there; return a producer's lifetime in ms.

    Raises `UnfitTarget` if brokers forget too soon or don't tell, `ClusterUnreachable` and `ConnectionError`.
    """
    state_ms = producer_state_ms(client)
    if state_ms is None:
        raise UnfitTarget(
            f"cluster {client.config.alias} doesn't tell how long it remembers who appended records "
            "(producer.id.expiration.ms), so they could come twice: grant DESCRIBE_CONFIGS on the cluster"
        )
    if state_ms < 2 * MARGIN_MS:
        raise UnfitTarget(
            f"cluster {client.config.alias} forgets who appended records after {state_ms:,} ms, so they could come "
            f"twice: raise producer.id.expiration.ms on the brokers to at least {2 * MARGIN_MS:,}"
        )
    with ClusterAdmin.connect(client.config, _ROLE, _ADMIN_S) as admin:
        create_control_topic(admin)
    return state_ms
