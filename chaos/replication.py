"""A cluster one of whose brokers can be put behind a proxy towards the others: what stops there is replication alone.

A paused broker is out of all in-sync sets when its session is over, after three seconds. A follower that only gets no
answer to its fetches lives on, sends its heartbeats, and stays in sync as long as the leader's
`replica.lag.time.max.ms` lets it.
"""

from __future__ import annotations

from lab import Broker, KafkaCluster
from lab.proxy import Proxy

from sparkmirror.demo import DemoBroker

IN_SYNC_S = 120.0
"""For so long a follower may get nothing from a broker behind a proxy, and count as in sync."""
_STOP_TIMEOUT_S = 15.0
_INTERNAL = "INTERNAL"


class ReplicatedCluster(KafkaCluster):
    """A proxied cluster, as a rule like any other."""

    _behind: tuple[int, Proxy] | None = None
    """A broker's node id, and the proxy between it and the others."""

    def put_behind(self, broker: Broker, proxy: Proxy) -> None:
        """Start the broker again so that the others reach it through `proxy`, which must lead to `inner_port`."""
        self._restart(broker, (broker.node_id, proxy))

    def put_back(self, broker: Broker) -> None:
        """Start the broker again as it was."""
        self._restart(broker, None)

    def inner_port(self, broker: DemoBroker) -> int:
        """Return the port at which the other brokers reach it."""
        return self._internal_ports[broker.node_id - 1]

    def _restart(self, broker: Broker, behind: tuple[int, Proxy] | None) -> None:
        if broker.running:
            broker.terminate(_STOP_TIMEOUT_S)
        self._behind = behind
        self._launch(broker)
        broker.wait_until_known(frozenset({broker.node_id}))

    def _settings(self, broker: DemoBroker) -> dict[str, str]:
        settings = super()._settings(broker)
        if self._behind is None or self._behind[0] != broker.node_id:
            return settings
        inner, outer = self.inner_port(broker), self._behind[1].port
        advertised = settings["advertised.listeners"].replace(
            f"{_INTERNAL}://127.0.0.1:{inner}", f"{_INTERNAL}://127.0.0.1:{outer}"
        )
        return settings | {
            "advertised.listeners": advertised,
            "replica.lag.time.max.ms": str(int(IN_SYNC_S * 1000)),
        }
