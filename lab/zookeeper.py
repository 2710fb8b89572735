"""Kafka clusters that keep their metadata in ZooKeeper: versions 1.0 to 3.9.

with ZooKeeperCluster(tmp_path, version="2.7.2") as cluster:
    cluster.upgrade("2.8.2", properties={"inter.broker.protocol.version": "2.7"})
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from javaproperties import dumps

from lab.cluster import KafkaCluster
from lab.listeners import BrokerListener
from sparkmirror.config import ClusterConfig
from sparkmirror.demo import DemoBroker
from sparkmirror.demo.jars import broker_jars, class_path
from sparkmirror.demo.jvm import QUICK_START, Jvm
from sparkmirror.demo.ports import free_ports
from sparkmirror.errors import SetupError
from sparkmirror.kafka.cluster.client import ClusterClient

ZOOKEEPER_OF = "2.8.2"
"""The Kafka whose ZooKeeper server serves clients from 3.4 to 3.8: version 3.5.9."""

SESSION_TIMEOUT_MS = 6_000
_HEAP_MB = 128
_STOP_TIMEOUT_S = 10.0
_ACLS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",  # since 2.4
    "super.users": "User:ANONYMOUS",
}


class ZooKeeperCluster(KafkaCluster):
    """Cluster with brokers without a controller role, and one ZooKeeper.

    `cluster_id` is known once it has started. A broker that was killed can come back only when its session at
    ZooKeeper is over, which takes 6 s here. What it needs that is new, such as ACLs, it has not.
    """

    def __init__(
        self,
        directory: Path,
        *,
        version: str,
        brokers: int = 1,
        properties: Mapping[str, str] | None = None,
        heap_mb: int = 512,
        listeners: Mapping[str, BrokerListener] | None = None,
        log_dirs: int = 1,
        acls: bool = False,
    ) -> None:
        super().__init__(
            directory,
            brokers=brokers,
            properties=(_ACLS if acls else {}) | dict(properties or {}),
            heap_mb=heap_mb,
            listeners=listeners,
            log_dirs=log_dirs,
            version=version,
        )
        self._zookeeper = _ZooKeeper(self.directory / "zookeeper")

    def start(self) -> None:
        """Start ZooKeeper and all brokers that don't run; as `KafkaCluster` does."""
        super().start()
        servers = tuple(self.direct_servers.split(","))
        with closing(ClusterClient(ClusterConfig(alias="test", bootstrap_servers=servers), "test")) as client:
            client.metadata([])
            self.cluster_id = client.cluster_id

    def stop(self, timeout_s: float = 30.0) -> None:
        """Stop all brokers in order, then ZooKeeper; by force after `timeout_s`."""
        super().stop(timeout_s)
        self._zookeeper.stop()

    def _launch(self, broker: DemoBroker) -> None:
        self._zookeeper.start()
        broker.launch(self._settings(broker))

    def _membership(self, broker: DemoBroker) -> dict[str, str]:
        return {
            "broker.id": str(broker.node_id),
            "zookeeper.connect": f"127.0.0.1:{self._zookeeper.port}",
            "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
            "zookeeper.connection.timeout.ms": "30000",
        }

    def _own_ports(self, broker: DemoBroker) -> dict[str, int]:
        return {"PLAINTEXT": broker.port}


class _ZooKeeper:
    """One server; its data outlives every restart."""

    def __init__(self, directory: Path) -> None:
        (self.port,) = free_ports(1)
        self._directory = directory
        self._jvm: Jvm | None = None

    def start(self, timeout_s: float = 60.0) -> None:
        """Start the server, and wait until it listens; raises `SetupError`."""
        if self._jvm is None:
            self._directory.mkdir(parents=True, exist_ok=True)
            settings = self._directory / "zoo.cfg"
            settings.write_text(
                dumps(
                    {
                        "dataDir": str(self._directory / "data"),
                        "clientPort": str(self.port),
                        "clientPortAddress": "127.0.0.1",
                        "tickTime": "1000",
                        "maxClientCnxns": "0",
                        "admin.enableServer": "false",
                    }
                )
            )
            self._jvm = Jvm(
                self._directory,
                main_class="org.apache.zookeeper.server.quorum.QuorumPeerMain",
                arguments=[str(settings)],
                class_path=class_path(broker_jars(ZOOKEEPER_OF)),
                heap_mb=_HEAP_MB,
                options=(*QUICK_START, "-Dzookeeper.jmx.log4j.disable=true", "-Dzookeeper.preAllocSize=1024"),
            )
        self._jvm.start()
        deadline = time.monotonic() + timeout_s
        while not self._listens():
            if not self._jvm.running or time.monotonic() > deadline:
                raise SetupError(f"ZooKeeper does not serve; {self._jvm.log} ends with:\n{self._jvm.last_lines()}")
            time.sleep(0.05)

    def stop(self) -> None:
        if self._jvm is not None:
            self._jvm.terminate(_STOP_TIMEOUT_S)

    def _listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1.0).close()
        except OSError:
            return False
        return True
