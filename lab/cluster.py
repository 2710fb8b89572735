"""A cluster with proxies, distance, TLS, further listeners, ACLs, upgrades.

With `proxied=True` clients reach each broker through a proxy in this process, which can break the network between
clients and broker; brokers talk to each other directly. With a `distance` a second address for each broker is as far
away as wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.distance import Distance, DistanceProxy
from lab.proxy import Proxy
from sparkmirror.demo.brokers import STOP_TIMEOUT_S, DemoBroker, DemoCluster, addresses, terminate
from sparkmirror.demo.jars import BROKER_VERSION
from sparkmirror.demo.jvm import QUICK_START
from sparkmirror.demo.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from lab.authority import Authority
    from lab.listeners import BrokerListener

_ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


class Broker(DemoBroker):
    """DemoBroker of a `KafkaCluster`.

    Partition logs are in `log_dirs` directories. A single log directory also holds the controller's metadata log; with
    several the metadata log has its own directory. `proxy` stands between the broker and its clients if the cluster is
    proxied; `port` is the broker's own port.
    """

    def __init__(
        self,
        directory: Path,
        *,
        node_id: int,
        port: int,
        version: str,
        heap_mb: int,
        jvm_options: Sequence[str],
        tls_port: int,
        proxy: Proxy | None,
        more_ports: Mapping[str, int],
        log_dirs: int,
    ) -> None:
        super().__init__(
            directory, node_id=node_id, port=port, version=version, heap_mb=heap_mb, jvm_options=jvm_options
        )
        self.proxy = proxy
        self.tls_port = tls_port
        """TLS listener's port; 0 without TLS."""
        self.more_ports = more_ports
        """Ports for the cluster's further listeners, by listener name."""
        if log_dirs > 1:
            self.log_dirs = tuple(directory / f"data-{n}" for n in range(1, log_dirs + 1))

    @property
    def advertised_port(self) -> int:
        """Port that clients connect to: the proxy's port if there is a proxy."""
        return self.proxy.port if self.proxy else self.port


class KafkaCluster(DemoCluster):
    """Cluster of `Broker`s; further arguments are those for `DemoCluster`.

    - `tls`: an authority; each broker gets a second listener, where clients may show a certificate from the same
      authority. Among themselves the brokers speak in clear.
    - `listeners`: further listeners, by name in upper-case letters.
    - `log_dirs`: how many directories each broker keeps its partition logs in.
    - `distance`: how long the line to `far_servers` is; the line can be changed through `line`.
    - `acls`: the cluster keeps ACLs. Clients that speak in clear are anonymous, and may still do everything.
    """

    def __init__(
        self,
        directory: Path,
        *,
        brokers: int = 1,
        properties: Mapping[str, str] | None = None,
        heap_mb: int = 512,
        jvm_options: Sequence[str] = QUICK_START,
        proxied: bool = False,
        tls: Authority | None = None,
        acls: bool = False,
        listeners: Mapping[str, BrokerListener] | None = None,
        log_dirs: int = 1,
        version: str = BROKER_VERSION,
        distance: Distance | None = None,
    ) -> None:
        super().__init__(
            directory,
            brokers=brokers,
            properties=(_ACLS if acls else {}) | dict(properties or {}),
            heap_mb=heap_mb,
            jvm_options=jvm_options,
            version=version,
        )
        self._proxied = proxied
        self._tls = tls
        self._more = dict(listeners or {})
        free = free_ports((5 + len(self._more)) * brokers)
        self._internal_ports, proxy_ports, tls_ports, self._far_ports, line_ports, *more_ports = (
            free[first : first + brokers] for first in range(0, len(free), brokers)
        )
        routes = dict(zip(line_ports, self._far_ports, strict=True))
        self._line = DistanceProxy(routes, distance) if distance is not None else None
        self.brokers: tuple[Broker, ...] = tuple(
            Broker(
                broker.directory,
                node_id=broker.node_id,
                port=broker.port,
                version=version,
                heap_mb=heap_mb,
                jvm_options=jvm_options,
                tls_port=tls_port,
                proxy=Proxy(broker.port, port=proxy_port) if proxied else None,
                more_ports={name: its[broker.node_id - 1] for name, its in zip(self._more, more_ports, strict=True)},
                log_dirs=log_dirs,
            )
            for broker, proxy_port, tls_port in zip(
                self.brokers, proxy_ports, tls_ports if tls else [0] * brokers, strict=True
            )
        )

    @property
    def direct_servers(self) -> str:
        """Brokers' addresses for clients that must meet no proxy.

        The brokers send such clients to unproxied addresses, too.
        """
        ports = self._internal_ports if self._proxied else [broker.port for broker in self.brokers]
        return ",".join(f"127.0.0.1:{port}" for port in ports)

    @property
    def line(self) -> DistanceProxy:
        """Line to `far_servers`; RuntimeError if the cluster has none."""
        if self._line is None:
            raise RuntimeError("this cluster was made without a distance")
        return self._line

    @property
    def far_servers(self) -> str:
        """Brokers' addresses at the line's end; RuntimeError if the cluster has none."""
        return ",".join(f"127.0.0.1:{port}" for port in self.line.ports)

    @property
    def tls_bootstrap_servers(self) -> str:
        """Brokers' TLS addresses; RuntimeError if the cluster has no TLS."""
        if self._tls is None:
            raise RuntimeError("this cluster was made without TLS")
        return ",".join(f"127.0.0.1:{broker.tls_port}" for broker in self.brokers)

    def servers(self, listener: str) -> str:
        """Return the brokers' addresses at a further listener."""
        return ",".join(f"127.0.0.1:{broker.more_ports[listener]}" for broker in self.brokers)

    def start(self) -> None:
        """Start proxies and brokers, as `DemoCluster.start` does."""
        try:
            if self._line:
                self._line.start()
            for broker in self.brokers:
                if broker.proxy:
                    broker.proxy.start()
        except BaseException:
            self.stop(timeout_s=0)
            raise
        super().start()

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Stop brokers and proxies; keep data and logs."""
        super().stop(timeout_s)
        for broker in self.brokers:
            if broker.proxy:
                broker.proxy.close()
        if self._line:
            self._line.close()

    def upgrade(
        self, version: str, *, properties: Mapping[str, str] | None = None, nodes: Collection[int] | None = None
    ) -> None:
        """Restart brokers on the same data with another Kafka version.

        The version may be newer or older. All brokers are stopped in order at once, or only `nodes`. `properties` are
        broker settings, which win over the cluster's present ones. Raises SetupError as `start` does; brokers outside
        `nodes` run on.
        """
        self._properties |= properties or {}
        chosen = [broker for broker in self.brokers if nodes is None or broker.node_id in nodes]
        terminate(chosen, STOP_TIMEOUT_S)
        for broker in chosen:
            broker.version = version
            self._launch(broker)
        for broker in chosen:
            broker.wait_until_known(frozenset(broker.node_id for broker in chosen))

    def _settings(self, broker: DemoBroker) -> dict[str, str]:
        settings: dict[str, str] = {}
        if self._tls is not None:
            settings |= _tls_settings(broker.directory, self._tls)
        for name, listener in self._more.items():
            prefix = f"listener.name.{name.lower()}."
            settings |= {prefix + key: value for key, value in listener.settings.items()}
        return settings | super()._settings(broker)

    def _listeners(self, broker: DemoBroker) -> dict[str, str]:
        index = broker.node_id - 1
        ports = self._own_ports(broker)
        advertised = {"PLAINTEXT": broker.advertised_port}
        if self._proxied:
            ports["INTERNAL"] = advertised["INTERNAL"] = self._internal_ports[index]
        if self._tls is not None:
            ports["SSL"] = advertised["SSL"] = self.brokers[index].tls_port
        if self._line:
            ports["FAR"], advertised["FAR"] = self._far_ports[index], self._line.ports[index]
        protocols = {name: "SSL" if name == "SSL" else "PLAINTEXT" for name in ports}
        for name, listener in self._more.items():
            ports[name] = advertised[name] = self.brokers[index].more_ports[name]
            protocols[name] = listener.protocol
        return {
            "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in protocols.items()),
            "listeners": addresses(ports),
            "advertised.listeners": addresses(advertised),
            "inter.broker.listener.name": "INTERNAL" if self._proxied else "PLAINTEXT",
        }


def _tls_settings(directory: Path, authority: Authority) -> dict[str, str]:
    keystore = directory / "broker.pem"
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore if keystore.exists() else authority.issue(keystore)),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
        "ssl.client.auth": "requested",
    }
