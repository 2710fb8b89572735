"""Obstacles on real clusters, some with ACLs, are found by `sparkmirror migration check`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from lab import KafkaCluster
from tests.support import mirror_process as mp
from typer.testing import CliRunner

from sparkmirror.cli.app import app
from sparkmirror.config import ClusterConfig
from sparkmirror.kafka.cluster.acl_changes import add, remove
from sparkmirror.kafka.cluster.acls import ALLOW, WRITE, Acl
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.migrate.checks import CHECKS

pytestmark = [pytest.mark.broker, pytest.mark.full]

Pair = tuple[KafkaCluster, KafkaCluster]
Results = dict[str, tuple[str, str]]


def write_files(directory: Path, pair: Pair, topic: str, **file: Any) -> Path:
    """Write the files of a mirror there and back, and of a migration of one topic and its group; both are not run."""
    lines = {
        "clusters": "A, B",
        "A.bootstrap.servers": pair[0].bootstrap_servers,
        "B.bootstrap.servers": pair[1].bootstrap_servers,
        "A->B.enabled": "true",
        "B->A.enabled": "true",
        "topics": topic,
        "groups": f"{topic}.*",
        "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        "A->B.sparkmirror.turn": "first",
        "B->A.sparkmirror.turn": "second",
        **mp.ONE_REPLICA,
    }
    (directory / "mm2.properties").write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
    content = {
        "mirror": "mm2.properties",
        "flow": "A->B",
        "type": "producers-first",
        "sets": [{"name": "shop", "topics": [topic], "groups": [f"{topic}-group"]}],
        **file,
    }
    path = directory / "migration.yaml"
    path.write_text(json.dumps(content))
    return path


def checked(path: Path) -> Results:
    """Verdict and words of each check, by its name."""
    printed = CliRunner().invoke(app, ["migration", "check", str(path), "-o", "json"])
    assert printed.exit_code in (0, 1), printed.output
    assert isinstance(printed.exception, SystemExit | None), printed.exception
    told = json.loads(printed.stdout)
    assert [each["id"] for each in told] == [check.id for check in CHECKS]
    assert printed.exit_code == int(any(each["verdict"] == "fail" for each in told))
    return {each["id"]: (each["verdict"], each["words"]) for each in told}


@contextmanager
def acls(cluster: KafkaCluster, *some: Acl) -> Iterator[None]:
    config = ClusterConfig(alias="C", bootstrap_servers=(cluster.bootstrap_servers,))
    with closing(ClusterClient(config, "test")) as client:
        add(client, some)
        try:
            yield
        finally:
            remove(client, some)


def may_write(topic: str, who: str) -> Acl:
    return Acl(name=topic, principal=who, host="*", operation=WRITE, permission=ALLOW)


def commit(cluster: KafkaCluster, group: str, topic: str, offset: int) -> None:
    """Commit as a consumer does that uses `assign`."""
    with closing(KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers, group_id=group)) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.commit({TopicPartition(topic, 0): OffsetAndMetadata(offset, "", -1)})


def test_who_can_be_kept_out(guarded_pair: Pair, topic_name: str, tmp_path: Path) -> None:
    source = guarded_pair[0]
    for cluster in guarded_pair:
        mp.create_topic(cluster.bootstrap_servers, topic_name, 1)
    path = write_files(tmp_path, guarded_pair, topic_name)
    verdict, words = checked(path)["fence-complete"]
    assert (verdict, "no ACL allows WRITE" in words) == ("fail", True)
    with acls(source, may_write(topic_name, "User:shop")):
        seen = checked(path)
        assert seen["fence-complete"] == ("ok", "each principal that may write can be denied: User:shop")
        assert seen["super-users"][0] == "unknown"
        assert "brokers of A have super users" in seen["super-users"][1]
        with acls(source, may_write(topic_name, "User:*")):
            verdict, words = checked(path)["fence-complete"]
            assert (verdict, "`ALLOW WRITE on topic" in words) == ("fail", True)


def test_a_cluster_without_acls_needs_another_fence(cluster_pair: Pair, topic_name: str, tmp_path: Path) -> None:
    mp.create_topic(cluster_pair[0].bootstrap_servers, topic_name, 1)
    verdict, words = checked(write_files(tmp_path, cluster_pair, topic_name))["fence-complete"]
    assert (verdict, "no authorizer" in words) == ("fail", True)
    assert checked(write_files(tmp_path, cluster_pair, topic_name, fence="none"))["fence-complete"][0] == "ok"


def test_what_lies_about_before_a_migration(cluster_pair: Pair, topic_name: str, tmp_path: Path) -> None:
    """Nothing has been mirrored yet, and the target has a topic of that name, with records and other properties."""
    source, target = cluster_pair
    mp.create_topic(source.bootstrap_servers, topic_name, 2, {"max.message.bytes": "2000000"})
    mp.create_topic(target.bootstrap_servers, topic_name, 1, {"max.message.bytes": "1000"})
    mp.produce(source.bootstrap_servers, topic_name, 2, 10)
    mp.produce(target.bootstrap_servers, topic_name, 1, 3)
    commit(source, f"{topic_name}-group", topic_name, 4)
    commit(source, f"{topic_name}-other", topic_name, 4)
    commit(source, f"connect-{topic_name}", topic_name, 4)
    producer = KafkaProducer(bootstrap_servers=source.bootstrap_servers, transactional_id=f"{topic_name}-tx")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic_name, b"in a transaction", partition=0).get(30)
    try:
        seen = checked(write_files(tmp_path, cluster_pair, topic_name, fence="none"))
    finally:
        producer.abort_transaction()
        producer.close()
    assert seen["mirror-down"] == ("fail", "no mirror works on A->B")
    assert "no mirror works on B->A" in seen["reverse-flow-ready"][1]
    assert seen["append-check"][0] == "ok"
    assert seen["append-check"][1].startswith("B and A refuse an append out of place")
    assert seen["lag"][0] == "fail"
    assert seen["target-records"][0] == "fail"
    assert f"{topic_name} at B holds 3 offsets" in seen["target-records"][1]
    assert seen["topic-config-drift"][0] == "warn"
    assert f"max.message.bytes of {topic_name} is 2000000 at A, 1000 at B" in seen["topic-config-drift"][1]
    assert f"{topic_name} has 2 partitions at A, its copy 1" in seen["topic-config-drift"][1]
    assert seen["message-size"][0] == "warn"
    assert (seen["open-transactions"][0], f"{topic_name}-tx" in seen["open-transactions"][1]) == ("warn", True)
    verdict, words = seen["groups-left-out"]
    assert verdict == "warn"
    assert f"{topic_name}-other reads {topic_name} at A, and is in no set; the mirror's" not in words
    assert f"connect-{topic_name} reads {topic_name} at A, and is in no set; the mirror's groups.exclude" in words
    assert seen["unrouted-commits"][0] == "warn"
    assert seen["verify-fresh"][0] == "unknown"


def test_a_sets_names_are_checked(cluster_pair: Pair, topic_name: str, tmp_path: Path) -> None:
    seen = checked(write_files(tmp_path, cluster_pair, topic_name, fence="none"))
    assert seen["missing-topic"] == ("fail", f"A has no topic {topic_name}")
    assert seen["groups-missing"][0] == "warn"


def test_a_group_that_reads_now_and_is_in_no_set(cluster_pair: Pair, topic_name: str, tmp_path: Path) -> None:
    source = cluster_pair[0]
    mp.create_topic(source.bootstrap_servers, topic_name, 1)
    mp.produce(source.bootstrap_servers, topic_name, 1, 10)
    consumer = KafkaConsumer(
        topic_name,
        bootstrap_servers=source.bootstrap_servers,
        group_id=f"{topic_name}-forgotten",
        auto_offset_reset="earliest",
    )
    with closing(consumer):
        mp.wait_for(lambda: bool(consumer.poll(timeout_ms=200)), 60, "it reads")
        consumer.commit()
        verdict, words = checked(write_files(tmp_path, cluster_pair, topic_name, fence="none"))["groups-left-out"]
    assert (verdict, words) == ("fail", f"{topic_name}-forgotten reads {topic_name} at A, and is in no set")
