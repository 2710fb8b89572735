"""Where the contest takes place: one source and one target cluster of one broker each, both fresh.

Every broker has an account of its own, so that what a mirror costs the clusters is measured, too.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import psutil
from kafka import KafkaAdminClient
from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType
from lab import Authority, KafkaCluster
from lab.distance import Distance, DistanceProxy

from bench.accounting import Account, Accounting, wait_until_quiet
from sparkmirror.config import ClusterConfig
from sparkmirror.errors import SetupError
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.list_offsets import LATEST, list_offsets

# What `kafka-run-class.sh` starts brokers and MirrorMaker 2 with, `-server` and headless aside.
KAFKA_JVM_OPTIONS = (
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
)
BROKER_HEAP_MB = 1024
BROKER_SETTINGS = {"log.segment.delete.delay.ms": "1000"}
SOURCE_SETTINGS = {"log.cleaner.backoff.ms": "1000"}
TARGET_SETTINGS = {"log.cleaner.backoff.ms": "3600000"}
"""MirrorMaker 2 gives a copy its source's cleanup.policy; the cleaner must not change what is compared."""
ROOM_PER_GB = 3 * 10**9
_DELETED_TIMEOUT_S = 300.0


class Side:
    """One of the two clusters: its topics, its logs' sizes and ends, its broker's CPU seconds."""

    def __init__(self, cluster: KafkaCluster, account: Account) -> None:
        self._cluster = cluster
        self.servers = cluster.bootstrap_servers
        self.tls_servers = cluster.tls_bootstrap_servers
        self.account = account
        account.adopt(cluster.brokers[0].pid)
        self._data = cluster.brokers[0].data
        self._admin: Any = KafkaAdminClient(bootstrap_servers=self.servers, client_id="bench-admin")
        self._client = self.connect()

    @property
    def far_servers(self) -> str:
        """The same broker at the end of a line."""
        return self._cluster.far_servers

    @property
    def line(self) -> DistanceProxy:
        """What the far address is far by."""
        return self._cluster.line

    def connect(self) -> ClusterClient:
        """A client of the caller's own."""
        config = ClusterConfig(alias="bench", bootstrap_servers=tuple(self.servers.split(",")))
        return ClusterClient(config, "bench")

    def create_topic(self, name: str, partitions: int, configs: Mapping[str, str] | None = None) -> None:
        """Create a topic that holds each batch as it was sent."""
        wanted = {"num_partitions": partitions, "replication_factor": 1, "configs": dict(configs or {})}
        self._admin.create_topics({name: wanted}, wait_for_metadata=True)

    def configure(self, topic: str, configs: Mapping[str, str | None]) -> None:
        """Set these of the topic's configs; None takes one back."""
        changes = {
            key: (AlterConfigOp.SET, value) if value is not None else (AlterConfigOp.DELETE, None)
            for key, value in configs.items()
        }
        self._admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, changes)], incremental=True)

    def delete_topics(self, names: Iterable[str] | None = None) -> None:
        """Delete these topics (all but Kafka's own, if none are named); return when their logs are off the disk."""
        there = {name for name in self._admin.list_topics() if not name.startswith("__")}
        doomed = there if names is None else there & set(names)
        if not doomed:
            return
        self._admin.delete_topics(sorted(doomed))
        deadline = time.monotonic() + _DELETED_TIMEOUT_S
        while any(
            directory.name.endswith("-delete") or _topic_of(directory) in doomed for directory in self._partitions()
        ):
            if time.monotonic() > deadline:
                raise SetupError(f"topics are still on the disk {_DELETED_TIMEOUT_S:.0f} s after they were deleted")
            time.sleep(0.2)

    def log_bytes(self, topic: str) -> int:
        """The record batches of `topic` as they are stored."""
        return sum(log.stat().st_size for log in self._logs(topic))

    def is_compacted(self, topic: str) -> bool:
        """Whether the cleaner has been over all it may clean: everything but each partition's newest segment."""
        cleaned = self._cleaner_offsets(topic)
        newest: dict[str, int] = {}
        for log in self._logs(topic):
            newest[log.parent.name] = max(newest.get(log.parent.name, 0), int(log.stem))
        return bool(newest) and all(cleaned.get(name, 0) >= offset for name, offset in newest.items())

    def end_offsets(self, topic: str) -> dict[int, int]:
        """High watermarks by partition; empty if the topic is not there (yet)."""
        found = self._client.metadata([topic])[topic]
        if found.error or any(part.leader < 0 for part in found.partitions.values()):
            return {}
        answers = list_offsets(self._client, 1, {topic: sorted(found.partitions)}, LATEST)
        return {partition: max(answer.offset, 0) for (_, partition), answer in answers.items()}

    def close(self) -> None:
        self._admin.close()
        self._client.close()

    def _cleaner_offsets(self, topic: str) -> dict[str, int]:
        """The broker's own note of how far each partition is cleaned, by directory name."""
        file = self._data / "cleaner-offset-checkpoint"
        rows = [line.split() for line in file.read_text().splitlines()[2:]] if file.exists() else []
        return {f"{name}-{partition}": int(offset) for name, partition, offset in rows if name == topic}

    def _logs(self, topic: str) -> list[Path]:
        return [
            log for directory in self._partitions() if _topic_of(directory) == topic for log in directory.glob("*.log")
        ]

    def _partitions(self) -> list[Path]:
        """A directory for each partition, and for each that is being deleted; and a few other files."""
        return list(self._data.iterdir())


def _topic_of(directory: Path) -> str:
    """The topic whose partition is kept there; empty if it's none."""
    topic, _, partition = directory.name.rpartition("-")
    return topic if partition.isdigit() else ""


class Arena:
    """As a context: both clusters run, and all is deleted at the end. With lines each has a far address, too."""

    def __init__(
        self, place: Path, accounting: Accounting, gigabytes: float, patience_s: float, *, has_lines: bool = False
    ) -> None:
        place.mkdir(parents=True, exist_ok=True)
        room = shutil.disk_usage(place).free
        if room < gigabytes * ROOM_PER_GB:
            raise SetupError(
                f"{place} has {room / 1e9:.1f} GB free, and {gigabytes * ROOM_PER_GB / 1e9:.1f} GB are needed; "
                "choose another --directory, or fewer --gb"
            )
        self.accounting = accounting
        self._place = place
        self._patience_s = patience_s
        self._distance = Distance() if has_lines else None
        self._cleanup = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as started:
            self.directory = Path(started.enter_context(tempfile.TemporaryDirectory(dir=self._place)))
            self.authority = Authority(self.directory / "authority")
            self.source = self._start("source", SOURCE_SETTINGS, started)
            self.target = self._start("target", TARGET_SETTINGS, started)
            self._cleanup = started.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    def settle(self) -> None:
        """Write out what came before, then wait for a quiet machine: neither is to pay for others' work."""
        os.sync()
        wait_until_quiet(self._patience_s)

    def brokers_cpu_s(self) -> float:
        """What both brokers have used so far."""
        return self.source.account.cpu_s() + self.target.account.cpu_s()

    def lines_cpu_s(self) -> float:
        """What the processes that play lines have used so far; 0 if there are none."""
        if self._distance is None:
            return 0.0
        times = [psutil.Process(side.line.pid).cpu_times() for side in (self.source, self.target)]
        return float(sum(time.user + time.system for time in times))

    def _start(self, name: str, settings: Mapping[str, str], started: ExitStack) -> Side:
        cluster = KafkaCluster(
            self.directory / name,
            heap_mb=BROKER_HEAP_MB,
            jvm_options=KAFKA_JVM_OPTIONS,
            properties={**BROKER_SETTINGS, **settings},
            tls=self.authority,
            distance=self._distance,
        )
        account = self.accounting.open(name)
        started.callback(account.close)
        started.callback(cluster.cleanup)
        cluster.start()
        side = Side(cluster, account)
        started.callback(side.close)
        return side
