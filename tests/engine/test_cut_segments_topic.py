"""The segments topic loses its newest records by an unclean election, older ones stay: nothing is there twice.

A mirror that runs writes again what it knows. One that starts compares its last copied record with the source's.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from lab import KafkaCluster
from pyspark.sql import SparkSession
from test_unclean_elections import (
    bring_back_the_first,
    elect_the_second,
    end,
    leader,
    leave_to_the_first,
    true_claims,
    upstream_of,
    write_transactions,
)
from tests.support import loss_tools as lt
from tests.support import mirror_process as mp
from tests.support.mirror_thread import reasons, receipt, run_mirror

from sparkmirror.errors import CopyIncomplete
from sparkmirror.exact.durable.claims import segments_topic
from sparkmirror.exact.position.cause import Cause
from sparkmirror.mirror.sync.own_settings import unsafe_settings
from sparkmirror.pump.claim_writer import CUTS_S

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

SEGMENTS = segments_topic("A")
EACH = 10
"""Records of a transaction; its marker takes an offset, too."""


@pytest.fixture
def trio(tmp_path: Path) -> Iterator[KafkaCluster]:
    """Three brokers; somebody has made the segments topic, so that it may lose records."""
    cluster = KafkaCluster(tmp_path / "trio", brokers=3)
    cluster.start()
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    configs = {"cleanup.policy": "compact", "unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    assert unsafe_settings(configs, 2)
    admin.create_topics([NewTopic(SEGMENTS, replica_assignments={0: [1, 2]}, topic_configs=configs)])
    admin.close()
    try:
        mp.wait_for(lambda: leader(cluster, SEGMENTS) == 1, 180, "the topic has its leader")
        yield cluster
    finally:
        cluster.cleanup(keep_logs=True)


@pytest.fixture
def properties(source_cluster: KafkaCluster, trio: KafkaCluster, topic_name: str, tmp_path: Path) -> Path:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    return mp.write_properties(
        tmp_path / "mm2.properties",
        source_cluster.bootstrap_servers,
        trio.bootstrap_servers,
        topic_name,
        {"replication.factor": "3", "emit.offset-syncs.enabled": "false"},
    )


def assert_exact(source: KafkaCluster, target: KafkaCluster, topic: str) -> None:
    """Each record once and in order, and the map true of each."""
    theirs, ours = lt.records(source, topic, 0), lt.records(target, f"A.{topic}", 0)
    assert list(ours.values()) == list(theirs.values())
    claims = true_claims(target, f"A.{topic}")
    assert [upstream_of(claims, sequence) for sequence in range(len(ours))] == list(theirs)


def test_between_two_processes(
    source_cluster: KafkaCluster, trio: KafkaCluster, topic_name: str, properties: Path, spark: SparkSession
) -> None:
    """The second one finds that the oldest claim, which continues without end, does not fit the logs."""
    remote = f"A.{topic_name}"
    write_transactions(source_cluster, topic_name, 4)
    lt.copy_once(properties, spark)
    leave_to_the_first(trio, SEGMENTS)
    write_transactions(source_cluster, topic_name, 6)
    lt.copy_once(properties, spark)
    before, claimed = lt.records(trio, remote, 0), end(trio, SEGMENTS)
    elect_the_second(trio, SEGMENTS)
    bring_back_the_first(trio, SEGMENTS)
    print(f"the segments topic ended at {claimed}, and ends at {end(trio, SEGMENTS)}; {len(before)} records are copied")
    assert end(trio, SEGMENTS) < claimed
    write_transactions(source_cluster, topic_name, 2)
    for _ in range(2):
        with pytest.raises(CopyIncomplete) as stopped:
            lt.copy_once(properties, spark)
        print(stopped.value)
        assert f"target offset {len(before) - 1} is no copy of source offset" in str(stopped.value)
        assert "the segments topic has lost newer claims" in str(stopped.value)
        assert lt.records(trio, remote, 0) == before
    lt.delete_topic(trio, remote)
    lt.copy_once(properties, spark)
    assert_exact(source_cluster, trio, topic_name)


def test_while_a_mirror_runs(
    source_cluster: KafkaCluster, trio: KafkaCluster, topic_name: str, properties: Path, spark: SparkSession
) -> None:
    """It writes again what it has written, at its next claim or soon after, and continues; or it parks."""
    remote, copied = f"A.{topic_name}", 0

    def write(transactions: int) -> None:
        nonlocal copied
        copied += transactions
        write_transactions(source_cluster, topic_name, transactions)
        mp.wait_for(lambda: end(trio, remote) >= copied * EACH, 180, f"{copied} transactions are copied")

    with run_mirror(properties, spark) as mirror:
        write(4)
        leave_to_the_first(trio, SEGMENTS)
        write(6)
        time.sleep(2)  # confirmed claims are written once a second
        claims = set(true_claims(trio, remote))
        elect_the_second(trio, SEGMENTS)
        left = set(true_claims(trio, remote))
        print(f"of {len(claims)} claims {len(claims & left)} are left")
        assert claims - left
        bring_back_the_first(trio, SEGMENTS)

        def is_parked() -> bool:
            found = receipt(mirror, topic_name)
            return found is not None and found.cause is Cause.CLAIMS_LOST

        def are_there_again() -> bool:
            return claims <= set(true_claims(trio, remote))

        mp.wait_for(lambda: are_there_again() or is_parked(), 2 * CUTS_S + 120, "the claims are there, or missed")
        if not are_there_again():
            # Two brokers were away for so long that the round ended, and the pump that knew them with it.
            print("the claims are missed:", reasons(mirror))
            theirs, ours = lt.records(source_cluster, topic_name, 0), lt.records(trio, remote, 0)
            assert list(ours.values()) == list(theirs.values())[: len(ours)]
            return
        print(f"{len(claims)} claims are there again")
        write(3)
        assert not is_parked()
    assert_exact(source_cluster, trio, topic_name)
    write_transactions(source_cluster, topic_name, 2)
    lt.copy_once(properties, spark)
    assert_exact(source_cluster, trio, topic_name)
