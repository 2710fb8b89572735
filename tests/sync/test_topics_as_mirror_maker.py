"""The real MirrorMaker 2 and ours copy the same topics: their properties and ACLs are the same in the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka.admin import ACLOperation
from lab import KafkaCluster, RealMirrorMaker
from tests.support.started import started
from waiting import assert_soon

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.demo.jvm import QUICK_START
from sparkmirror.kafka.cluster.acls import (
    ALL,
    ALLOW,
    DENY,
    PREFIXED,
    READ,
    WRITE,
    Acl,
    AclResource,
    create_acls,
    read_acls,
)
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.config_changes import ConfigChange, alter_topic_configs
from sparkmirror.kafka.cluster.new_topics import NewTopicSpec
from sparkmirror.mirror.sync.topic_acls import TopicAclSync
from sparkmirror.mirror.sync.topic_config_duty import TopicConfigSync
from sparkmirror.mirror.sync.topic_rules import topic_rules
from sparkmirror.mirror.sync.topics import TopicDuty

pytestmark = [pytest.mark.broker, pytest.mark.full]

TOPICS = {
    "plain": {},
    "compacted": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.2"},
    "many": {
        "retention.ms": "123456",
        "compression.type": "zstd",
        "message.timestamp.type": "LogAppendTime",
        "min.insync.replicas": "1",
        "segment.bytes": "1048576",
    },
}
ALTER, DESCRIBE = int(ACLOperation.ALTER), int(ACLOperation.DESCRIBE)
ACLS = [
    Acl(name="plain", principal="User:a", host="*", operation=READ, permission=ALLOW),
    Acl(name="plain", principal="User:a", host="*", operation=WRITE, permission=ALLOW),
    Acl(name="plain", principal="User:b", host="*", operation=ALL, permission=ALLOW),
    Acl(name="plain", principal="User:c", host="10.1.2.3", operation=ALL, permission=DENY),
    Acl(name="plain", principal="User:d", host="*", operation=WRITE, permission=DENY),
    Acl(name="compacted", principal="User:e", host="*", operation=ALTER, permission=ALLOW),
    Acl(name="compacted", principal="User:e", host="*", operation=DESCRIBE, permission=ALLOW),
    Acl(name="p", principal="User:f", host="*", operation=READ, permission=ALLOW, pattern=PREFIXED),
    Acl(name="not-there", principal="User:g", host="*", operation=READ, permission=ALLOW),
    Acl(name="*", principal="User:h", host="*", operation=READ, permission=ALLOW),
    Acl(name="__private", principal="User:i", host="*", operation=READ, permission=ALLOW),
    Acl(name="B.back", principal="User:j", host="*", operation=READ, permission=ALLOW),
]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[KafkaCluster, KafkaCluster]]:
    clusters = KafkaCluster(tmp_path / "source", acls=True), KafkaCluster(tmp_path / "target", acls=True)
    with started(*clusters):
        yield clusters


def test_the_same_in_the_end(pair: tuple[KafkaCluster, KafkaCluster], tmp_path: Path) -> None:
    here, there = (cluster.bootstrap_servers for cluster in pair)
    flow = FlowConfig(
        source=ClusterConfig(alias="O", bootstrap_servers=(here,)),
        target=ClusterConfig(alias="B", bootstrap_servers=(there,)),
        replication_factor=1,
        heartbeats_replication_enabled=False,
    )
    theirs = {
        "clusters": "A, B",
        "A.bootstrap.servers": here,
        "B.bootstrap.servers": there,
        "A->B.enabled": "true",
        "replication.factor": "1",
        "sync.topic.configs.interval.seconds": "1",
        "sync.topic.acls.interval.seconds": "1",
        "emit.heartbeats.enabled": "false",
        "emit.checkpoints.enabled": "false",
        **{
            f"{what}.replication.factor": "1"
            for what in ("offset-syncs.topic", "offset.storage", "status.storage", "config.storage")
        },
    }
    rules = topic_rules(flow)
    source_client, client = ClusterClient(flow.source, "test"), ClusterClient(flow.target, "test")
    with ClusterAdmin.connect(flow.source, "test") as source, ClusterAdmin.connect(flow.target, "test") as target:
        duty = TopicDuty(source, target, rules)
        found = [duty.sync_once()]
        configs = TopicConfigSync(flow, rules, source, target, lambda: found[-1])
        acls = TopicAclSync(flow, rules)

        def ours() -> None:
            found.append(duty.sync_once())
            configs.run()
            acls.run()

        def properties(alias: str) -> dict[str, dict[str, str | None]]:
            entries = target.topic_configs([f"{alias}.{topic}" for topic in TOPICS])
            return {
                topic.removeprefix(f"{alias}."): {
                    one.name: one.value for one in all_of_it if one.source == "DYNAMIC_TOPIC_CONFIG"
                }
                for topic, all_of_it in entries.items()
            }

        def grants(alias: str) -> set[Acl]:
            start = f"{alias}."
            return {
                Acl(
                    name=one.name.removeprefix(start),
                    principal=one.principal,
                    host=one.host,
                    operation=one.operation,
                    permission=one.permission,
                )
                for one in read_acls(client, AclResource.TOPIC)
                if one.name.startswith(start)
            }

        def same() -> None:
            assert_soon(lambda: properties("O") == properties("A"), True, 60)
            assert_soon(lambda: grants("O") == grants("A"), True, 60)

        source.create_topics(NewTopicSpec(name, 1, 1, settings) for name, settings in TOPICS.items())
        create_acls(source_client, ACLS)
        with RealMirrorMaker(theirs, tmp_path / "mm2", jvm_options=QUICK_START):
            assert_soon(lambda: set(properties("A")), set(TOPICS), 120)
            assert_soon(lambda: len(grants("A")), 8, 60)
            ours()
            same()
            assert properties("O")["many"].keys() == {"retention.ms", "compression.type", "segment.bytes"}

            for alias in "AO":
                edited = {"retention.ms": "7", "retention.bytes": "8", "min.insync.replicas": "1"}
                alter_topic_configs(client, [ConfigChange(f"{alias}.many", edited)])
            alter_topic_configs(
                source_client,
                [
                    ConfigChange("many", {"segment.bytes": "2097152"}, ("compression.type",)),
                    ConfigChange("plain", {"cleanup.policy": "compact,delete"}),
                ],
            )
            changed = {"retention.ms": "123456", "segment.bytes": "2097152", "min.insync.replicas": "1"}
            assert_soon(lambda: properties("A")["many"], changed, 60)
            assert_soon(lambda: properties("A")["plain"], {"cleanup.policy": "compact,delete"}, 60)
            ours()
            same()
        configs.close()
        acls.close()
    source_client.close()
    client.close()
