"""Unclean leader elections under a Spark query: each loss is named with its count, and nothing is copied wrongly."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic
from lab import KafkaCluster
from pyspark.sql import SparkSession
from test_unclean_elections import (
    bring_back_the_first,
    create_unclean_topic,
    elect_the_second,
    end,
    leave_to_the_first,
    trio,
)
from tests.support import loss_tools as lt
from tests.support import mirror_process as mp
from tests.support.mirror_thread import receipt, run_mirror

from sparkmirror.mirror.engine.mirror import Mirror
from sparkmirror.queries.runner import QueryRunner
from sparkmirror.sink.agreement import CONTROL_TOPIC

__all__ = ["trio"]
pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

SQL = "SELECT topic, partition, offset, timestamp, headers, key, value FROM records"


def write_query(
    path: Path, source: KafkaCluster, target: KafkaCluster, topic: str, settings: Mapping[str, str], sql: str = SQL
) -> None:
    """The query's name is the test's: its plans outlive the test."""
    name = f"A->B.transform.q{topic.rsplit('-', 1)[-1]}"
    query = {f"{name}.topics": topic, f"{name}.sql": sql}
    servers = source.bootstrap_servers, target.bootstrap_servers
    mp.write_properties(path, *servers, topic, query | dict(settings))


def cause(mirror: Mirror, topic: str) -> str:
    told = receipt(mirror, topic)
    return "" if told is None else str(told.cause)


def wait_for_copy(mirror: Mirror, cluster: KafkaCluster, topic: str, records: int, upstream: int) -> None:
    """Wait until a micro-batch with these records is finished; before, it would be run again after an election."""

    def is_told() -> bool:
        told = receipt(mirror, topic)
        return told is not None and told.upstream == upstream

    mp.wait_for(is_told, 180, f"copied up to {upstream}")
    assert end(cluster, f"A.{topic}") == records


def test_a_source_that_was_cut_and_has_grown_past_the_place(
    trio: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path, spark: SparkSession
) -> None:
    """Halted while it runs, and in the next process; with `continue` the new history comes behind, whole."""
    remote, path = f"A.{topic_name}", tmp_path / "mm2.properties"
    create_unclean_topic(trio, topic_name)
    mp.produce(trio.bootstrap_servers, topic_name, 1, 40)
    leave_to_the_first(trio, topic_name)
    write_query(path, trio, target_cluster, topic_name, {})
    with run_mirror(path, spark, QueryRunner()) as mirror:
        wait_for_copy(mirror, target_cluster, topic_name, 40, 40)
        mp.produce(trio.bootstrap_servers, topic_name, 1, 20)
        wait_for_copy(mirror, target_cluster, topic_name, 60, 60)  # what only broker 1 has
        before = lt.records(target_cluster, remote, 0)
    elect_the_second(trio, topic_name)
    mp.produce(trio.bootstrap_servers, topic_name, 1, 50)
    assert end(trio, topic_name) == 90
    with run_mirror(path, spark, QueryRunner()) as mirror:
        mp.wait_for(lambda: cause(mirror, topic_name) == "truncated", 180, "halted")
        told = receipt(mirror, topic_name)
        assert told is not None
        assert told.state == "parked"
        assert "was cut at offset 40 by an unclean leader election, after offsets 40 to 59 were copied" in told.reason
        mp.produce(trio.bootstrap_servers, topic_name, 1, 5)
        mp.wait_for(lambda: bool(mirror.drivers[0].reports.loss_watch.added), 60, "the loss counted")
    assert lt.gist(lt.ledger(target_cluster, topic_name)) == [("truncated", 0, 40, 60, 60, "halted")]
    assert lt.records(target_cluster, remote, 0) == before

    write_query(path, trio, target_cluster, topic_name, {"sparkmirror.on.truncated": "continue"})
    with run_mirror(path, spark, QueryRunner()) as mirror:
        wait_for_copy(mirror, target_cluster, topic_name, 115, 95)
        mp.produce(trio.bootstrap_servers, topic_name, 1, 5)
        wait_for_copy(mirror, target_cluster, topic_name, 120, 100)
    assert lt.gist(lt.ledger(target_cluster, topic_name)) == [("truncated", 0, 40, 60, 60, "continued")]
    bring_back_the_first(trio, topic_name)
    theirs = lt.records(trio, topic_name, 0)
    assert list(theirs) == list(range(100))
    behind = {offset + 20: one for offset, one in theirs.items() if offset >= 40}
    assert lt.records(target_cluster, remote, 0) == before | behind


def test_a_source_that_is_cut_while_the_query_runs(
    trio: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path, spark: SparkSession
) -> None:
    remote, path = f"A.{topic_name}", tmp_path / "mm2.properties"
    create_unclean_topic(trio, topic_name)
    mp.produce(trio.bootstrap_servers, topic_name, 1, 40)
    leave_to_the_first(trio, topic_name)
    write_query(path, trio, target_cluster, topic_name, {"sparkmirror.on.truncated": "continue"})
    with run_mirror(path, spark, QueryRunner()) as mirror:
        mp.produce(trio.bootstrap_servers, topic_name, 1, 20)
        wait_for_copy(mirror, target_cluster, topic_name, 60, 60)
        before = lt.records(target_cluster, remote, 0)
        elect_the_second(trio, topic_name)
        mp.produce(trio.bootstrap_servers, topic_name, 1, 50)
        wait_for_copy(mirror, target_cluster, topic_name, 110, 90)
        mp.wait_for(lambda: bool(mirror.drivers[0].reports.loss_watch.added), 60, "the loss counted")
    bring_back_the_first(trio, topic_name)
    assert lt.gist(lt.ledger(target_cluster, topic_name)) == [("truncated", 0, 40, 60, 60, "continued")]
    behind = {offset + 20: one for offset, one in lt.records(trio, topic_name, 0).items() if offset >= 40}
    assert lt.records(target_cluster, remote, 0) == before | behind


def test_a_planned_micro_batch_whose_records_the_source_took_back(
    trio: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path, spark: SparkSession
) -> None:
    """Nobody had copied them: nothing is lost, and the micro-batch ends at the cut."""
    remote, path = f"A.{topic_name}", tmp_path / "mm2.properties"
    create_unclean_topic(trio, topic_name)
    mp.produce(trio.bootstrap_servers, topic_name, 1, 40)
    leave_to_the_first(trio, topic_name)
    write_query(path, trio, target_cluster, topic_name, {})
    with run_mirror(path, spark, QueryRunner()) as mirror:
        wait_for_copy(mirror, target_cluster, topic_name, 40, 40)
    write_query(path, trio, target_cluster, topic_name, {}, sql="SELECT topic, valu FROM records")
    mp.produce(trio.bootstrap_servers, topic_name, 1, 20)
    with run_mirror(path, spark, QueryRunner()) as mirror:
        mp.wait_for(lambda: cause(mirror, topic_name) == "transform", 180, "planned, and not written")
    write_query(path, trio, target_cluster, topic_name, {})
    elect_the_second(trio, topic_name)
    mp.produce(trio.bootstrap_servers, topic_name, 1, 50)
    with run_mirror(path, spark, QueryRunner()) as mirror:
        wait_for_copy(mirror, target_cluster, topic_name, 90, 90)
    bring_back_the_first(trio, topic_name)
    assert lt.ledger(target_cluster, topic_name) == []
    assert lt.records(target_cluster, remote, 0) == lt.records(trio, topic_name, 0)


@pytest.mark.parametrize("strangers", [0, 30])
def test_a_target_that_lost_acknowledged_records(
    source_cluster: KafkaCluster,
    trio: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
    spark: SparkSession,
    strangers: int,
) -> None:
    """Nothing is written behind the hole, also where a stranger has filled it; a deleted copy is copied again."""
    remote, path = f"A.{topic_name}", tmp_path / "mm2.properties"
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    create_unclean_topic(trio, remote)
    keep_on_the_third(trio, CONTROL_TOPIC)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 1, 40)
    write_query(path, source_cluster, trio, topic_name, {"replication.factor": "3"})
    with run_mirror(path, spark, QueryRunner()) as mirror:
        wait_for_copy(mirror, trio, topic_name, 40, 40)
        leave_to_the_first(trio, remote)
        mp.produce(source_cluster.bootstrap_servers, topic_name, 1, 20)
        wait_for_copy(mirror, trio, topic_name, 60, 60)
        if not strangers:
            elect_the_second(trio, remote)
            mp.wait_for(lambda: cause(mirror, topic_name) == "target-truncated", 180, "noticed at rest")
            mp.wait_for(lambda: bool(mirror.drivers[0].reports.loss_watch.added), 60, "the loss counted")
    if strangers:
        elect_the_second(trio, remote)
        producer = KafkaProducer(bootstrap_servers=trio.bootstrap_servers, acks=1)
        for number in range(strangers):
            producer.send(remote, key=b"stranger", value=b"%d" % number, partition=0)
        producer.close()
    mp.produce(source_cluster.bootstrap_servers, topic_name, 1, 10)
    with run_mirror(path, spark, QueryRunner()) as mirror:
        mp.wait_for(lambda: cause(mirror, topic_name) == "target-truncated", 180, "halted")
        told = receipt(mirror, topic_name)
        assert told is not None
        assert told.state == "parked"
        assert f"target {remote}-0 lost offsets 40 to 59, which it had acknowledged" in told.reason
        if strangers:
            mp.wait_for(lambda: bool(mirror.drivers[0].reports.loss_watch.added), 60, "the loss counted")
        assert end(trio, remote) == 40 + strangers
        assert lt.gist(lt.ledger(trio, topic_name)) == [("target-truncated", 0, 40, 60, 40, "halted")]
        bring_back_the_first(trio, remote)
        admin = KafkaAdminClient(bootstrap_servers=trio.bootstrap_servers)
        admin.delete_topics([remote])
        admin.close()
        wait_for_copy(mirror, trio, topic_name, 70, 70)
    assert lt.records(trio, remote, 0) == lt.records(source_cluster, topic_name, 0)


def keep_on_the_third(cluster: KafkaCluster, topic: str) -> None:
    """Create a topic of the mirror's own on the broker that lives on."""
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    if topic not in admin.list_topics():
        admin.create_topics(
            [NewTopic(topic, replica_assignments={0: [3]}, topic_configs={"cleanup.policy": "compact"})]
        )
    admin.close()
