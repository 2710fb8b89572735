"""Real Kafka on this machine: KRaft clusters of one to a few brokers on 127.0.0.1.

    with DemoCluster(Path("source")) as cluster:
        print(cluster.bootstrap_servers)

The brokers die with this process, in whatever way it ends.
"""

from __future__ import annotations

import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Self

from javaproperties import dumps

from sparkmirror.demo.jars import BROKER_VERSION, broker_jars, class_path
from sparkmirror.demo.jvm import QUICK_START, Jvm
from sparkmirror.demo.ports import free_ports
from sparkmirror.demo.readiness import brokers_known_to
from sparkmirror.demo.storage import format_storage, new_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 30.0


class DemoBroker:
    """One broker, which is a controller too.

    The broker's port, data and log outlive every restart.
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
    ) -> None:
        self.directory = directory
        self.node_id = node_id
        self.port = port
        self.version = version
        """Kafka version that the next launch runs."""
        self.data = directory / "data"
        """The metadata log's directory; by default the partition logs', too."""
        self.log_dirs: tuple[Path, ...] = (self.data,)
        """The partition logs' directories."""
        self._settings = directory / "server.properties"
        self._heap_mb = heap_mb
        self._jvm_options = jvm_options
        self._jvm: Jvm | None = None

    @property
    def pid(self) -> int:
        """The last start's process id; RuntimeError if the broker never started."""
        return self._started().pid

    @property
    def advertised_port(self) -> int:
        return self.port

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
        """Let a paused process continue (SIGCONT)."""
        self._started().send(signal.SIGCONT)

    def wait_until_known(self, node_ids: frozenset[int], timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until this broker answers and lists all of `node_ids`.

        Raises SetupError, with the end of the broker's log, if the broker dies or takes longer than `timeout_s`.
        """
        self._started().wait_until(
            lambda: node_ids <= brokers_known_to(self.port),
            timeout_s,
            program=f"broker {self.node_id}",
            late="does not serve after",
        )

    def _started(self) -> Jvm:
        if self._jvm is None:
            raise RuntimeError(f"broker {self.node_id} was never started")
        return self._jvm


class DemoCluster:
    """Cluster of brokers 1 to `brokers`, kept in `directory`.

    As a context the cluster runs, and stops at the end.

    - `properties`: broker settings, which win over this module's defaults.
    - `version`: Kafka's version, 3.3 or newer; default: $SPARKMIRROR_KAFKA_VERSION, else the newest version that
      sparkmirror's clients are tested with.

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
        version: str = BROKER_VERSION,
    ) -> None:
        self.directory = directory.absolute()
        self.cluster_id = new_id()
        free = free_ports(2 * brokers)
        ports, self._controller_ports = free[:brokers], free[brokers:]
        self._properties = dict(properties or {})
        self.brokers: Sequence[DemoBroker] = tuple(
            DemoBroker(
                self.directory / f"broker-{node_id}",
                node_id=node_id,
                port=port,
                version=version,
                heap_mb=heap_mb,
                jvm_options=jvm_options,
            )
            for node_id, port in enumerate(ports, start=1)
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

    def start(self) -> None:
        """Start all stopped brokers, and wait until each broker lists all brokers.

        Raises SetupError if there is no Java, if the jars can't be had, or if a broker does not come up.
        """
        everyone = frozenset(broker.node_id for broker in self.brokers)
        try:
            for broker in self.brokers:
                self._launch(broker)
            for broker in self.brokers:
                broker.wait_until_known(everyone)
        except BaseException:
            self.stop(timeout_s=0)
            raise

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Stop all brokers in order, by force after `timeout_s`; keep data and logs."""
        terminate([broker for broker in self.brokers if broker.running], timeout_s)

    def cleanup(self, *, keep_logs: bool = False) -> None:
        """Kill all brokers; delete the directory, or only the brokers' data in it."""
        self.stop(timeout_s=0)
        data = [directory for broker in self.brokers for directory in (broker.data, *broker.log_dirs)]
        doomed = data if keep_logs else [self.directory]
        for directory in doomed:
            shutil.rmtree(directory, ignore_errors=True)

    def _launch(self, broker: DemoBroker) -> None:
        format_storage(
            broker.data,
            set(broker.log_dirs),
            cluster_id=self.cluster_id,
            node_id=broker.node_id,
            version=broker.version,
        )
        broker.launch(self._settings(broker))

    def _settings(self, broker: DemoBroker) -> dict[str, str]:
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
        return settings | self._properties

    def _membership(self, broker: DemoBroker) -> dict[str, str]:
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

    def _own_ports(self, broker: DemoBroker) -> dict[str, int]:
        """Return the ports for the listeners that every broker has: clear and controller."""
        return {"PLAINTEXT": broker.port, "CONTROLLER": self._controller_ports[broker.node_id - 1]}

    def _listeners(self, broker: DemoBroker) -> dict[str, str]:
        ports = self._own_ports(broker)
        return {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "listeners": addresses(ports),
            "advertised.listeners": addresses({"PLAINTEXT": broker.port}),
            "inter.broker.listener.name": "PLAINTEXT",
        }


def terminate(brokers: Sequence[DemoBroker], timeout_s: float) -> None:
    """Stop brokers in order, all at once, by force after `timeout_s`."""
    if brokers:
        with ThreadPoolExecutor(len(brokers)) as pool:
            list(pool.map(lambda broker: broker.terminate(timeout_s), brokers))


def addresses(ports: Mapping[str, int]) -> str:
    """Return listeners as a broker's settings have them, by listener name."""
    return ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())
