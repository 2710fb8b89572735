"""Unclean leader elections on either side: acknowledged records vanish, and nothing is silent about it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic
from kafka.protocol.metadata import MetadataRequest
from lab import KafkaCluster
from pyspark.sql import SparkSession
from tests.support import loss_tools as lt
from tests.support import mirror_process as mp
from tests.support.mirror_thread import run_mirror

from sparkmirror.config import ClusterConfig, load_mm2_properties
from sparkmirror.demo.proof import compare_topics
from sparkmirror.errors import CopyIncomplete, SparkMirrorError
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import Claim, segments_topic
from sparkmirror.frames import Options, run_verification
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.list_offsets import LATEST, list_offsets
from sparkmirror.kafka.cluster.topic_log import TopicLog

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]


@pytest.fixture(scope="module")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """Three brokers, of which the third only keeps the controllers' majority and our own topics."""
    cluster = KafkaCluster(tmp_path_factory.mktemp("trio"), brokers=3)
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.cleanup(keep_logs=True)


def create_unclean_topic(cluster: KafkaCluster, topic: str) -> None:
    """On brokers 1 and 2; the first one leads."""
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    configs = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    admin.create_topics([NewTopic(topic, replica_assignments={0: [1, 2]}, topic_configs=configs)])
    admin.close()
    mp.wait_for(lambda: leader(cluster, topic) == 1, 180, "the topic has its leader")


def ask(cluster: KafkaCluster, topic: str) -> tuple[int, set[int], int]:
    """Of partition 0: leader, in-sync replicas, high watermark; -1 while it can't be told."""
    client = ClusterClient(
        ClusterConfig(alias="X", bootstrap_servers=tuple(cluster.bootstrap_servers.split(","))), "test"
    )
    try:
        client.metadata([])  # learn where the brokers are
        answer = client.ask_any(
            lambda: MetadataRequest(
                topics=[MetadataRequest.MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
            )
        )
        if answer.topics[0].error_code:
            return -1, set(), -1
        (partition,) = answer.topics[0].partitions
        listed = list_offsets(client, partition.leader_id, {topic: [0]}, LATEST)[topic, 0]
        return partition.leader_id, set(partition.isr_nodes), listed.offset
    except (ConnectionError, SparkMirrorError):
        return -1, set(), -1
    finally:
        client.close()


def leader(cluster: KafkaCluster, topic: str) -> int:
    return ask(cluster, topic)[0]


def in_sync(cluster: KafkaCluster, topic: str) -> set[int]:
    return ask(cluster, topic)[1]


def end(cluster: KafkaCluster, topic: str) -> int:
    """High watermark, as soon as it can be told: a leader that was just elected may not know it yet."""
    told = [-1]

    def is_told() -> bool:
        told.append(ask(cluster, topic)[2])
        return told[-1] >= 0

    mp.wait_for(is_told, 60, "the high watermark")
    return told[-1]


def leave_to_the_first(cluster: KafkaCluster, topic: str) -> None:
    """Kill broker 2: what is written from now on is on broker 1 alone."""
    cluster.brokers[1].kill()
    mp.wait_for(lambda: in_sync(cluster, topic) == {1}, 180, "broker 2 out of sync")


def elect_the_second(cluster: KafkaCluster, topic: str) -> None:
    """Kill broker 1 and start broker 2, which leads with what it had."""
    cluster.brokers[0].kill()
    cluster.brokers[1].start()
    mp.wait_for(lambda: leader(cluster, topic) == 2, 180, "an unclean election")


def bring_back_the_first(cluster: KafkaCluster, topic: str) -> None:
    time.sleep(4)  # its registration must have expired
    cluster.brokers[0].start()
    mp.wait_for(lambda: in_sync(cluster, topic) == {1, 2}, 180, "both in sync")


def test_truncated_at_the_source(
    trio: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path, spark: SparkSession
) -> None:
    remote = f"A.{topic_name}"
    path = tmp_path / "mm2.properties"

    def copy(**policy: str) -> None:
        settings = {f"sparkmirror.on.{what}": action for what, action in policy.items()}
        mp.write_properties(path, trio.bootstrap_servers, target_cluster.bootstrap_servers, topic_name, settings)
        lt.copy_once(path, spark)

    create_unclean_topic(trio, topic_name)
    mp.produce(trio.bootstrap_servers, topic_name, 1, 40)
    leave_to_the_first(trio, topic_name)
    mp.produce(trio.bootstrap_servers, topic_name, 1, 20)
    copy()
    before = lt.records(target_cluster, remote, 0)
    assert list(before) == list(range(60))
    elect_the_second(trio, topic_name)
    assert end(trio, topic_name) == 40
    bring_back_the_first(trio, topic_name)

    # The source ends below what was copied: there is nothing to fetch, and it must be noticed all the same.
    with pytest.raises(CopyIncomplete, match=r"-0 is halted \(truncated\): .* was cut at offset 40"):
        copy()
    assert lt.gist(lt.ledger(target_cluster, topic_name)) == [("truncated", 0, 40, 60, 60, "halted")]
    mp.produce(trio.bootstrap_servers, topic_name, 1, 50)
    with pytest.raises(CopyIncomplete, match=r"-0 is halted \(truncated\)"):
        copy()
    assert lt.records(target_cluster, remote, 0) == before

    with pytest.raises(CopyIncomplete, match=r"truncated: .* the source's present records there are copied after them"):
        copy(truncated="continue")
    assert lt.gist(lt.ledger(target_cluster, topic_name)) == [("truncated", 0, 40, 60, 60, "continued")]
    theirs = lt.records(trio, topic_name, 0)
    assert list(theirs) == list(range(90))
    behind = {offset + 20: one for offset, one in theirs.items() if offset >= 40}
    assert lt.records(target_cluster, remote, 0) == before | behind
    mp.produce(trio.bootstrap_servers, topic_name, 1, 10)
    copy()
    assert end(target_cluster, remote) == 120
    found = run_verification(spark, load_mm2_properties(str(path)), Options())
    assert not found.differs
    (partition,) = found.partitions
    assert partition.records == 100
    mp.produce(target_cluster.bootstrap_servers, remote, 1, 1)
    assert [one.kind for one in run_verification(spark, load_mm2_properties(str(path)), Options()).differences] == [
        "extra"
    ]


def test_truncated_at_the_source_while_it_runs(
    trio: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path, spark: SparkSession
) -> None:
    """The fetch that continues says so (KIP-320), though the source has offsets beyond by then."""
    path = mp.write_properties(
        tmp_path / "mm2.properties",
        trio.bootstrap_servers,
        target_cluster.bootstrap_servers,
        topic_name,
        {"sparkmirror.on.truncated": "continue"},
    )
    remote = f"A.{topic_name}"
    create_unclean_topic(trio, topic_name)
    mp.produce(trio.bootstrap_servers, topic_name, 1, 40)
    leave_to_the_first(trio, topic_name)
    with run_mirror(path, spark) as mirror:
        mp.produce(trio.bootstrap_servers, topic_name, 1, 20)
        mp.wait_for(lambda: end(target_cluster, remote) == 60, 180, "copied")
        before = lt.records(target_cluster, remote, 0)
        elect_the_second(trio, topic_name)
        mp.produce(trio.bootstrap_servers, topic_name, 1, 50)
        mp.wait_for(lambda: end(target_cluster, remote) == 110, 180, "the new history copied")
        mp.wait_for(lambda: bool(mirror.drivers[0].reports.loss_watch.added), 5, "the loss counted")
    bring_back_the_first(trio, topic_name)
    assert lt.gist(lt.ledger(target_cluster, topic_name)) == [("truncated", 0, 40, 60, 60, "continued")]
    behind = {offset + 20: one for offset, one in lt.records(trio, topic_name, 0).items() if offset >= 40}
    assert lt.records(target_cluster, remote, 0) == before | behind


def test_truncated_at_the_target_is_healed(
    source_cluster: KafkaCluster, trio: KafkaCluster, topic_name: str, tmp_path: Path, spark: SparkSession
) -> None:
    path = mp.write_properties(
        tmp_path / "mm2.properties",
        source_cluster.bootstrap_servers,
        trio.bootstrap_servers,
        topic_name,
        {"replication.factor": "3"},
    )
    remote = f"A.{topic_name}"
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    create_unclean_topic(trio, remote)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 1, 40)
    with run_mirror(path, spark) as mirror:
        mp.wait_for(lambda: end(trio, remote) == 40, 180, "copied")
        leave_to_the_first(trio, remote)
        mp.produce(source_cluster.bootstrap_servers, topic_name, 1, 20)
        mp.wait_for(lambda: end(trio, remote) == 60, 180, "copied to the first broker alone")
        elect_the_second(trio, remote)
        mp.wait_for(lambda: end(trio, remote) == 60, 180, "healed")
        mp.produce(source_cluster.bootstrap_servers, topic_name, 1, 10)
        mp.wait_for(lambda: end(trio, remote) == 70, 180, "copied on")
        mp.wait_for(lambda: bool(mirror.drivers[0].reports.loss_watch.added), 180, "the loss counted")
    bring_back_the_first(trio, remote)
    assert lt.gist(lt.ledger(trio, topic_name)) == [("target-truncated", 0, 40, 60, 40, "healed")]
    (proof,) = compare_topics(source_cluster.bootstrap_servers, trio.bootstrap_servers, {topic_name: remote})
    assert proof.difference is None
    assert proof.records == 70


@pytest.mark.parametrize("more", [0, 10])
def test_truncated_at_the_target_between_two_processes_and_somebody_else_wrote_there(
    source_cluster: KafkaCluster, trio: KafkaCluster, topic_name: str, tmp_path: Path, spark: SparkSession, more: int
) -> None:
    """The offset that is stored for Connect says that all was copied. It is our own word, and no MirrorMaker 2's."""
    path = mp.write_properties(
        tmp_path / "mm2.properties",
        source_cluster.bootstrap_servers,
        trio.bootstrap_servers,
        topic_name,
        {"replication.factor": "3"},
    )
    remote = f"A.{topic_name}"
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    create_unclean_topic(trio, remote)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 1, 40)
    with run_mirror(path, spark):
        mp.wait_for(lambda: end(trio, remote) == 40, 180, "copied")
        leave_to_the_first(trio, remote)
        mp.produce(source_cluster.bootstrap_servers, topic_name, 1, 20)
        mp.wait_for(lambda: end(trio, remote) == 60, 180, "copied")
    elect_the_second(trio, remote)
    assert end(trio, remote) == 40
    strangers = KafkaProducer(bootstrap_servers=trio.bootstrap_servers, acks=1)
    for number in range(5):
        strangers.send(remote, key=b"stranger", value=b"%d" % number, partition=0)
    strangers.close()
    assert end(trio, remote) == 45
    bring_back_the_first(trio, remote)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 1, more)
    lt.copy_once(path, spark)
    ours, theirs = lt.records(source_cluster, topic_name, 0), lt.records(trio, remote, 0)
    assert list(theirs) == list(range(65 + more))
    assert [theirs[at] for at in (*range(40), *range(45, 65 + more))] == [ours[at] for at in range(60 + more)]


def test_truncated_at_the_target_between_two_processes_while_the_source_is_compacted(
    source_cluster: KafkaCluster, trio: KafkaCluster, topic_name: str, tmp_path: Path, spark: SparkSession
) -> None:
    """The second process knows what was confirmed, and that the source has fewer records for these sequences now."""
    remote = f"A.{topic_name}"
    path = mp.write_properties(
        tmp_path / "mm2.properties",
        source_cluster.bootstrap_servers,
        trio.bootstrap_servers,
        topic_name,
        {"replication.factor": "3"},
    )
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    create_unclean_topic(trio, remote)
    write_transactions(source_cluster, topic_name, 4)
    lt.copy_once(path, spark)
    assert end(trio, remote) == 40
    leave_to_the_first(trio, remote)
    write_transactions(source_cluster, topic_name, 6)
    lt.copy_once(path, spark)
    assert end(trio, remote) == 100
    elect_the_second(trio, remote)
    bring_back_the_first(trio, remote)
    assert end(trio, remote) == 40

    lt.delete_records(source_cluster, topic_name, 0, before=60)  # as a cleaner would: what follows has other sequences
    with pytest.raises(CopyIncomplete, match="expired: offsets 43 to 59"):
        lt.copy_once(path, spark)
    assert sorted(lt.gist(lt.ledger(trio, topic_name))) == [
        ("expired", 0, 43, 60, 40, "continued"),
        ("target-truncated", 0, 40, 100, 40, "healed"),
    ]
    write_transactions(source_cluster, topic_name, 2)
    lt.copy_once(path, spark)
    theirs = [one for offset, one in lt.records(source_cluster, topic_name, 0).items() if offset >= 60]
    ours = lt.records(trio, remote, 0)
    assert [one for offset, one in ours.items() if offset >= 40] == theirs
    claims = true_claims(trio, remote)
    copied = [offset for offset in lt.records(source_cluster, topic_name, 0) if offset >= 60]
    assert [upstream_of(claims, sequence) for sequence in range(40, 40 + len(copied))] == copied


def write_transactions(cluster: KafkaCluster, topic: str, count: int) -> None:
    """Each of ten records, and its marker."""
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, transactional_id=f"writer-of-{topic}")
    producer.init_transactions()
    for number in range(count):
        producer.begin_transaction()
        for index in range(10):
            producer.send(topic, b"%d-%d" % (number, index), partition=0)
        producer.commit_transaction()
    producer.close()


def true_claims(cluster: KafkaCluster, topic: str) -> list[Claim]:
    """All confirmed claims on partition 0; there are no others after a clean end."""
    client = ClusterClient(
        ClusterConfig(alias="X", bootstrap_servers=tuple(cluster.bootstrap_servers.split(","))), "test"
    )
    try:
        topic_id = client.metadata([topic])[topic].topic_id
        return list(ClaimLog(TopicLog(client, segments_topic("A"))).whole(topic_id, 0))
    finally:
        client.close()


def upstream_of(claims: list[Claim], sequence: int) -> int:
    return max((one for one in claims if one.sequence <= sequence), key=lambda one: one.sequence).upstream_of(sequence)
