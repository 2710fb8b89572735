"""Clusters that this process's flows must reach at their addresses (R20).

A name or an address may lead to another cluster after it led to the flow's: a DNS record or a virtual IP is switched,
or other brokers get a port. So each of a flow's new connections asks the broker for its cluster's id, before anything
else goes over it. A cluster that was cloned with its disks has the same id, and can't be told apart.
"""

from __future__ import annotations

import threading
from collections import defaultdict

from sparkmirror.config.model import ClusterConfig, FlowConfig
from sparkmirror.kafka.wire.rpc import BrokerUnreachable

Address = tuple[str, ...]
"""A cluster's alias and its `bootstrap.servers`."""


class AnotherClustersBroker(BrokerUnreachable):
    """A broker belongs to another cluster than the flow's."""


class ExpectedClusters:
    """Cluster id by address, as each part of the process expects it; for any thread.

    A part, as a driver or a pump, is an object that works on one flow. If two parts expect different clusters at one
    address, neither is served.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._expected: dict[Address, dict[tuple[int, str], str]] = defaultdict(dict)
        """Cluster id by address, part (its `id`) and flow."""
        self._wrong: dict[Address, str] = {}
        """Reason why the newest connection to an address was refused."""

    def expect(self, part: object, flow: FlowConfig, *, source: str = "", target: str = "") -> None:
        """Refuse connections to other clusters from now on.

        An empty id leaves a side as it is.
        """
        with self._lock:
            for cluster, cluster_id in ((flow.source, source), (flow.target, target)):
                for address in {_address(cluster), _address(cluster.for_copying)} if cluster_id else ():
                    self._expected[address][id(part), flow.name] = cluster_id

    def release(self, part: object) -> None:
        """Expect nothing more for a part that ends."""
        with self._lock:
            for address, expected in list(self._expected.items()):
                for key in [key for key in expected if key[0] == id(part)]:
                    del expected[key]
                if not expected:
                    del self._expected[address]
                    self._wrong.pop(address, None)

    def is_known(self, cluster: ClusterConfig) -> bool:
        """True if a part expects a certain cluster at this address."""
        return _address(cluster) in self._expected

    def see(self, cluster: ClusterConfig, broker: str, cluster_id: str) -> None:
        """Compare the id that a broker, given as host:port, has told.

        Raises `AnotherClustersBroker`.
        """
        address = _address(cluster)
        with self._lock:
            for (_, flow), expected in self._expected.get(address, {}).items():
                if cluster_id != expected:
                    self._wrong[address] = led_elsewhere(cluster.alias, broker, cluster_id, expected, flow)
                    raise AnotherClustersBroker(self._wrong[address])
            self._wrong.pop(address, None)

    def wrong(self, flow: FlowConfig) -> str:
        """Return why a side's newest connection was refused; empty: it was not."""
        sides = flow.source, flow.source.for_copying, flow.target, flow.target.for_copying
        return next((why for side in sides if (why := self._wrong.get(_address(side)))), "")


EXPECTED = ExpectedClusters()
"""The expectations of this process."""


def led_elsewhere(alias: str, place: str, cluster_id: str, expected: str, flow: str) -> str:
    """Return the line on an address that leads to another cluster than the flow's."""
    return (
        f"{alias} leads to another cluster: flow {flow} is with cluster {expected}, and {place} is of cluster "
        f"{cluster_id or 'without an id'}; see where bootstrap.servers, DNS and load balancers lead to, or, if {alias} "
        'was rebuilt, run sparkmirror clusters FILE (docs/running.md, "A name that leads to another cluster")'
    )


def _address(cluster: ClusterConfig) -> Address:
    return cluster.alias, *cluster.bootstrap_servers
