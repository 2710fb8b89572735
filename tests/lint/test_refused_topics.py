"""Topics that a target refuses for their properties: lint and run name the property, and the remedy works.

The source keeps tiered storage, whose topics the target, without it, doesn't take. Both are real.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from lab import KafkaCluster
from tests.support.started import started
from typer.testing import CliRunner

from sparkmirror.cli.app import app
from sparkmirror.config import load_mm2_properties
from sparkmirror.demo.jars import BROKER, class_path
from sparkmirror.demo.java import java_home
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.mirror.sync.topic_rules import topic_rules
from sparkmirror.mirror.sync.topics import TopicDuty, TopicSync

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def tiering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """A cluster whose topics may want tiered storage, which is never asked for anything."""
    classes = tmp_path_factory.mktemp("classes")
    source = Path(__file__).with_name("NoStorage.java")
    compiler = [f"{java_home()}/bin/java", "-m", "jdk.compiler/com.sun.tools.javac.Main"]
    command = [*compiler, "-cp", class_path(BROKER), "-d", str(classes), str(source)]
    subprocess.run(command, check=True, timeout=120)
    properties = {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": "NoStorage",
        "remote.log.storage.manager.class.path": f"{classes}/",
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
    }
    cluster = KafkaCluster(tmp_path_factory.mktemp("tiering"), properties=properties)
    with started(cluster):
        yield cluster


def write(directory: Path, source: KafkaCluster, target: KafkaCluster, topic: str, *lines: str) -> Path:
    """A file with one flow, whose source is known as `Tiering`: none of its topics is at the target yet."""
    factors = ("", "checkpoints.topic.", "heartbeats.topic.", "offset-syncs.topic.", "offset.storage.")
    text = [
        "clusters = Tiering, B",
        f"Tiering.bootstrap.servers = {source.bootstrap_servers}",
        f"B.bootstrap.servers = {target.bootstrap_servers}",
        "Tiering->B.enabled = true",
        f"topics = {topic}",
        "heartbeats.replication.enabled = false",
        *(f"{kind}replication.factor = 1" for kind in factors),
    ]
    path = directory / "mm2.properties"
    path.write_text("\n".join([*text, *lines]) + "\n")
    return path


def make(cluster: KafkaCluster, topic: str, **configs: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    properties = {name.replace("_", "."): value for name, value in configs.items()}
    admin.create_topics([NewTopic(topic, 1, 1, topic_configs=properties)])
    admin.wait_for_topics([topic], timeout_ms=60_000)
    admin.close()


def not_created(path: Path) -> list[dict[str, Any]]:
    printed = CliRunner().invoke(app, ["lint", str(path), "--connect", "-o", "json"])
    return [one for one in json.loads(printed.stdout) if one["rule"] in ("not-created", "unreachable")]


def run_topics(path: Path) -> TopicSync:
    """What the run does about topics."""
    (flow,) = load_mm2_properties(str(path)).flows
    with (
        ClusterAdmin.connect(flow.source, "test", 20) as source,
        ClusterAdmin.connect(flow.target, "test", 20) as target,
    ):
        return TopicDuty(source, target, topic_rules(flow)).sync_once()


@pytest.mark.parametrize(
    ("configs", "named"),
    [
        ({"remote_storage_enable": "true"}, "+remote.storage.enable"),
        ({"remote_storage_enable": "true", "local_retention_ms": "1000"}, "+remote.storage.enable"),
        (
            {"remote_storage_enable": "true", "remote_log_copy_disable": "true", "retention_ms": "99999"},
            "+remote.storage.enable",
        ),
    ],
    ids=["one property", "next to another", "with another that needs it"],
)
def test_a_refused_property(
    tiering: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
    configs: dict[str, str],
    named: str,
) -> None:
    make(tiering, topic_name, **configs)
    path = write(tmp_path, tiering, target_cluster, topic_name)
    (finding,) = not_created(path)
    assert finding["key"] == f"Tiering.{topic_name}"
    assert "Tiered Storage functionality is disabled in the broker" in finding["what"]
    assert named in finding["what"]
    remedy = finding["fix"].removeprefix("write ").partition(", if ")[0]
    assert remedy.startswith("config.properties.exclude = +")
    said = run_topics(path).refused[topic_name]
    assert said.endswith(finding["what"].partition("would not be created: ")[2])
    path = write(tmp_path, tiering, target_cluster, topic_name, remedy)
    assert not_created(path) == []
    result = run_topics(path)
    assert (result.refused, result.created) == ({}, (f"Tiering.{topic_name}",))


def test_what_is_taken_is_no_finding(
    tiering: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    make(tiering, topic_name, retention_ms="77", min_insync_replicas="3", max_message_bytes="99999999")
    path = write(tmp_path, tiering, target_cluster, topic_name)
    assert not_created(path) == []
    assert run_topics(path).refused == {}
