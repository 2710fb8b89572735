"""Real Kafka on this machine: KRaft clusters of one to a few brokers on 127.0.0.1.

    with KafkaCluster(Path("source")) as cluster:
        print(cluster.bootstrap_servers)

The brokers die with this process, in whatever way it ends. With `proxied=True` clients reach each broker through a
proxy of this process, which can break the network between clients and broker; brokers talk to each other directly.
With a `distance` a second address of each broker is as far away as wanted.
"""

from __future__ import annotations

import shutil
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Self

from javaproperties import dumps

from sparkmirror.demo.distance import Distance, DistanceProxy
from sparkmirror.demo.jars import BROKER_VERSION, broker_jars, class_path
from sparkmirror.demo.jvm import QUICK_START, Jvm
from sparkmirror.demo.ports import free_ports
from sparkmirror.demo.proxy import Proxy
from sparkmirror.demo.readiness import brokers_known_to
from sparkmirror.demo.storage import format_storage, new_id
from sparkmirror.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from sparkmirror.demo.authority import Authority
    from sparkmirror.demo.listeners import BrokerListener

START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 30.0
_POLL_S = 0.05
_ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


class Broker:
    """One broker, which is a controller too.

    The broker's ports, data and log outlive every restart. Partition logs lie in `log_dirs` directories. A single log
    directory also holds the controller's metadata log; with several the metadata log has a directory of its own.
    `proxy` stands between the broker and its clients if the cluster is proxied; `port` is the broker's own port.
    """

    def __init__(
        self,
        directory: Path,
        *,
        node_id: int,
        port: int,
        tls_port: int,
        version: str,
        heap_mb: int,
        jvm_options: Sequence[str],
        proxy: Proxy | None,
        more_ports: Mapping[str, int],
        log_dirs: int = 1,
    ) -> None:
        self.directory = directory
        self.node_id = node_id
        self.port = port
        self.proxy = proxy
        self.tls_port = tls_port
        """TLS listener's port; 0 without TLS."""
        self.version = version
        """Kafka version that the next launch runs."""
        self.more_ports = more_ports
        """Ports of the cluster's further listeners, by listener name."""
        self.data = directory / "data"
        """Directory of the metadata log; by default of the partition logs, too."""
        self.log_dirs = tuple(directory / f"data-{n}" for n in range(1, log_dirs + 1)) if log_dirs > 1 else (self.data,)
        self._settings = directory / "server.properties"
        self._heap_mb = heap_mb
        self._jvm_options = jvm_options
        self._jvm: Jvm | None = None

    @property
    def pid(self) -> int:
        """Process id of the last start; RuntimeError if the broker never started."""
        return self._started().pid

    @property
    def advertised_port(self) -> int:
        """Port that clients connect to: the proxy's port if there is a proxy."""
        return self.proxy.port if self.proxy else self.port

    @property
    def running(self) -> bool:
        """True if the broker's process exists, paused or not."""
        return self._jvm is not None and self._jvm.running

    @property
    def log(self) -> Path:
        """Broker's log file; RuntimeError before the first start."""
        return self._started().log

    def launch(self, settings: Mapping[str, str]) -> None:
        """Write the broker's settings, and start the broker unless it runs.

        Does not wait until the broker serves.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        places = {"metadata.log.dir": str(self.data), "log.dirs": ",".join(map(str, self.log_dirs))}
        self._settings.write_text(dumps({**settings, **places}))
        if self._jvm is None or not self.running:
            self._jvm = Jvm(
                self.directory,
                main_class="kafka.Kafka",
                arguments=[str(self._settings)],
                class_path=class_path(broker_jars(self.version)),
                heap_mb=self._heap_mb,
                options=self._jvm_options,
            )
        self._jvm.start()

    def start(self) -> None:
        """Start the broker again with its last settings, and wait until it serves.

        Raises SetupError if the broker dies.
        """
        self._started().start()
        self.wait_until_known(frozenset({self.node_id}))

    def restart(self) -> None:
        """Stop the broker in order, start it again and wait until it serves."""
        self.terminate()
        self.start()

    def terminate(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Stop the broker in order (SIGTERM), by force after `timeout_s`.

        Returns when the process has ended.
        """
        self._started().terminate(timeout_s)

    def kill(self) -> None:
        """Kill the broker (SIGKILL); return when the process has ended."""
        self._started().kill()

    def pause(self) -> None:
        """Freeze the broker's process (SIGSTOP): connections stay open, nothing answers."""
        self._started().stop()

    def resume(self) -> None:
        """Let a paused process go on (SIGCONT)."""
        self._started().send(signal.SIGCONT)

    def wait_until_known(self, node_ids: frozenset[int], timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until this broker answers and lists all of `node_ids`.

        Raises SetupError, with the end of the broker's log, if the broker dies or takes longer than `timeout_s`.
        """
        jvm = self._started()
        deadline = time.monotonic() + timeout_s
        while not node_ids <= brokers_known_to(self.port):
            if not jvm.running:
                reason = f"died (exit code {jvm.exit_code})"
            elif time.monotonic() > deadline:
                reason = f"does not serve after {timeout_s:.0f} s"
            else:
                time.sleep(_POLL_S)
                continue
            raise SetupError(f"broker {self.node_id} {reason}; {jvm.log} ends with:\n{jvm.last_lines()}")

    def _started(self) -> Jvm:
        if self._jvm is None:
            raise RuntimeError(f"broker {self.node_id} was never started")
        return self._jvm


class KafkaCluster:
    """Cluster of brokers 1 to `brokers`, kept in `directory`.

    As a context the cluster runs, and stops at the end.

    - `properties`: broker settings, which win over the defaults of this module.
    - `tls`: an authority; each broker gets a second listener, where clients may show a certificate of the same
      authority. Among themselves the brokers speak in clear.
    - `listeners`: further listeners, by name in upper-case letters.
    - `log_dirs`: number of directories in which each broker keeps its partition logs.
    - `version`: Kafka's version, 3.3 or newer; default: $SPARKMIRROR_KAFKA_VERSION, else the newest version that
      sparkmirror's clients are tested with.
    - `distance`: length of the line that leads to `far_servers`; the line can be changed through `line`.
    - `acls`: the cluster keeps ACLs. Clients that speak in clear are anonymous, and may still do everything.

    Only `cleanup` deletes data. A killed broker can come back only after `broker.session.timeout.ms`, which is 3 s
    here.
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
        self.directory = directory.absolute()
        self.cluster_id = new_id()
        self._proxied = proxied
        self._tls = tls
        self._more = dict(listeners or {})
        free = free_ports((7 + len(self._more)) * brokers)
        (
            ports,
            self._controller_ports,
            self._internal_ports,
            proxy_ports,
            tls_ports,
            self._far_ports,
            line_ports,
            *more_ports,
        ) = (free[first : first + brokers] for first in range(0, len(free), brokers))
        routes = dict(zip(line_ports, self._far_ports, strict=True))
        self._line = DistanceProxy(routes, distance) if distance is not None else None
        self._properties = (_ACLS if acls else {}) | dict(properties or {})
        self.brokers = tuple(
            Broker(
                self.directory / f"broker-{node_id}",
                node_id=node_id,
                port=port,
                tls_port=tls_port,
                version=version,
                heap_mb=heap_mb,
                jvm_options=jvm_options,
                proxy=Proxy(port, port=proxy_port) if proxied else None,
                more_ports={name: its[node_id - 1] for name, its in zip(self._more, more_ports, strict=True)},
                log_dirs=log_dirs,
            )
            for node_id, (port, proxy_port, tls_port) in enumerate(
                zip(ports, proxy_ports, tls_ports if tls else [0] * brokers, strict=True), start=1
            )
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def bootstrap_servers(self) -> str:
        """Brokers' addresses, as Kafka's clients take them."""
        return ",".join(f"127.0.0.1:{broker.advertised_port}" for broker in self.brokers)

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
        """Brokers' addresses at the end of the line; RuntimeError if the cluster has none."""
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
        """Start all stopped brokers, and wait until each broker lists all brokers.

        Raises SetupError if there is no Java, if the jars can't be had, or if a broker does not come up.
        """
        everyone = frozenset(broker.node_id for broker in self.brokers)
        try:
            if self._line:
                self._line.start()
            for broker in self.brokers:
                if broker.proxy:
                    broker.proxy.start()
                self._launch(broker)
            for broker in self.brokers:
                broker.wait_until_known(everyone)
        except BaseException:
            self.stop(timeout_s=0)
            raise

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Stop all brokers in order, by force after `timeout_s`; keep data and logs."""
        _terminate([broker for broker in self.brokers if broker.running], timeout_s)
        for broker in self.brokers:
            if broker.proxy:
                broker.proxy.close()
        if self._line:
            self._line.close()

    def upgrade(
        self, version: str, *, properties: Mapping[str, str] | None = None, nodes: Collection[int] | None = None
    ) -> None:
        """Restart brokers on the same data with another version of Kafka.

        The version may be newer or older. All brokers are stopped in order at once, or only `nodes`. `properties` are
        broker settings, which win over the cluster's present ones. Raises SetupError as `start` does; brokers outside
        `nodes` run on.
        """
        self._properties |= properties or {}
        chosen = [broker for broker in self.brokers if nodes is None or broker.node_id in nodes]
        _terminate(chosen, STOP_TIMEOUT_S)
        for broker in chosen:
            broker.version = version
            self._launch(broker)
        for broker in chosen:
            broker.wait_until_known(frozenset(broker.node_id for broker in chosen))

    def cleanup(self, *, keep_logs: bool = False) -> None:
        """Kill all brokers; delete the directory, or only the brokers' data in it."""
        self.stop(timeout_s=0)
        data = [directory for broker in self.brokers for directory in (broker.data, *broker.log_dirs)]
        doomed = data if keep_logs else [self.directory]
        for directory in doomed:
            shutil.rmtree(directory, ignore_errors=True)

    def _launch(self, broker: Broker) -> None:
        format_storage(
            broker.data,
            set(broker.log_dirs),
            cluster_id=self.cluster_id,
            node_id=broker.node_id,
            version=broker.version,
        )
        broker.launch(self._settings(broker))

    def _settings(self, broker: Broker) -> dict[str, str]:
        replicas = str(min(3, len(self.brokers)))
        settings = {
            **self._membership(broker),
            **self._listeners(broker),
            "auto.create.topics.enable": "false",
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "4",
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.num.partitions": "4",
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": str(min(2, len(self.brokers))),
            "share.coordinator.state.topic.num.partitions": "4",
            "share.coordinator.state.topic.replication.factor": replicas,
            "share.coordinator.state.topic.min.isr": str(min(2, len(self.brokers))),
            "log.cleaner.backoff.ms": "1000",
            "log.cleaner.dedupe.buffer.size": str(16 << 20),  # the default of 128 MiB does not fit a small heap
        }
        if self._tls is not None:
            settings |= _tls_settings(broker.directory, self._tls)
        for name, listener in self._more.items():
            prefix = f"listener.name.{name.lower()}."
            settings |= {prefix + key: value for key, value in listener.settings.items()}
        return settings | self._properties

    def _membership(self, broker: Broker) -> dict[str, str]:
        """Return the settings that make the broker a member of this cluster."""
        voters = (f"{b.node_id}@127.0.0.1:{port}" for b, port in zip(self.brokers, self._controller_ports, strict=True))
        return {
            "process.roles": "broker,controller",
            "node.id": str(broker.node_id),
            "controller.quorum.voters": ",".join(voters),
            "controller.listener.names": "CONTROLLER",
            "broker.session.timeout.ms": "3000",
            "broker.heartbeat.interval.ms": "500",
        }

    def _own_ports(self, broker: Broker) -> dict[str, int]:
        """Return the ports of the listeners that every broker has: clear and controller."""
        return {"PLAINTEXT": broker.port, "CONTROLLER": self._controller_ports[broker.node_id - 1]}

    def _listeners(self, broker: Broker) -> dict[str, str]:
        ports = self._own_ports(broker)
        advertised = {"PLAINTEXT": broker.advertised_port}
        if self._proxied:
            ports["INTERNAL"] = advertised["INTERNAL"] = self._internal_ports[broker.node_id - 1]
        if self._tls is not None:
            ports["SSL"] = advertised["SSL"] = broker.tls_port
        if self._line:
            ports["FAR"] = self._far_ports[broker.node_id - 1]
            advertised["FAR"] = self._line.ports[broker.node_id - 1]
        protocols = {name: "SSL" if name == "SSL" else "PLAINTEXT" for name in ports}
        for name, listener in self._more.items():
            ports[name] = advertised[name] = broker.more_ports[name]
            protocols[name] = listener.protocol
        return {
            "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in protocols.items()),
            "listeners": _addresses(ports),
            "advertised.listeners": _addresses(advertised),
            "inter.broker.listener.name": "INTERNAL" if self._proxied else "PLAINTEXT",
        }


def _terminate(brokers: Sequence[Broker], timeout_s: float) -> None:
    if brokers:
        with ThreadPoolExecutor(len(brokers)) as pool:
            list(pool.map(lambda broker: broker.terminate(timeout_s), brokers))


def _addresses(ports: Mapping[str, int]) -> str:
    return ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())


def _tls_settings(directory: Path, authority: Authority) -> dict[str, str]:
    keystore = directory / "broker.pem"
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore if keystore.exists() else authority.issue(keystore)),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
        "ssl.client.auth": "requested",
    }
