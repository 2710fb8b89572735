"""The examples of `docs/python.md` say what they print."""

from __future__ import annotations

import doctest
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic
from lab import KafkaCluster

from sparkmirror.config import ClusterConfig
from sparkmirror.exact.mm2.record_formats import Checkpoint
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.groups import Groups

pytestmark = pytest.mark.broker

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
SERVERS = "eu.example.com:9092"
CHECKPOINTS = "us.checkpoints.internal"


@pytest.fixture
def eu(tmp_path: Path) -> Iterator[KafkaCluster]:
    """The cluster that the page speaks of."""
    cluster = KafkaCluster(tmp_path / "eu")
    try:
        cluster.start()
        fill(cluster)
        yield cluster
    finally:
        cluster.cleanup(keep_logs=True)


def fill(cluster: KafkaCluster) -> None:
    topics = ("heartbeats", "us.heartbeats", "us.asia.heartbeats", "orders", "us.asia.stock", CHECKPOINTS)
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    admin.create_topics([NewTopic("us.orders", 2, 1), *(NewTopic(topic, 1, 1) for topic in topics)])
    admin.close()
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers)
    for number in range(6):
        producer.send("us.orders", value=b"order %d" % (number // 2), partition=number % 2)
    for group in ("billing", "bookkeeping", "shipping"):
        for partition in range(2):
            one = Checkpoint(
                group=group, topic="us.orders", partition=partition, upstream=100, downstream=partition + 1
            )
            producer.send(CHECKPOINTS, key=one.key(), value=one.value(), partition=0)
    producer.close()
    client = ClusterClient(ClusterConfig(alias="eu", bootstrap_servers=(cluster.bootstrap_servers,)), "test")
    Groups(client).committed(["billing"])  # the first group waits for its coordinator; the page must not
    client.close()


def test_the_page(eu: KafkaCluster) -> None:
    page = PAGE.read_text()
    assert SERVERS in page
    text = page.replace("```pycon", "").replace("```", "").replace(SERVERS, eu.bootstrap_servers)
    examples = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
    assert len(examples.examples) > 20
    outcome: list[str] = []
    doctest.DocTestRunner(verbose=False).run(examples, out=outcome.append)
    assert not outcome, "".join(outcome)
