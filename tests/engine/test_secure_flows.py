"""Whole flows through each way of signing in: driver, lease, pumps, duties and groups, and a copy that is identical."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, OffsetAndMetadata, TopicPartition
from lab import Authority, KafkaCluster
from pydantic import SecretStr
from pyspark.sql import SparkSession
from tests.support import mirror_process as mp
from tests.support.secure_clusters import (
    PASSWORD,
    of_cluster,
    plain_settings,
    scram_settings,
    scram_user,
    token_settings,
)

from sparkmirror.config import ClusterConfig, load_mm2_properties
from sparkmirror.config.model import SaslConfig
from sparkmirror.demo.proof import compare_topics
from sparkmirror.frames import Options, run_verification
from sparkmirror.kafka.cluster.kafka_python_client import build_client, client_settings
from sparkmirror.mirror.engine.mirror import Mirror

PARTITIONS = 2
RECORDS = 4_000
Settings = Callable[[Authority, Path], dict[str, str]]


def mutual(authority: Authority, directory: Path) -> dict[str, str]:
    keys = authority.issue(directory / "mirror.pem", "mirror")
    return {**authority.client_settings(), "ssl.keystore.type": "PEM", "ssl.keystore.location": str(keys)}


WAYS: Mapping[str, Settings] = {
    "MTLS": mutual,
    "PLAIN": lambda authority, directory: plain_settings("mirror", "hunter2-plain"),
    "SCRAM": lambda authority, directory: scram_settings(authority, "mirror, = x", PASSWORD),
    "SCRAM256": lambda authority, directory: scram_settings(authority, "mirror, = x", PASSWORD, "SCRAM-SHA-256"),
    "TOKENS": lambda authority, directory: token_settings("mirror"),
}
"""The further listeners of the tests' clusters."""


def copy_once(
    source: KafkaCluster,
    target: KafkaCluster,
    ways: tuple[str, str],
    authority: Authority,
    topic: str,
    directory: Path,
    spark: SparkSession,
) -> None:
    """A flow to its end, with all its duties; then both logs, and a group's offsets, are compared."""
    here = source.bootstrap_servers
    for cluster in (source, target):
        scram_user(cluster, "mirror, = x", PASSWORD)
    mp.create_topic(here, topic, PARTITIONS)
    mp.produce(here, topic, PARTITIONS, RECORDS)
    where = TopicPartition(topic, 0)
    group = KafkaConsumer(bootstrap_servers=here, group_id=f"{topic}-group", enable_auto_commit=False)
    group.assign([where])
    group.commit({where: OffsetAndMetadata(1234, "", -1)})
    group.close()
    path = mp.write_properties(
        directory / "mm2.properties",
        source.servers(ways[0]),
        target.servers(ways[1]),
        topic,
        {
            **of_cluster("A", WAYS[ways[0]](authority, directory)),
            **of_cluster("B", WAYS[ways[1]](authority, directory)),
            "sync.group.offsets.enabled": "true",
            "groups": f"{topic}-group",
        },
    )
    config = load_mm2_properties(str(path))
    mirror = Mirror(config, once=True, spark=spark)
    mirror.run()
    proofs = compare_topics(here, target.bootstrap_servers, {topic: f"A.{topic}"})
    assert [proof.difference for proof in proofs] == [None] * PARTITIONS
    assert sum(proof.records for proof in proofs) == RECORDS
    assert mirror.drivers[0].failing == {}
    verified = run_verification(spark, config, Options())
    assert not verified.differs
    assert sum(one.records for one in verified.partitions) == RECORDS
    admin = KafkaAdminClient(bootstrap_servers=target.bootstrap_servers)
    offsets = admin.list_group_offsets({f"{topic}-group": None})[f"{topic}-group"]
    admin.close()
    assert {place.topic: offset.offset for place, offset in offsets.items()} == {f"A.{topic}": 1234}


@pytest.mark.broker
def test_a_password_is_in_no_log_whatever_its_level(
    source_cluster: KafkaCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """kafka-python prints each request at DEBUG, and anybody may set levels at `/admin/loggers`."""
    jaas = plain_settings("mirror", "hunter2-plain")["sasl.jaas.config"]
    cluster = ClusterConfig(
        alias="A",
        bootstrap_servers=(source_cluster.servers("PLAIN"),),
        security_protocol="SASL_PLAINTEXT",
        sasl=SaslConfig(mechanism="PLAIN", jaas_config=SecretStr(jaas)),
    )
    with caplog.at_level(1, "kafka"):
        consumer = build_client(KafkaConsumer, **client_settings(cluster, "test"))
        assert consumer.topics() is not None
        consumer.close()
    assert "SaslAuthenticateRequest" in caplog.text
    assert "hunter2" not in caplog.text


@pytest.mark.broker
@pytest.mark.spark
def test_from_scram_to_mutual_tls(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    authority: Authority,
    topic_name: str,
    tmp_path: Path,
    spark: SparkSession,
) -> None:
    ways = ("SCRAM", "MTLS")
    copy_once(source_cluster, target_cluster, ways, authority, topic_name, tmp_path, spark)


@pytest.mark.full
@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.parametrize(
    "ways", [("PLAIN", "SCRAM256"), ("MTLS", "PLAIN"), ("TOKENS", "SCRAM"), ("SCRAM256", "TOKENS")], ids="-".join
)
def test_each_way_on_each_side(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    authority: Authority,
    topic_name: str,
    tmp_path: Path,
    spark: SparkSession,
    ways: tuple[str, str],
) -> None:
    copy_once(source_cluster, target_cluster, ways, authority, topic_name, tmp_path, spark)
