"""Two clusters, source and target, whose clients meet every broker through a proxy."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError
from lab import KafkaCluster

from chaos.replication import ReplicatedCluster
from sparkmirror.errors import SetupError

_HEAP_MB = 384
_IN_SYNC_TIMEOUT_S = 60.0
_POLL_S = 0.3
_SETTINGS = {
    # A follower that is away is out of the way when its session is (3 s), or after this, whichever comes first.
    "replica.lag.time.max.ms": "6000",
    # A producer that is gone holds readers of committed records up for its transaction's timeout and this.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
    # A quota looks back that many seconds: what was copied in a hurry before must not be made up for in minutes.
    "quota.window.num": "2",
}
_ALONE = {
    # Nobody takes over from a source's only broker when it is paused. If its session ended, its partitions had no
    # leader for a moment, and Kafka leaves out the marker of a transaction that is aborted just then: its records
    # are committed with the producer's next ones (KAFKA-20734).
    "broker.session.timeout.ms": "10000",
}
_FORGETFUL = {"producer.id.expiration.check.interval.ms": "1000"}
"""Of the target: it forgets every second who wrote records that are older than a day."""
_LOG_DIRS = 2
"""One can be full and the broker continues with the other."""


class NoVictim(Exception):
    """There was nobody to hurt."""


class Arena:
    """As a context both clusters run; they are deleted at the end, but for their logs if `keep_logs`.

    With three brokers a side, replication is 3 and min.insync.replicas 2: one broker may be away.
    """

    def __init__(self, directory: Path, brokers: int = 3, *, keep_logs: bool = False) -> None:
        self.directory = directory
        self.replicas = min(brokers, 3)
        self._keep_logs = keep_logs
        settings = {**_SETTINGS, "min.insync.replicas": str(min(2, brokers))}
        of_source = settings | (_ALONE if brokers == 1 else {})
        self.source, self.target = (
            ReplicatedCluster(
                directory / name,
                brokers=brokers,
                properties=properties,
                heap_mb=_HEAP_MB,
                proxied=True,
                log_dirs=_LOG_DIRS,
            )
            for name, properties in (("source", of_source), ("target", settings | _FORGETFUL))
        )

    def __enter__(self) -> Self:
        try:
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(KafkaCluster.start, (self.source, self.target)))
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill all brokers and delete their data."""
        for cluster in (self.source, self.target):
            cluster.cleanup(keep_logs=self._keep_logs)

    def create_topic(self, cluster: KafkaCluster, topic: str, partitions: int) -> None:
        """Create a topic on all brokers."""
        admin: Any = KafkaAdminClient(bootstrap_servers=cluster.direct_servers)
        try:
            admin.create_topics([NewTopic(topic, partitions, self.replicas)], wait_for_metadata=True)
        finally:
            admin.close()

    def repair(self) -> None:
        """Make everything whole again, whatever state it is in. Raises SetupError where that fails."""
        for cluster in (self.source, self.target):
            for broker in cluster.brokers:
                if broker.proxy:
                    broker.proxy.heal()
                broker.resume()
                if not broker.running:
                    broker.start()
        for cluster in (self.source, self.target):
            wait_in_sync(cluster)


def wait_in_sync(cluster: KafkaCluster, timeout_s: float = _IN_SYNC_TIMEOUT_S) -> None:
    """Wait until every replica of every partition is in sync. Raises SetupError when it takes longer."""
    deadline = time.monotonic() + timeout_s
    behind = "the cluster does not answer"
    while time.monotonic() < deadline:
        try:
            behind = _behind(cluster)
        except KafkaError as error:
            behind = str(error)
        if not behind:
            return
        time.sleep(_POLL_S)
    raise SetupError(f"replicas are not in sync after {timeout_s:.0f} s: {behind}")


def _behind(cluster: KafkaCluster) -> str:
    admin: Any = KafkaAdminClient(
        bootstrap_servers=cluster.direct_servers, request_timeout_ms=5000, bootstrap_timeout_ms=5000
    )
    try:
        for topic in admin.describe_topics():
            for part in topic["partitions"]:
                if set(part["isr_nodes"]) != set(part["replica_nodes"]):
                    return f"{topic['name']}-{part['partition_index']} has {part['isr_nodes']} in sync"
    finally:
        admin.close()
    return ""
