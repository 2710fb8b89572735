"""The two migrations of the mm2-demo's page, step by step: a consumer group moves first, its producer later.

The group must read every record, none twice, and in order, through all steps.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer
from lab import KafkaCluster
from tests.connect.served_worker import ServedWorker
from tests.support import mirror_process as mp
from tests.support.connectors import CUSTOM_POLICY

from sparkmirror.config import ClusterConfig
from sparkmirror.connect.connector_model import TargetState
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.groups import Groups

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

PARTITIONS = 2


@contextmanager
def meanwhile(work: Callable[[threading.Event], object]) -> Iterator[None]:
    """Do it for the length of a `with`: until the event is set."""
    stop = threading.Event()
    thread = threading.Thread(target=work, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)


class ConsoleProducer:
    """Writes numbers for the length of a `with`, the same sequence through all of its lives."""

    def __init__(self) -> None:
        self.sent = 0

    def at(self, servers: str, topic: str) -> AbstractContextManager[None]:
        """Write to a topic of this cluster."""

        def write(stop: threading.Event) -> None:
            producer = KafkaProducer(bootstrap_servers=servers, linger_ms=5)
            while not stop.wait(0.02):
                for _ in range(10):
                    producer.send(topic, value=b"%d" % self.sent, partition=self.sent % PARTITIONS)
                    self.sent += 1
            producer.flush()
            producer.close()

        return meanwhile(write)


class ConsoleConsumer:
    """Reads as a member of a group, and commits what it has read after each poll, as the page's consumer does."""

    def __init__(self, group: str, pattern: str) -> None:
        self.group = group
        self.pattern = pattern
        self.read: dict[int, list[int]] = defaultdict(list)
        """The numbers, by partition."""

    @property
    def count(self) -> int:
        """How many records it has read."""
        return sum(map(len, self.read.values()))

    def at(self, servers: str) -> AbstractContextManager[None]:
        """Read from this cluster for the length of a `with`."""

        def consume(stop: threading.Event) -> None:
            consumer = KafkaConsumer(
                bootstrap_servers=servers,
                group_id=self.group,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                metadata_max_age_ms=1000,
            )
            consumer.subscribe(pattern=self.pattern)
            while not stop.is_set():
                found = consumer.poll(timeout_ms=200, max_records=100)
                for where, records in found.items():
                    self.read[where.partition] += [int(record.value) for record in records]
                if found:
                    consumer.commit()
            consumer.close()

        return meanwhile(consume)


def committed(servers: str, group: str) -> dict[int, int]:
    client = ClusterClient(ClusterConfig(alias="source", bootstrap_servers=(servers,)), "test")
    try:
        found = Groups(client).committed([group]).offsets.get(group, {})
        return {where[1]: one.offset for where, one in found.items()}
    finally:
        client.close()


@contextmanager
def group_sync_app(target: str, directory: Path, alias: str, group: str, policy: str) -> Iterator[None]:
    """`sparkmirror sync-groups` for the length of a `with`; its end is SIGTERM, as the page's `kill`."""
    file = directory / "consumer.properties_sync_dest"
    file.write_text(f"BOOTSTRAP_SERVERS_CONFIG = {target}\n")
    flags = ["-cgi", group, "-src", alias, "-int", "1", *(["-rpc", policy] if policy else [])]
    command = (mp.COMMAND, "sync-groups", "-pfp")
    with mp.MirrorProcess(file, directory / "sync-groups.log", *flags, command=command) as app:
        yield
        assert app.process.poll() is None, "it has ended by itself"
        assert app.terminate() == 0


def states(worker: ServedWorker) -> set[str]:
    """Those that its connectors and their tasks are in."""
    found = [worker.ask("GET", f"/connectors/{name}/status") for name in worker.names]
    return {one["state"] for status in found for one in (status["connector"], *status["tasks"])}


@pytest.fixture
def worker(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> Iterator[ServedWorker]:
    """Not started yet."""
    worker = ServedWorker(source_cluster, target_cluster, f"{topic_name}-worker", tmp_path)
    yield worker
    worker.end()


@pytest.mark.parametrize("policy", ["", CUSTOM_POLICY], ids=["default", "custom"])
def test_a_group_and_then_its_producer_move(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    worker: ServedWorker,
    policy: str,
    tmp_path: Path,
) -> None:
    source, target = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    alias = "M" + topic_name[-3:].replace("-", "")
    topic, group = topic_name, f"{topic_name}-group"
    remote = topic if policy else f"{alias}.{topic}"
    mp.create_topic(source, topic, PARTITIONS)
    producer = ConsoleProducer()
    consumer = ConsoleConsumer(group, f"^({topic}|{remote})$")
    with producer.at(source, topic):
        with ExitStack() as app:
            with consumer.at(source):
                mp.wait_for(lambda: consumer.count > 100, 180, "the group reading at the source")
                worker.start()
                for name, config in worker.connectors(topic, alias, policy).items():
                    worker.put(name, config)
                for name in worker.names:
                    worker.wait_for(name, "RUNNING")
                app.enter_context(group_sync_app(target, tmp_path, alias, group, policy))
                mp.wait_for(lambda: worker.copied(remote, PARTITIONS) > 0, 180, "the copy")
                mp.wait_for(lambda: bool(committed(target, group)), 180, "the group's first offsets at the target")
            at = committed(source, group)
            mp.wait_for(lambda: committed(target, group) == at, 180, "the group's last offsets at the target")
        # The app has set the last offsets and is stopped; only then the group reads at the target.
        before = consumer.count
        with consumer.at(target):
            mp.wait_for(lambda: consumer.count > before + 100, 180, "the group reading at the target")
    # The producer has stopped; it continues at the target when everything is copied and read.
    if not policy:
        mp.create_topic(target, topic, PARTITIONS)
    with consumer.at(target):
        mp.wait_for(lambda: worker.copied(remote, PARTITIONS) == producer.sent, 180, "everything copied")
        mp.wait_for(lambda: consumer.count == producer.sent, 180, "everything read")
        moved = producer.sent
        with producer.at(target, topic):
            mp.wait_for(lambda: consumer.count > moved + 1000, 180, "what was written to the target")
            assert states(worker) == {"RUNNING"}
            worker.to(TargetState.STOPPED, *worker.names)
            worker.delete(*list(worker.names))
            time.sleep(2)
        mp.wait_for(lambda: consumer.count >= producer.sent, 180, "all that was written to the target")
    expected = {index: list(range(index, producer.sent, PARTITIONS)) for index in range(PARTITIONS)}
    assert consumer.read == expected
