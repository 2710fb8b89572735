"""The admin side of one cluster, against a real one, and against none."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest
from kafka import KafkaProducer
from lab import KafkaCluster
from tests.support import mirror_process as mp

from sparkmirror.config.model import ClusterConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.new_topics import NewTopicSpec
from sparkmirror.kafka.wire.error_codes import ErrorCode


def config(*servers: str) -> ClusterConfig:
    return ClusterConfig(alias="us", bootstrap_servers=servers)


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def unreachable(server: str) -> str:
    threads = threading.active_count()
    started = time.monotonic()
    with pytest.raises(ClusterUnreachable) as caught:
        ClusterAdmin.connect(config(server), "test", 5)
    assert time.monotonic() - started < 30
    deadline = time.monotonic() + 30
    while threading.active_count() > threads:
        assert time.monotonic() < deadline, "a thread was left behind"
        time.sleep(0.02)
    line = str(caught.value)
    assert line.startswith(f"cluster us can't be reached at {server}: ")
    assert "\n" not in line
    return line


def test_nothing_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert "connection refused; check bootstrap.servers" in unreachable(f"127.0.0.1:{port}")


def test_unknown_host() -> None:
    assert "host no-such-host.invalid is not known" in unreachable("no-such-host.invalid:9092")


def test_not_a_broker(silent_port: int) -> None:
    assert "check the port and security.protocol" in unreachable(f"127.0.0.1:{silent_port}")


@pytest.fixture
def admin(source_cluster: KafkaCluster) -> Iterator[ClusterAdmin]:
    with ClusterAdmin.connect(config(*source_cluster.bootstrap_servers.split(",")), "test", 20) as connected:
        yield connected


@pytest.mark.broker
def test_cluster_id(admin: ClusterAdmin, source_cluster: KafkaCluster) -> None:
    assert admin.cluster_id() == source_cluster.cluster_id


@pytest.mark.broker
def test_connections_that_a_question_uses_are_counted(admin: ClusterAdmin, topic_name: str) -> None:
    admin.create_topics([NewTopicSpec(topic_name, 1, 1)])
    mp.wait_for(lambda: admin.end_offsets([(topic_name, 0)]) == {(topic_name, 0): 0}, 60, "its leader is known")
    asked = threading.Event()

    def ask() -> None:
        for _ in range(200):
            admin.end_offsets([(topic_name, 0)])
        asked.set()

    thread = threading.Thread(target=ask)
    thread.start()
    counted = set[int]()
    while not asked.is_set():
        counted.add(admin.connections)
    thread.join()
    assert counted == {1}


@pytest.mark.broker
def test_creates_and_describes_topics(admin: ClusterAdmin, topic_name: str) -> None:
    assert admin.create_topics([NewTopicSpec(topic_name, 3, 1, {"retention.ms": "1000"})]) == {topic_name: None}
    assert admin.create_topics([NewTopicSpec(topic_name, 3, 1)]) == {topic_name: None}
    mp.wait_for(lambda: topic_name in admin.topics(), 60, "the broker knows it")
    described = admin.topics()[topic_name]
    assert admin.topics([topic_name, "no-such-topic"]) == {topic_name: described}
    assert [p.partition for p in described.partitions] == [0, 1, 2]
    assert all(p.leader == 1 and p.replicas == (1,) and p.in_sync == (1,) for p in described.partitions)
    assert len(described.topic_id) == 16
    assert any(described.topic_id)
    configs = {entry.name: entry for entry in admin.topic_configs([topic_name, "no-such-topic"])[topic_name]}
    assert configs["retention.ms"].value == "1000"
    assert configs["retention.ms"].source == "DYNAMIC_TOPIC_CONFIG"
    assert configs["cleanup.policy"].source == "DEFAULT_CONFIG"


@pytest.mark.broker
def test_each_topic_has_its_own_outcome(admin: ClusterAdmin, topic_name: str) -> None:
    specs = [
        NewTopicSpec(topic_name, 1, 1),
        NewTopicSpec(f"{topic_name}-rf", 1, 3),
        NewTopicSpec(f"{topic_name}-config", 1, 1, {"no.such": "1"}),
        NewTopicSpec(f"{topic_name} name", 1, 1),
    ]
    outcomes = admin.create_topics(specs)
    assert outcomes[topic_name] is None
    refusals = {name: reason for name, reason in outcomes.items() if reason}
    assert set(refusals) == {spec.name for spec in specs[1:]}
    assert all("\n" not in reason for reason in refusals.values())
    assert "lower its replication factor" in refusals[f"{topic_name}-rf"]
    assert "no.such" in refusals[f"{topic_name}-config"]


@pytest.mark.broker
def test_partitions_grow_and_never_shrink(admin: ClusterAdmin, topic_name: str) -> None:
    admin.create_topics([NewTopicSpec(topic_name, 2, 1)])
    outcomes = admin.create_partitions({topic_name: 4, "no-such-topic": 2})
    assert outcomes[topic_name] == (0, "")
    assert outcomes["no-such-topic"][0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert admin.create_partitions({topic_name: 3}) == {topic_name: (0, "")}
    mp.wait_for(lambda: len(admin.topics([topic_name])[topic_name].partitions) == 4, 60, "the broker knows them")


@pytest.mark.broker
def test_internal_topics(admin: ClusterAdmin, topic_name: str) -> None:
    assert admin.create_compacted_topic(topic_name, 1, 1, {"retention.ms": "1000"})
    assert not admin.create_compacted_topic(topic_name, 1, 1)
    configs = {entry.name: entry.value for entry in admin.topic_configs([topic_name])[topic_name]}
    assert (configs["cleanup.policy"], configs["retention.ms"]) == ("compact", "1000")
    with pytest.raises(ClusterUnreachable, match=r"cluster us: creating the internal topic .* failed: "):
        admin.create_compacted_topic(f"{topic_name}-rf", 1, 3)


@pytest.mark.broker
def test_offsets_of_what_is_there(admin: ClusterAdmin, source_cluster: KafkaCluster, topic_name: str) -> None:
    admin.create_topics([NewTopicSpec(topic_name, 2, 1)])
    producer = KafkaProducer(bootstrap_servers=source_cluster.bootstrap_servers)
    for number in range(5):
        producer.send(topic_name, b"%d" % number, partition=1)
    producer.close()
    asked = [(topic_name, 0), (topic_name, 1), (topic_name, 7), ("no-such-topic", 0)]
    assert admin.end_offsets(asked) == {(topic_name, 0): 0, (topic_name, 1): 5}
    assert admin.start_offsets(asked) == {(topic_name, 0): 0, (topic_name, 1): 0}
    assert admin.end_offsets([]) == {}


@pytest.mark.broker
def test_broker_config(admin: ClusterAdmin) -> None:
    assert admin.broker_config("producer.id.expiration.ms") == "86400000"
    assert admin.broker_config("no.such.property") is None
