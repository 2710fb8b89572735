"""Log ends beside high watermarks, of two real brokers of which one is killed; and when a log stands still."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from kafka import KafkaProducer
from lab import KafkaCluster
from tests.support import mirror_process as mp
from tests.support.settled_logs import settled_ends
from tests.support.started import started

from sparkmirror.config import ClusterConfig
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.log_ends import LogEnd, LogEnds, SettledEnds, read_log_ends, settled

P0, P1 = ("t", 0), ("t", 1)


def test_when_a_log_stands_still() -> None:
    """Its end is the same twice, and no record is above the high watermark."""
    still = LogEnds({P0: LogEnd(5, 5)}, {})
    assert settled(still, still) == SettledEnds({P0: 5}, {})
    grown = LogEnds({P0: LogEnd(6, 6)}, {})
    assert settled(still, grown) == SettledEnds({}, {P0: "its log went from 5 to 6"})
    assert settled(grown, still) == SettledEnds({}, {P0: "its log went from 6 to 5"})
    above = LogEnds({P0: LogEnd(5, 4)}, {})
    assert settled(above, above) == SettledEnds({}, {P0: "its log ends at 5, and its followers have it up to 4 only"})
    assert settled(above, still) == SettledEnds({P0: 5}, {})


@pytest.mark.parametrize("first", [True, False])
def test_what_is_unknown_once_is_not_settled(first: bool) -> None:
    still, unknown = LogEnds({P0: LogEnd(5, 5)}, {}), LogEnds({}, {P0: "it has no leader now"})
    pair = (unknown, still) if first else (still, unknown)
    assert settled(*pair) == SettledEnds({}, {P0: "it has no leader now"})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """Two brokers; one that is killed stays in its partitions' in-sync replicas."""
    patient = {"broker.session.timeout.ms": "600000", "replica.lag.time.max.ms": "600000"}
    two = KafkaCluster(tmp_path_factory.mktemp("ends"), brokers=2, properties=patient)
    with started(two):
        yield two


@pytest.fixture
def client(cluster: KafkaCluster) -> Iterator[ClusterClient]:
    config = ClusterConfig(alias="A", bootstrap_servers=tuple(cluster.bootstrap_servers.split(",")))
    with closing(ClusterClient(config, "test")) as client:
        yield client


@pytest.mark.broker
def test_ends_of_logs(cluster: KafkaCluster, client: ClusterClient, topic_name: str) -> None:
    """Records whose follower is dead are above the high watermark; a dead leader's partitions are named."""
    mp.create_topic(cluster.bootstrap_servers, topic_name, 4, replication_factor=2)
    mp.produce(cluster.bootstrap_servers, topic_name, 4, 40)
    partitions = [(topic_name, index) for index in range(4)]
    mp.wait_for(lambda: not settled_ends(client, partitions).moving, 30, "the logs stand still")
    missing = topic_name, 9
    assert settled_ends(client, [*partitions, missing]) == SettledEnds(
        dict.fromkeys(partitions, 10), {missing: "it has no leader now"}
    )
    leaders = client.metadata([topic_name])[topic_name].partitions
    led = {node: [at for at in partitions if leaders[at[1]].leader == node] for node in (1, 2)}
    assert all(led.values())
    client.hang_up()
    cluster.brokers[1].kill()
    producer = KafkaProducer(bootstrap_servers=f"127.0.0.1:{cluster.brokers[0].port}", acks=1, enable_idempotence=False)
    producer.send(topic_name, b"x", partition=led[1][0][1]).get(30)
    producer.close()
    ends = read_log_ends(client, partitions)
    assert ends.ends == {at: LogEnd(11 if at == led[1][0] else 10, 10) for at in led[1]}
    assert ends.unknown.keys() == set(led[2])
    found = settled_ends(client, partitions)
    assert found.ends == dict.fromkeys(led[1][1:], 10)
    assert found.moving[led[1][0]] == "its log ends at 11, and its followers have it up to 10 only"
    assert all("its leader, broker 2, doesn't answer" in found.moving[at] for at in led[2])
