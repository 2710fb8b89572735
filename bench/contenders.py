"""Both mirrors, started the same way: from an mm2.properties file, as a child in an account of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, Self

from javaproperties import dumps

from bench.accounting import Account
from bench.arena import KAFKA_JVM_OPTIONS, Arena, Side
from bench.workloads import Workload
from sparkmirror import demo
from sparkmirror.demo.jars import MIRROR_MAKER, class_path
from sparkmirror.demo.java import java
from sparkmirror.demo.spawn import spawn
from sparkmirror.exact.durable.claims import segments_topic

REFRESH_S = 5
"""Where topics appear: how often both look for them. Ten minutes otherwise, which is the default of both."""
STOP_TIMEOUT_S = 30.0
MIRROR_MAKER_HEAP = ("-Xms256M", "-Xmx2G")
_LOGGING = Path(demo.__file__).with_name("log4j2.properties")


class ContenderFailed(Exception):
    """A mirror ended, or did not get anywhere; the message holds its last words."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """What the sweep varies. The producer's two are for MirrorMaker 2, which makes its batches again."""

    tasks: int
    batch_size: int = 524_288
    linger_ms: int = 0

    def with_linger(self, linger_ms: int) -> Tuning:
        return replace(self, linger_ms=linger_ms)


@dataclass(frozen=True, slots=True)
class Route:
    """What is to be copied, from where to where, and under which names.

    `label` must be new: aliases, and so all topics at the target, are named by it.
    """

    workload: Workload
    topic: str
    label: str
    source_servers: str
    target_servers: str
    security: Mapping[str, str] = field(default_factory=dict)
    """Settings of a client of either cluster."""

    @classmethod
    def through(cls, arena: Arena, workload: Workload, topic: str, label: str) -> Route:
        """Between the arena's clusters, over TLS or a line if the workload is."""
        source, target = arena.source, arena.target
        if workload.far_side == "source":
            return cls(workload, topic, label, source.far_servers, target.servers)
        if workload.far_side == "target":
            return cls(workload, topic, label, source.servers, target.far_servers)
        if workload.has_tls:
            security = arena.authority.client_settings()
            return cls(workload, topic, label, source.tls_servers, target.tls_servers, security)
        return cls(workload, topic, label, source.servers, target.servers)

    @property
    def source_alias(self) -> str:
        return f"s{self.label}"

    @property
    def target_alias(self) -> str:
        return f"t{self.label}"

    @property
    def topics(self) -> str:
        """What both are told to mirror: those too that appear next to the topic, where there are such."""
        has_others = self.workload.seams or self.workload.idle_partitions
        return f"{self.topic}, {self.topic}-.*" if has_others else self.topic

    @property
    def target_topic(self) -> str:
        return self.remote(self.topic)

    def remote(self, topic: str) -> str:
        """The name by DefaultReplicationPolicy."""
        return f"{self.source_alias}.{topic}"

    def told(self) -> dict[str, str]:
        """What the workload wants both to be told, other than where the clusters are and the topic."""
        settings = {
            f"{alias}.{key}": value
            for alias in (self.source_alias, self.target_alias)
            for key, value in self.security.items()
        }
        if self.workload.read_committed:
            settings[f"{self.source_alias}.consumer.isolation.level"] = "read_committed"
        if self.workload.target_codec:
            settings[f"{self.target_alias}.producer.compression.type"] = self.workload.target_codec
        for key, value in self.workload.transforms.items():
            settings[f"{self.source_alias}->{self.target_alias}.{key}"] = value
        if self.workload.seams:
            settings["refresh.topics.interval.seconds"] = str(REFRESH_S)
        return settings


class Contender(Protocol):
    """One of the two."""

    name: str
    forwards_batches: bool
    """Whether its copy is to be the same batches, byte for byte, and not only the same records."""

    def settings(self, route: Route, tuning: Tuning) -> dict[str, str]:
        """Its mm2.properties."""

    def map_bytes(self, route: Route, source: Side, target: Side) -> int:
        """What it has written to say which offset became which."""

    def command(self, file: Path) -> list[str]:
        """How it is started on that file."""


def no_duties(target: str) -> dict[str, str]:
    """What any mirror must be told to have no duties other than offset syncs, and one replica of each topic."""
    return {
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        f"{target}.offset.storage.replication.factor": "1",
        "emit.heartbeats.enabled": "false",
        "emit.checkpoints.enabled": "false",
        "refresh.groups.enabled": "false",
        "sync.topic.configs.enabled": "false",
        "sync.topic.acls.enabled": "false",
    }


def _flow(route: Route, tuning: Tuning) -> dict[str, str]:
    """What any mirror must be told: the clusters, the topic, how many tasks, and no duties other than offset syncs."""
    source, target = route.source_alias, route.target_alias
    return {
        "clusters": f"{source}, {target}",
        f"{source}.bootstrap.servers": route.source_servers,
        f"{target}.bootstrap.servers": route.target_servers,
        f"{source}->{target}.enabled": "true",
        f"{source}->{target}.topics": route.topics,
        **no_duties(target),
        "tasks.max": str(tuning.tasks),
    }


class RealMirrorMaker2:
    """Kafka's own, 4.3.1, in dedicated mode, with a tuned consumer and producer, and no side duties."""

    name = "MirrorMaker 2"
    forwards_batches = False

    def settings(self, route: Route, tuning: Tuning) -> dict[str, str]:
        consumer = {
            "fetch.min.bytes": "1",
            "fetch.max.bytes": "52428800" if route.workload.far_side else "33554432",
            "max.partition.fetch.bytes": "33554432",
            "max.poll.records": "50000",
            "receive.buffer.bytes": "33554432",
        }
        producer = {
            "acks": "all",
            "enable.idempotence": "true",
            "max.in.flight.requests.per.connection": "5",
            "batch.size": str(tuning.batch_size),
            "linger.ms": str(tuning.linger_ms),
            "max.request.size": "26214400",
            "buffer.memory": "524288000",
            "send.buffer.bytes": "33554432",
            "compression.type": route.workload.copied_codec,
        }
        return {
            **_flow(route, tuning),
            f"{route.target_alias}.status.storage.replication.factor": "1",
            f"{route.target_alias}.config.storage.replication.factor": "1",
            "refresh.topics.interval.seconds": "600",
            **{f"{route.source_alias}.consumer.{key}": value for key, value in consumer.items()},
            **{f"{route.target_alias}.producer.{key}": value for key, value in producer.items()},
            **route.told(),
        }

    def map_bytes(self, route: Route, source: Side, target: Side) -> int:
        return source.log_bytes(f"mm2-offset-syncs.{route.target_alias}.internal")

    def command(self, file: Path) -> list[str]:
        logging = (f"-Dlog4j2.configurationFile={_LOGGING}", f"-Dsparkmirror.log={file.with_suffix('.log')}")
        main = ("-cp", class_path(MIRROR_MAKER), "org.apache.kafka.connect.mirror.MirrorMaker", str(file))
        return [java(), *MIRROR_MAKER_HEAP, "-server", *KAFKA_JVM_OPTIONS, *logging, *main]


class SparkMirror:
    """Ours, as `sparkmirror run` with its defaults, and no side duties but the offset syncs."""

    name = "sparkmirror"
    forwards_batches = True

    def settings(self, route: Route, tuning: Tuning) -> dict[str, str]:
        return _flow(route, tuning) | route.told()

    def map_bytes(self, route: Route, source: Side, target: Side) -> int:
        return target.log_bytes(segments_topic(route.source_alias))

    def command(self, file: Path) -> list[str]:
        return [str(Path(sys.executable).with_name("sparkmirror")), "run", str(file)]


class RunningMirror:
    """A contender at work; as a context it is stopped at the end, and nothing of it is left."""

    def __init__(self, contender: Contender, settings: Mapping[str, str], directory: Path, account: Account) -> None:
        self._name = contender.name
        self._account = account
        directory.mkdir(parents=True)
        self.file = directory / "mm2.properties"
        self.file.write_text(dumps(dict(settings)))
        self._command = account.command(contender.command(self.file))
        self._output = directory / "output.log"
        self._log = self.file.with_suffix(".log")
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._child = spawn(self._command, output=self._output)
        with suppress(ProcessLookupError):
            self._account.adopt(self._child.pid)
        self.started = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(signal.SIGTERM)
            try:
                self._child.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
        self._account.close()

    @property
    def pid(self) -> int:
        """The process that was started; ContenderFailed if there is none."""
        if self._child is None:
            raise self.failure("was not started")
        return self._child.pid

    def cpu_s(self) -> float:
        """CPU seconds of all its processes so far."""
        return self._account.cpu_s()

    def check(self) -> None:
        """Raise ContenderFailed if it has ended."""
        if self._child is None or self._child.poll() is not None:
            raise self.failure("ended")

    def failure(self, what: str) -> ContenderFailed:
        """Say `what` it did, with the ends of its logs."""
        last = [
            line
            for file in (self._log, self._output)
            if file.exists()
            for line in file.read_text(errors="replace").splitlines()[-8:]
        ]
        return ContenderFailed(f"{self._name} {what}; its last words:\n" + "\n".join(last))


CONTENDERS: tuple[Contender, ...] = (RealMirrorMaker2(), SparkMirror())
