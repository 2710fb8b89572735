"""Strimzi's kinds of examples with real brokers: the files of `examples/strimzi`, unchanged but for addresses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition
from lab import Authority, KafkaCluster
from tests.support import mirror_process as mp
from tests.support.in_process import sparkmirror
from tests.support.secure_clusters import scram_user

from sparkmirror.demo.proof import compare_topics
from sparkmirror.mirror.engine import flow_driver

pytestmark = [pytest.mark.broker, pytest.mark.spark]

EXAMPLES = Path(__file__).parents[2] / "examples" / "strimzi"
PARTITIONS = 2
RECORDS = 400
EAST_PASSWORD = "hunter2-of-east"


def addressed(directory: Path, example: str, servers: Mapping[str, str], topics: str) -> Path:
    """The example with our brokers' addresses, and a pattern that leaves other tests' topics alone."""
    text = (EXAMPLES / f"{example}.yaml").read_text()
    for name, address in servers.items():
        text = re.sub(rf"{name}-kafka-bootstrap:\d+", address, text)
    assert "kafka-bootstrap" not in text
    path = directory / "mirror.yaml"
    path.write_text(text.replace('"orders.*"', f'"{topics}"'))
    return path


def run_once(path: Path, *options: str) -> tuple[int, str]:
    log = path.with_suffix(".log")
    with mp.MirrorProcess(path, log, "--once", *options) as mirror:
        code = mirror.process.wait(240)
    return code, log.read_text()


def status_of(path: Path) -> dict[str, Any]:
    document = yaml.safe_load(path.read_text())
    assert document["kind"] == "KafkaMirrorMaker2"
    status: dict[str, Any] = document["status"]
    return status


def fill(cluster: KafkaCluster, topic: str) -> None:
    mp.create_topic(cluster.bootstrap_servers, topic, PARTITIONS)
    mp.produce(cluster.bootstrap_servers, topic, PARTITIONS, RECORDS)


def assert_copied(source: KafkaCluster, target: KafkaCluster, names: Mapping[str, str]) -> None:
    proofs = compare_topics(source.bootstrap_servers, target.bootstrap_servers, dict(names))
    assert [proof.difference for proof in proofs] == [None] * PARTITIONS * len(names)
    assert sum(proof.records for proof in proofs) == RECORDS * len(names)


@pytest.mark.full
def test_basic_with_its_status(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    fill(source_cluster, topic_name)
    servers = {"west": source_cluster.bootstrap_servers, "east": target_cluster.bootstrap_servers}
    path = addressed(tmp_path, "basic", servers, topic_name)
    status = tmp_path / "status.yaml"
    with mp.MirrorProcess(path, tmp_path / "log", "--status-file", str(status), "-o", "json") as mirror:
        mp.wait_for(
            lambda: sum(mp.end_offsets(target_cluster.bootstrap_servers, f"west.{topic_name}", 2)) == RECORDS, 90, "all"
        )
        mp.wait_for(lambda: status_of(status)["conditions"][0]["type"] == "Ready", 180, "ready")
        running = status_of(status)
        mp.wait_for(
            lambda: "caught up" in [one["state"] for one in mirror.printed()], 180, "it is said to be caught up"
        )
        assert mirror.terminate(90) == 0
    assert_copied(source_cluster, target_cluster, {topic_name: f"west.{topic_name}"})
    assert [one["name"] for one in running["connectors"]] == [
        "west->east.MirrorSourceConnector",
        "west->east.MirrorCheckpointConnector",
    ]
    assert [task["state"] for task in running["connectors"][0]["tasks"]] == ["RUNNING"] * 2
    assert running["replicas"] == 1
    assert status_of(status)["replicas"] == 0
    printed = mirror.printed()
    assert (printed[-1]["flow"], printed[-1]["parked"]) == ("west->east", [])
    assert printed[-1]["records"] >= RECORDS, "heartbeats of other tests' flows may be among them"
    assert [one["time_ms"] for one in printed] == sorted(one["time_ms"] for one in printed)


@pytest.mark.full
def test_same_names(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    fill(source_cluster, topic_name)
    fill(source_cluster, f"{topic_name}-scratch")
    servers = {"old": source_cluster.bootstrap_servers, "new": target_cluster.bootstrap_servers}
    code, log = run_once(addressed(tmp_path, "same-names", servers, f"{topic_name}.*"))
    assert code == 0, log
    assert_copied(source_cluster, target_cluster, {topic_name: topic_name})
    assert mp.end_offsets(target_cluster.bootstrap_servers, f"{topic_name}-scratch", 1) == [0]


@pytest.mark.full
def test_groups_are_set(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    fill(source_cluster, topic_name)
    where = TopicPartition(topic_name, 1)
    consumer = KafkaConsumer(bootstrap_servers=source_cluster.bootstrap_servers, group_id="billing-1")
    consumer.assign([where])
    consumer.commit({where: OffsetAndMetadata(77, "", -1)})
    consumer.close()
    servers = {"west": source_cluster.bootstrap_servers, "east": target_cluster.bootstrap_servers}
    code, log = run_once(addressed(tmp_path, "sync-groups", servers, topic_name))
    assert code == 0, log
    assert_copied(source_cluster, target_cluster, {topic_name: f"west.{topic_name}"})
    there = KafkaConsumer(bootstrap_servers=target_cluster.bootstrap_servers, group_id="billing-1")
    assert there.committed(TopicPartition(f"west.{topic_name}", 1)) == 77
    there.close()


def mounted(directory: Path, authority: Authority) -> Path:
    """Secrets as Kubernetes mounts them."""
    texts = {
        "east-cluster-ca-cert/ca.crt": authority.certificate.read_text(),
        "west-cluster-ca-cert/ca.crt": authority.certificate.read_text(),
    }
    own = authority.issue(directory / "keys.pem", "mirror.example").read_text()
    key, rest = own.split("-----BEGIN CERTIFICATE-----", 1)
    texts |= {"mirror-user/user.key": key, "mirror-user/user.crt": "-----BEGIN CERTIFICATE-----" + rest}
    for name, text in texts.items():
        (directory / "secrets" / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / "secrets" / name).write_text(text)
    return directory / "secrets"


@pytest.mark.full
def test_tls(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, authority: Authority, topic_name: str, tmp_path: Path
) -> None:
    fill(source_cluster, topic_name)
    servers = {"west": source_cluster.tls_bootstrap_servers, "east": target_cluster.tls_bootstrap_servers}
    secrets = mounted(tmp_path, authority)
    code, log = run_once(addressed(tmp_path, "tls", servers, topic_name), "--secrets", str(secrets))
    assert code == 0, log
    assert_copied(source_cluster, target_cluster, {topic_name: f"west.{topic_name}"})
    assert "PRIVATE KEY" not in log


@pytest.mark.full
def test_scram(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, authority: Authority, topic_name: str, tmp_path: Path
) -> None:
    """One password stands in the file, the other one is mounted."""
    fill(source_cluster, topic_name)
    scram_user(source_cluster, "mirror", "change-me")
    scram_user(target_cluster, "mirror", EAST_PASSWORD)
    servers = {"west": source_cluster.servers("SCRAM"), "east": target_cluster.servers("SCRAM")}
    secrets = mounted(tmp_path, authority)
    (secrets / "east-mirror-user").mkdir()
    (secrets / "east-mirror-user" / "password").write_text(EAST_PASSWORD)
    code, log = run_once(addressed(tmp_path, "scram", servers, topic_name), "--secrets", str(secrets))
    assert code == 0, log
    assert_copied(source_cluster, target_cluster, {topic_name: f"west.{topic_name}"})
    assert EAST_PASSWORD not in log


@pytest.mark.full
def test_two_sources_in_the_old_layout(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    fill(source_cluster, topic_name)
    with KafkaCluster(tmp_path / "south") as south:
        fill(south, topic_name)
        servers = {"north": source_cluster.bootstrap_servers, "south": south.bootstrap_servers}
        servers["hub"] = target_cluster.bootstrap_servers
        code, log = run_once(addressed(tmp_path, "older-v1beta2", servers, topic_name))
        assert code == 0, log
        assert_copied(source_cluster, target_cluster, {topic_name: f"north.{topic_name}"})
        assert_copied(south, target_cluster, {topic_name: f"south.{topic_name}"})


def test_a_cluster_that_is_away_is_in_the_status(
    target_cluster: KafkaCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow_driver, "CONNECT_TIMEOUT_S", 1.0)
    servers = {"west": "127.0.0.1:1", "east": target_cluster.bootstrap_servers}
    path, status = addressed(tmp_path, "basic", servers, "x"), tmp_path / "status.yaml"
    assert sparkmirror("run", str(path), "--once", "--status-file", str(status)).returncode == 3
    (condition,) = status_of(status)["conditions"]
    assert (condition["type"], condition["reason"]) == ("NotReady", "ClusterUnreachable")
    assert "can't be reached at 127.0.0.1:1" in condition["message"]
