"""`sparkmirror lint --connect` at real clusters, one of which lets hardly anything pass."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    NewTopic,
    ResourcePattern,
    ResourceType,
)
from lab import Authority, KafkaCluster
from tests.support import mirror_process as mp
from typer.testing import CliRunner

from sparkmirror.cli.app import app
from sparkmirror.config import ClusterConfig
from sparkmirror.kafka.cluster import broker_versions
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.quorum_clock import clock_skew_s
from sparkmirror.kafka.cluster.scratch_topic import PREFIX

pytestmark = pytest.mark.broker

HOUR_MS = 3_600_000
LINES = {
    "clusters": "A, B",
    "A->B.enabled": "true",
    "tasks.max": "4",
    "sync.group.offsets.enabled": "false",
    "replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "heartbeats.topic.replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "B.offset.storage.replication.factor": "1",
}


def lint(
    directory: Path, source: str, target: str, topics: str, *, alias: str = "A", **more: str
) -> dict[str, list[str]]:
    """What is found, by rule; the words behind each rule's own. `alias`: the source's."""
    path = directory / "mm2.properties"
    servers = {"A.bootstrap.servers": source, "B.bootstrap.servers": target, "topics": topics}
    text = "".join(f"{key} = {value}\n" for key, value in {**LINES, **servers, **more}.items())
    path.write_text(re.sub(r"\bA\b", alias, text))
    printed = CliRunner().invoke(app, ["lint", str(path), "--connect", "-o", "json"])
    findings: dict[str, list[str]] = {}
    for one in json.loads(printed.stdout):
        if one["severity"] != "info":
            findings.setdefault(one["rule"], []).extend(place["what"] for place in one["places"])
    assert printed.exit_code == int(bool(findings))
    return findings


def informed(directory: Path) -> dict[str, str]:
    """The rules that have something worth knowing to say of the same file, and the words behind each rule's own."""
    printed = CliRunner().invoke(app, ["lint", str(directory / "mm2.properties"), "--connect", "-o", "json"])
    infos = [one for one in json.loads(printed.stdout) if one["severity"] == "info"]
    return {one["rule"]: place["what"].partition(": ")[2] for one in infos for place in one["places"]}


def make(cluster: KafkaCluster, topic: str, partitions: int = 2, **configs: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    properties = {key.replace("_", "."): value for key, value in configs.items()}
    admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=properties)])
    admin.wait_for_topics([topic], timeout_ms=60_000)
    admin.close()


def topics_of(cluster: KafkaCluster) -> set[str]:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    try:
        return {str(name) for name in admin.list_topics()}
    finally:
        admin.close()


def test_clusters_that_are_well(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    make(source_cluster, topic_name)
    before = topics_of(target_cluster)
    assert lint(tmp_path, source_cluster.bootstrap_servers, target_cluster.bootstrap_servers, topic_name) == {}
    told = informed(tmp_path)
    assert not told.keys() & {"limits-unknown", "rights-unknown", "append-check-unproven"}
    assert told["append-check-proven"].endswith("; producer state kept for 1 day")
    assert topics_of(target_cluster) - {"__consumer_offsets"} == before - {"__consumer_offsets"}


def test_too_few_brokers_for_connects_offsets(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    make(source_cluster, topic_name)
    found = lint(
        tmp_path,
        source_cluster.bootstrap_servers,
        target_cluster.bootstrap_servers,
        topic_name,
        alias="Fresh",  # its offsets topic is not there yet
        **{"B.offset.storage.replication.factor": "3"},
    )
    (line,) = found.pop("factor-too-high")
    assert line.endswith("3 for mm2-offsets.Fresh.internal, and 1 brokers")
    assert found == {}


def test_trouble_at_the_target(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    alias = "Trouble"  # none of its topics is there yet
    make(source_cluster, topic_name, max_message_bytes="5000000")
    make(source_cluster, f"{topic_name}-young")
    make(source_cluster, f"{topic_name}-new")
    for suffix in ("", "-young"):
        make(target_cluster, f"{alias}.{topic_name}{suffix}", message_timestamp_before_max_ms=str(HOUR_MS))
    producer = KafkaProducer(bootstrap_servers=source_cluster.bootstrap_servers)
    now_ms = int(time.time() * 1000)
    producer.send(topic_name, b"old", partition=1, timestamp_ms=now_ms - 2 * HOUR_MS)
    producer.send(f"{topic_name}-young", b"young", partition=1, timestamp_ms=now_ms - HOUR_MS // 2)
    producer.close()
    found = lint(
        tmp_path,
        source_cluster.bootstrap_servers,
        target_cluster.bootstrap_servers,
        f"{topic_name}.*",
        alias=alias,
        **{
            "replication.factor": "3",
            "checkpoints.topic.replication.factor": "2",
            "heartbeats.replication.enabled": "false",  # other tests' heartbeats
        },
    )
    assert found.keys() == {"factor-too-high", "message-too-large", "too-old"}
    assert any(f"3 for {alias}.{topic_name}-new, and 1 brokers" in one for one in found["factor-too-high"])
    assert any(f"2 for {alias}.checkpoints.internal" in one for one in found["factor-too-high"])
    assert found["message-too-large"][0].endswith("up to 5,000,000 bytes at Trouble, 1,048,588 at the target")
    assert [one.partition(": ")[2] for one in found["too-old"]] == ["older than 1 h"]


def test_a_compacted_log_whose_records_are_all_young(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    """Compaction took the old record, and left the log's start where it was."""
    eager = {"cleanup_policy": "compact", "segment_ms": "1000", "min_cleanable_dirty_ratio": "0.01"}
    make(source_cluster, topic_name, partitions=1, **eager)
    make(target_cluster, f"A.{topic_name}", partitions=1, message_timestamp_before_max_ms=str(HOUR_MS))
    now_ms = int(time.time() * 1000)
    producer = KafkaProducer(bootstrap_servers=source_cluster.bootstrap_servers)
    producer.send(topic_name, b"old", b"key", timestamp_ms=now_ms - 2 * HOUR_MS).get()
    clusters = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers, topic_name
    assert "too-old" in lint(tmp_path, *clusters)

    def compacted() -> bool:
        producer.send(topic_name, b"young", b"key").get()  # rolls the segment by its later timestamp
        consumer = KafkaConsumer(
            topic_name, bootstrap_servers=source_cluster.bootstrap_servers, auto_offset_reset="earliest"
        )
        try:
            return int(next(consumer).offset) > 0
        finally:
            consumer.close()

    mp.wait_for(compacted, 60, "the source compacted")
    producer.close()
    assert "too-old" not in lint(tmp_path, *clusters)


def test_a_class_that_raises_an_error_is_a_finding(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make(source_cluster, topic_name)
    (tmp_path / "raising.py").write_text("class Filter:\n    def should_replicate_topic(self, topic):\n        1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    own = {"topic.filter.class": "raising:Filter"}
    found = lint(tmp_path, source_cluster.bootstrap_servers, target_cluster.bootstrap_servers, topic_name, **own)
    assert "ZeroDivisionError" in found["unreachable"][0]


def test_one_cluster_twice(source_cluster: KafkaCluster, topic_name: str, tmp_path: Path) -> None:
    make(source_cluster, topic_name)
    by_another_name = source_cluster.bootstrap_servers.replace("127.0.0.1", "localhost")
    found = lint(tmp_path, source_cluster.bootstrap_servers, by_another_name, topic_name)
    assert "one-cluster" in found


@pytest.mark.full
def test_nobody_there(source_cluster: KafkaCluster, topic_name: str, tmp_path: Path) -> None:
    make(source_cluster, topic_name)
    more = {"admin.timeout.ms": "10000"}
    (line,) = lint(tmp_path, source_cluster.bootstrap_servers, "127.0.0.1:1", topic_name, **more)["unreachable"]
    assert "connection refused" in line


def test_the_clusters_clock(source_cluster: KafkaCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    client = ClusterClient(ClusterConfig(alias="A", bootstrap_servers=(source_cluster.bootstrap_servers,)), "test")
    skew = clock_skew_s(client)
    assert skew is not None
    assert abs(skew) < 2
    ours = time.time
    monkeypatch.setattr(time, "time", lambda: ours() - 100)
    ahead = clock_skew_s(client)
    assert ahead is not None
    assert 95 < ahead < 105
    client.close()


def test_permissions_at_the_target(
    source_cluster: KafkaCluster, guarded: KafkaCluster, authority: Authority, topic_name: str, tmp_path: Path
) -> None:
    make(source_cluster, topic_name)
    make(guarded, f"A.{topic_name}")
    mine = authority.client_settings() | {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue(tmp_path / "keys.pem", "mirror.example")),
    }
    settings = {f"B.{key}": value for key, value in mine.items()}
    settings |= {"groups": "billing, ship.*", "sync.group.offsets.enabled": "true"}
    found = lint(tmp_path, source_cluster.bootstrap_servers, guarded.tls_bootstrap_servers, topic_name, **settings)
    lines = "\n".join(found["forbidden-at-target"])
    assert "READ on group A-mm2, billing" in lines
    assert [one.partition(": ")[2] for one in found["groups-unseen"]] == ["READ on groups like ship.*"]
    assert "limits-unknown" in informed(tmp_path)
    assert "ALTER on the cluster, to add ACLs" in lines
    assert "CREATE on topic" in lines


@contextlib.contextmanager
def granted(cluster: KafkaCluster, kind: ResourceType, name: str, *operations: ACLOperation) -> Iterator[None]:
    """To everybody; topics and transactional ids by prefix."""
    prefixed = ResourceType.TOPIC, ResourceType.TRANSACTIONAL_ID
    by = ACLResourcePatternType.PREFIXED if kind in prefixed else ACLResourcePatternType.LITERAL
    pattern = ResourcePattern(kind, name, by)
    acls = [ACL("User:*", "*", operation, ACLPermissionType.ALLOW, pattern) for operation in operations]
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    try:
        admin.create_acls(acls)
        yield
    finally:
        admin.delete_acls(acls)
        admin.close()


def test_rights_on_copies_that_are_not_there(
    source_cluster: KafkaCluster, guarded: KafkaCluster, authority: Authority, topic_name: str, tmp_path: Path
) -> None:
    """Whether we could see them tells; and ACLs do, where we may read them."""
    make(source_cluster, topic_name)
    copy, topics = f"A.{topic_name}", ResourceType.TOPIC
    mine = authority.client_settings() | {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue(tmp_path / "keys.pem", "mirror.example")),
    }
    settings = {f"B.{key}": value for key, value in mine.items()}
    settings["heartbeats.replication.enabled"] = "false"  # other tests' heartbeats

    def told() -> tuple[str, str]:
        """What is wrong, and what is not known."""
        found = lint(tmp_path, source_cluster.bootstrap_servers, guarded.tls_bootstrap_servers, topic_name, **settings)
        wrong = [one for one in found["forbidden-at-target"] if copy in one]
        said = "\n".join(wrong), informed(tmp_path).get("rights-unknown", "")
        print(said)
        return said

    def wait_for(wrong: str, unknown: str) -> None:
        """Brokers learn of ACLs a moment later."""
        mp.wait_for(lambda: told() == (wrong, unknown), 60, unknown or "all is known")

    with granted(guarded, topics, copy, ACLOperation.CREATE):
        lacks = "ALTER, ALTER_CONFIGS, DESCRIBE, DESCRIBE_CONFIGS, READ, WRITE"
        wait_for(f"sparkmirror's principal lacks a permission at the target: {lacks} on topic {copy}", "")
        with granted(guarded, topics, copy, ACLOperation.DESCRIBE):
            wait_for("", f"ALTER, ALTER_CONFIGS, DESCRIBE_CONFIGS, READ, WRITE on topic {copy}")
            with granted(guarded, ResourceType.CLUSTER, "kafka-cluster", ACLOperation.DESCRIBE):
                others = ACLOperation.READ, ACLOperation.ALTER, ACLOperation.ALTER_CONFIGS
                with granted(guarded, topics, copy, *others):
                    wait_for("", f"WRITE on topic {copy}")
                    with granted(guarded, topics, copy, ACLOperation.WRITE):
                        wait_for("", "")


def test_rights_that_the_append_check_needs(
    source_cluster: KafkaCluster, guarded: KafkaCluster, authority: Authority, topic_name: str, tmp_path: Path
) -> None:
    """Without them nothing is made, and that is no mistake of anybody's."""
    make(source_cluster, topic_name)
    mine = authority.client_settings() | {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue(tmp_path / "keys.pem", "mirror.example")),
    }
    settings = {f"B.{key}": value for key, value in mine.items()}

    def told() -> dict[str, str]:
        found = lint(tmp_path, source_cluster.bootstrap_servers, guarded.tls_bootstrap_servers, topic_name, **settings)
        assert "append-check" not in found
        assert not [name for name in topics_of(guarded) if name.startswith(PREFIX)]
        return {rule: words for rule, words in informed(tmp_path).items() if rule.startswith("append-check")}

    def wait_for(rule: str, words: str) -> None:
        mp.wait_for(lambda: [words in line for line in told().get(rule, "").splitlines()] == [True], 60, words)

    wait_for("append-check-unproven", "can't be deleted: ")
    with granted(guarded, ResourceType.TOPIC, PREFIX, ACLOperation.DELETE, ACLOperation.DESCRIBE):
        wait_for("append-check-unproven", "can't be created: ")
        with granted(guarded, ResourceType.TOPIC, PREFIX, ACLOperation.CREATE):
            wait_for("append-check-unproven", "grant sparkmirror's principal")
            with granted(guarded, ResourceType.TOPIC, PREFIX, ACLOperation.READ, ACLOperation.WRITE):
                wait_for("append-check-proven", "the brokers don't say how long they keep producer state")


def test_permissions_at_the_source(
    target_cluster: KafkaCluster, guarded: KafkaCluster, authority: Authority, tmp_path: Path, topic_name: str
) -> None:
    """What we may not see isn't there; what we may see but not read is named."""
    make(guarded, topic_name)
    admin = KafkaAdminClient(bootstrap_servers=guarded.bootstrap_servers)
    pattern = ResourcePattern(ResourceType.TOPIC, topic_name)
    may_describe = ACL("User:*", "*", ACLOperation.DESCRIBE, ACLPermissionType.ALLOW, pattern)
    admin.create_acls([may_describe])
    admin.close()
    mine = authority.client_settings() | {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue(tmp_path / "keys.pem", "mirror.example")),
    }
    settings = {f"A.{key}": value for key, value in mine.items()} | {"groups": "billing, ship.*"}
    found = lint(
        tmp_path, guarded.tls_bootstrap_servers, target_cluster.bootstrap_servers, f"{topic_name}.*", **settings
    )
    lines = "\n".join(found["forbidden-at-source"])
    assert f"DESCRIBE_CONFIGS, READ on topic {topic_name}" in lines
    assert "DESCRIBE on the cluster" in lines
    assert "DESCRIBE on group billing" in lines
    assert [one.partition(": ")[2] for one in found["groups-unseen"]] == ["DESCRIBE on groups like ship.*"]
    assert "CREATE on topic mm2-offset-syncs.B.internal" in lines
    settings["emit.checkpoints.enabled"] = "false"
    servers = guarded.tls_bootstrap_servers, target_cluster.bootstrap_servers
    assert "groups-unseen" not in lint(tmp_path, *servers, f"{topic_name}.*", **settings)


def test_brokers_that_speak_too_little(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Real ones, asked for more than there is."""
    make(source_cluster, topic_name)
    monkeypatch.setattr(broker_versions, "_AT_TARGET", ((0, 99),))
    found = lint(tmp_path, source_cluster.bootstrap_servers, target_cluster.bootstrap_servers, topic_name)
    (line,) = found["too-old-brokers"]
    assert "broker 1: it speaks as Kafka 4.1 does, and a target must be Kafka 2.8 or newer" in line
    assert found.keys() == {"too-old-brokers"}
