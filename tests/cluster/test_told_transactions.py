"""Open transactions as real brokers tell them, and what they tell to whom may not know."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from bench.producing import TOOLS
from kafka import KafkaProducer
from kafka.admin import ACLOperation
from lab import Authority, KafkaCluster
from tests.support import mirror_process as mp
from tests.support.rights import allow

from sparkmirror.config import ClusterConfig, load_mm2_properties
from sparkmirror.demo.jars import class_path
from sparkmirror.demo.java import java
from sparkmirror.kafka.cluster import open_transactions as module
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.open_transactions import OpenTransaction, open_transactions
from sparkmirror.kafka.cluster.producers import DescribedPartition, ProducerEntry
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.mirror.engine.transaction_watch import abort_command

pytestmark = pytest.mark.broker

TIMEOUT_MS = 300_000


@contextmanager
def open_one(cluster: KafkaCluster, topic: str) -> Iterator[None]:
    """Three records, and then one of a transaction that stays open for the length of the context."""
    mp.produce(cluster.bootstrap_servers, topic, 1, 3, codec=None)
    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers, transactional_id=topic, transaction_timeout_ms=TIMEOUT_MS
    )
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"open", partition=0).get(30)
    try:
        yield
    finally:
        producer.close(timeout=0)


def config(cluster: KafkaCluster) -> ClusterConfig:
    return ClusterConfig(alias="A", bootstrap_servers=(cluster.bootstrap_servers,))


def test_it_is_told_and_the_command_ends_it(source_cluster: KafkaCluster, topic_name: str) -> None:
    """Its producer, its beginning and its timeout; Kafka's own program takes the command."""
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 2)
    at = topic_name, 0
    with closing(ClusterClient(config(source_cluster), "test")) as client, open_one(source_cluster, topic_name):
        told = open_transactions(client, [at, (topic_name, 1)])
        assert told.keys() == {at}
        transaction = told[at]
        assert isinstance(transaction, OpenTransaction)
        assert transaction.start_offset == 3
        assert transaction.coordinated is not None
        assert transaction.coordinated.transactional_id == topic_name
        assert transaction.coordinated.timeout_ms == TIMEOUT_MS
        assert abs(transaction.coordinated.began_ms - transaction.last_ms) < 30_000
        script, *words = abort_command(client.config, at, transaction.start_offset).split()
        assert script == "kafka-transactions.sh"
        program = [java(), "-Xmx200m", "-cp", class_path(TOOLS), "org.apache.kafka.tools.TransactionsCommand", *words]
        subprocess.run(program, check=True, timeout=60)
        mp.wait_for(lambda: open_transactions(client, [at]) == {}, 30, "it has ended")


def test_what_is_told_without_rights(
    guarded: KafkaCluster, authority: Authority, topic_name: str, tmp_path: Path
) -> None:
    """Who may read the topic hears of the producer, but not of its transactional id."""
    mp.create_topic(guarded.bootstrap_servers, topic_name, 1)
    at = topic_name, 0
    settings = authority.client_settings() | {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue(tmp_path / "keys.pem", "reader.example")),
    }
    servers = guarded.tls_bootstrap_servers, guarded.tls_bootstrap_servers
    secured = {f"A.{key}": value for key, value in settings.items()}
    file = mp.write_properties(tmp_path / "mm2.properties", *servers, topic_name, secured)
    source = load_mm2_properties(str(file)).flows[0].source
    allow(guarded, topic_name, ACLOperation.READ, ACLOperation.DESCRIBE)
    with closing(ClusterClient(source, "test")) as client, open_one(guarded, topic_name):
        mp.wait_for(lambda: at in open_transactions(client, [at]), 30, "the ACL counts")
        transaction = open_transactions(client, [at])[at]
        assert isinstance(transaction, OpenTransaction)
        assert (transaction.start_offset, transaction.coordinated) == (3, None)


def test_a_topic_that_may_not_be_read(guarded: KafkaCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader says so for each partition."""
    refused = DescribedPartition(ErrorCode.TOPIC_AUTHORIZATION_FAILED, ())
    described = {
        ("pay", 0): refused,
        ("pay", 1): DescribedPartition(
            0, (ProducerEntry(producer_id=7, producer_epoch=0, last_sequence=1, last_timestamp_ms=2),)
        ),
    }
    monkeypatch.setattr(module, "_described", lambda *_: described)
    with closing(ClusterClient(config(guarded), "test")) as client:
        told = open_transactions(client, described)
    assert told == {("pay", 0): "TOPIC_AUTHORIZATION_FAILED (29); grant sparkmirror's principal READ on the topic"}
