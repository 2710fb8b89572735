"""Kafka clusters as pods of a node, what is written to them, and what a mirror makes of it."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bench.payloads import order
from bench.records import TopicReader
from kafka import KafkaProducer
from tests.deploy.node.kube_node import KubeNode, is_ready, wait_for
from tests.support import mirror_process as mp

from sparkmirror.errors import SparkMirrorError

_SETTINGS = {
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_LISTENERS": "CLIENTS://:9092,CONTROLLER://:9093",
    "KAFKA_ADVERTISED_LISTENERS": "CLIENTS://$(POD_IP):9092",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "CLIENTS",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
}
_CLUSTERS = {"primary": "cHJpbWFyeS1jbHVzdGVyMQ", "backup": "YmFja3VwLWNsdXN0ZXItMQ"}
START_S = 300.0
COPIED_S = 180.0
SAMPLE_S = 0.2


@dataclass(frozen=True)
class Brokers:
    """Their addresses, in the node's network; pods find them as `primary.kafka:9092` and `backup.kafka:9092`."""

    node: KubeNode
    primary: str
    backup: str

    def create_topic(self, topic: str, partitions: int) -> None:
        self.node.place.ask(lambda: mp.create_topic(self.primary, topic, partitions))

    def wait_until_copied(self, topic: str, partitions: int) -> None:
        """All that is there now."""

        end = self._ended(self.primary, topic, partitions)
        wait_for(lambda: self.copied(topic, partitions) >= end, COPIED_S, f"all of {topic} is copied")

    def copied(self, topic: str, partitions: int) -> int:
        """Records of a topic without gaps that are at the target."""
        return self._ended(self.backup, f"primary.{topic}", partitions)

    def copied_of_each(self, topic: str, partitions: int) -> list[int]:
        """The same by partition."""
        return self.node.place.ask(lambda: mp.end_offsets(self.backup, f"primary.{topic}", partitions))

    def _ended(self, servers: str, topic: str, partitions: int) -> int:
        return self.node.place.ask(lambda: sum(mp.end_offsets(servers, topic, partitions)))

    def fill(self, topic: str, partitions: int, records: int, size: int) -> None:
        """Write orders in JSON, packed to records of so many bytes, uncompressed."""
        source = random.Random(topic)
        packs = [
            b"".join(itertools.islice((order(source, n) for n in itertools.count()), size // 800 + 1))[:size]
            for _ in range(500)
        ]

        def write() -> None:
            producer = KafkaProducer(bootstrap_servers=self.primary, linger_ms=5, batch_size=1 << 19)
            for number in range(records):
                producer.send(topic, value=packs[number % len(packs)], partition=number % partitions)
            producer.flush()
            producer.close()

        self.node.place.ask(write)

    @contextmanager
    def load(self, topic: str, partitions: int, *, per_s: int) -> Iterator[None]:
        """Write to it for the length of a `with`."""
        loading = mp.load(self.primary, topic, partitions, per_s=per_s)
        self.node.place.ask(loading.__enter__)
        try:
            yield
        finally:
            loading.__exit__(None, None, None)

    def assert_copied(self, topic: str) -> int:
        """Compare every record of both logs; return how many there are."""
        ours, theirs = TopicReader(self.primary, topic), TopicReader(self.backup, f"primary.{topic}")
        originals = self.node.place.ask(ours.contents)
        copies = self.node.place.ask(theirs.contents)
        assert originals.keys() == copies.keys()
        for partition, part in originals.items():
            copy = copies[partition]
            assert (copy.records, copy.digest, copy.offsets) == (part.records, part.digest, part.offsets), (
                f"{topic}-{partition}: {copy.records} of {part.records} records"
            )
        return sum(part.records for part in originals.values())


class Watched:
    """When the copy of a topic grew, while the context is open."""

    def __init__(self, brokers: Brokers, topic: str, partitions: int) -> None:
        self._brokers = brokers
        self._topic, self._partitions = f"primary.{topic}", partitions
        self._grown: list[tuple[float, int]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: brokers.node.place.ask(self._watch), daemon=True)

    def __enter__(self) -> Watched:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(mp.ANSWER_S)

    def _watch(self) -> None:
        while not self._stop.wait(SAMPLE_S):
            try:
                total = sum(mp.end_offsets(self._brokers.backup, self._topic, self._partitions))
            except (SparkMirrorError, OSError):  # it is asked again
                continue
            if not self._grown or total > self._grown[-1][1]:
                self._grown.append((time.monotonic(), total))

    def grown_since(self, when: float) -> bool:
        return bool(self._grown) and self._grown[-1][0] > when

    def longest_pause_s(self) -> float:
        """Between two times that it grew."""
        times = [when for when, _ in self._grown]
        return max((later - before for before, later in itertools.pairwise(times)), default=0.0)


@contextmanager
def brokers(node: KubeNode, image: str, namespace: str) -> Iterator[Brokers]:
    """Two clusters of one broker each; they end with the node."""
    for name, cluster in _CLUSTERS.items():
        node.apply(_pod(name, cluster, image, namespace), _service(name, namespace))
    wait_for(lambda: all(map(is_ready, pods := node.pods(namespace))) and len(pods) == 2, START_S, "brokers")
    addresses = {pod["metadata"]["name"]: f"{pod['status']['podIP']}:9092" for pod in node.pods(namespace)}
    yield Brokers(node, addresses["primary"], addresses["backup"])


def _pod(name: str, cluster: str, image: str, namespace: str) -> dict[str, Any]:
    address = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    settings = [{"name": key, "value": value} for key, value in {**_SETTINGS, "CLUSTER_ID": cluster}.items()]
    security = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"broker": name}},
        "spec": {
            # A service's variables are not settings of Kafka
            "enableServiceLinks": False,
            "automountServiceAccountToken": False,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                {
                    "name": "kafka",
                    "image": image,
                    "imagePullPolicy": "Never",
                    "env": [address, *settings],
                    "securityContext": security,
                    "readinessProbe": {"tcpSocket": {"port": 9092}, "periodSeconds": 1},
                    "resources": {"requests": {"cpu": "400m"}},
                    "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
                }
            ],
            "volumes": [{"name": "tmp", "emptyDir": {}}],
        },
    }


def _service(name: str, namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"broker": name}, "ports": [{"port": 9092}]},
    }
