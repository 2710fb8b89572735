"""Atomic sets of real transactional producers, Java's among them, and of applications shaped like Kafka Streams'."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from bench.producing import TOOLS
from kafka import KafkaProducer
from kafka.structs import OffsetAndMetadata, TopicPartition
from lab import Authority, KafkaCluster
from tests.support import mirror_process as mp
from tests.support.secure_clusters import of_cluster
from tests.support.started import started

from sparkmirror.config import ClusterConfig, load_mm2_properties
from sparkmirror.demo.jars import class_path
from sparkmirror.demo.java import java
from sparkmirror.kafka.cluster.acl_changes import add, remove, shown_by_brokers
from sparkmirror.kafka.cluster.acls import ALLOW, DESCRIBE, READ, Acl, AclResource
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.groups import Committed, Groups
from sparkmirror.migrate import atomic_sets as module
from sparkmirror.migrate.atomic_sets import AtomicSets, atomic_sets
from sparkmirror.migrate.ties import AtomicSet, TieVerdict

pytestmark = pytest.mark.broker

APP = "app-1-by-repartition app-1-store-changelog app-in app-out"
CREATED = f"orders payments bills clicks plain-in plain-1-store-changelog other {APP}"
TOPICS = CREATED.split()
READ_TOO = [topic for topic in TOPICS if topic not in ("app-out", "plain-1-store-changelog")]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[KafkaCluster]:
    """A cluster with applications of its own, that keeps ACLs; who comes in clear may do all."""
    one = KafkaCluster(tmp_path_factory.mktemp("tied"), acls=True, tls=authority)
    with started(one):
        for topic in TOPICS:
            mp.create_topic(one.bootstrap_servers, topic, 2)
        applications(one)
        yield one


def client_of(cluster: KafkaCluster) -> ClusterClient:
    return ClusterClient(ClusterConfig(alias="A", bootstrap_servers=(cluster.bootstrap_servers,)), "test")


def applications(cluster: KafkaCluster) -> None:
    with closing(client_of(cluster)) as client:
        groups = Groups(client)
        commits = {
            "plain": [("plain-in", 0), ("plain-1-store-changelog", 0)],
            "reader": [("orders", 0), ("other", 0)],
            "connect-s3": [("orders", 0), ("clicks", 1)],
        }
        for group, topics in commits.items():
            assert not any(groups.commit({group: dict.fromkeys(topics, Committed(0))})[group].values())
    transact(cluster, "pay-1", ["payments", "bills"], "paying", "orders")
    transact(cluster, "pay-2", ["bills"])
    transact(cluster, "app-1-7", ["app-out", "app-1-store-changelog", "app-1-by-repartition"], "app", "app-in")
    command = [
        *(java(), "-Xmx128m", "-cp", class_path(TOOLS), "org.apache.kafka.tools.ProducerPerformance"),
        *("--bootstrap-server", cluster.bootstrap_servers, "--topic", "clicks", "--num-records", "20"),
        *("--record-size", "10", "--throughput", "-1", "--transactional-id", "java", "--transaction-duration-ms", "5"),
    ]
    subprocess.run(command, check=True, timeout=120, capture_output=True)


def transact(cluster: KafkaCluster, name: str, topics: list[str], group: str = "", reads: str = "") -> None:
    """Two transactions, the second one aborted."""
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, transactional_id=name, retry_backoff_ms=10)
    producer.init_transactions()
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        for topic in topics:
            producer.send(topic, b"x", partition=0)
        if group:
            producer.send_offsets_to_transaction({TopicPartition(reads, 1): OffsetAndMetadata(1, "", -1)}, group)
        producer.flush()
        end()
    producer.close()


def atomic(topics: str, groups: str = "", ids: str = "", streams: str = "") -> AtomicSet:
    of = [frozenset(names.split()) for names in (topics, groups, ids, streams)]
    return AtomicSet(topics=of[0], groups=of[1], transactional_ids=of[2], streams=of[3])


EXPECTED = (
    atomic(APP, "app", "app-1-7", "app"),
    atomic("bills orders payments", "paying", "pay-1 pay-2"),
    atomic("clicks", "", "java"),
    atomic("plain-1-store-changelog plain-in", "plain", "", "plain"),
)
SINKS = {"connect-s3": frozenset({"orders", "clicks"})}


def test_all_sets_are_found(cluster: KafkaCluster) -> None:
    """Other consumers tie nothing, and a sink is named, not tied."""
    with closing(client_of(cluster)) as client:
        told = atomic_sets(client)
    assert told == AtomicSets(sets=EXPECTED, sinks=SINKS)
    assert told.verdict({"bills"}, set()) == told.verdict(set(), {"plain"}) == TieVerdict.FOUND
    assert told.verdict({"other"}, {"reader"}) == TieVerdict.NOT_SEEN


def test_the_newest_records_alone(cluster: KafkaCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long log is read from near its end; the partitions are named, and leaders know what is missing."""
    monkeypatch.setattr(module, "TAIL", 1)
    with closing(client_of(cluster)) as client:
        told = atomic_sets(client)
    assert any(name.startswith("__transaction_state-") for name in told.cut)
    assert EXPECTED[2] in told.sets
    assert told.sets[0].topics == set(APP.split())


def test_without_the_brokers_own_topics(cluster: KafkaCluster, authority: Authority, tmp_path: Path) -> None:
    """As with many providers: what coordinators and leaders tell is a part, and the rest unknown."""
    keys = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(authority.issue(tmp_path / "keys.pem", "x"))}
    settings = of_cluster("A", authority.client_settings() | keys)
    servers = cluster.tls_bootstrap_servers
    file = mp.write_properties(tmp_path / "mm2.properties", servers, servers, "t", settings)
    kinds = [
        *((AclResource.TOPIC, READ, topic) for topic in READ_TOO),
        (AclResource.TOPIC, DESCRIBE, "app-out"),
        (AclResource.GROUP, DESCRIBE, "*"),
        (AclResource.TRANSACTIONAL_ID, DESCRIBE, "*"),
    ]
    allowed = [
        Acl(name=name, principal="User:*", host="*", operation=operation, permission=ALLOW, resource=resource)
        for resource, operation, name in kinds
    ]
    with closing(client_of(cluster)) as admin:
        add(admin, allowed)
        try:
            mp.wait_for(lambda: shown_by_brokers(admin, allowed).everywhere, 30, "they count")
            with closing(ClusterClient(load_mm2_properties(str(file)).flows[0].source, "test")) as client:
                told = atomic_sets(client)
        finally:
            remove(admin, allowed)
    assert told.sets == (
        atomic("app-1-by-repartition app-1-store-changelog app-in", "app", "app-1-7", "app"),
        atomic("bills payments", "", "pay-1 pay-2"),
        atomic("clicks", "", "java"),
    )
    assert told.verdict({"bills"}, set()) == TieVerdict.FOUND
    assert told.verdict({"other"}, set()) == TieVerdict.UNKNOWN
    reasons = "\n".join(told.unknown)
    for topic in ("__transaction_state", "__consumer_offsets"):
        assert f"topic {topic} can't be read: TOPIC_AUTHORIZATION_FAILED (29); grant sparkmirror's" in reasons
    assert "the producers of topic app-out can't be read: grant sparkmirror's principal READ on it" in reasons
