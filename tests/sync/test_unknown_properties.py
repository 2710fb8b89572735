"""A target, and a source, of an older Kafka that doesn't know all properties of topics; all of it real."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from flow_rules import cluster_config, rules
from lab import KafkaCluster
from waiting import assert_soon

from sparkmirror.config import FlowConfig
from sparkmirror.config.model import TopicSyncConfig
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.new_topics import NewTopicSpec
from sparkmirror.lint.cluster_rules import CLUSTER_RULES
from sparkmirror.lint.probe import probe
from sparkmirror.mirror.sync.topic_config_duty import TopicConfigSync
from sparkmirror.mirror.sync.topics import TopicDuty, TopicSync

pytestmark = [pytest.mark.broker, pytest.mark.full]

UNKNOWN = {"message.timestamp.after.max.ms": "3600000", "remote.log.copy.disable": "false"}
"""Kafka has the first since 3.6, the second since 3.9."""
OLD = "3.3.2"


@pytest.fixture(scope="module")
def old_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    cluster = KafkaCluster(tmp_path_factory.mktemp("old"), version=OLD)
    with cluster:
        yield cluster
    cluster.cleanup(keep_logs=True)


def admin(alias: str, cluster: KafkaCluster) -> ClusterAdmin:
    return ClusterAdmin.connect(cluster_config(alias, cluster), "test", 20)


def dynamic(cluster: ClusterAdmin, topic: str) -> dict[str, str | None]:
    entries = cluster.topic_configs([topic])[topic]
    return {entry.name: entry.value for entry in entries if entry.source == "DYNAMIC_TOPIC_CONFIG"}


def found_by_lint(flow: FlowConfig) -> dict[str, str]:
    """What is wrong with topics' creation, by the property or topic."""
    asked = probe(flow, 30)
    assert (asked.source.error, asked.target.error) == ("", "")
    findings = (one for rule in CLUSTER_RULES for one in rule.findings(asked))
    return {one.key: one.what for one in findings if one.rule in ("unknown-properties", "not-created")}


def said_by_config_sync(
    flow: FlowConfig, source: ClusterAdmin, target: ClusterAdmin, topics: TopicSync, lines: Callable[[], list[str]]
) -> list[str]:
    """In two runs of one process."""
    duty = TopicConfigSync(flow, rules(topics="|".join(flow.topics)), source, target, lambda: topics)
    duty.run()
    duty.run()
    duty.close()
    return lines()


def test_an_older_target(
    source_cluster: KafkaCluster, old_cluster: KafkaCluster, topic_name: str, lines: Callable[[], list[str]]
) -> None:
    names = [topic_name, f"{topic_name}-second", f"{topic_name}-third"]
    flow = FlowConfig(
        source=cluster_config("us", source_cluster),
        target=cluster_config("eu", old_cluster),
        topics=tuple(names),
        replication_factor=1,
        heartbeats_replication_enabled=False,
    )
    own = rules(topics="|".join(names), heartbeats=False)
    with admin("us", source_cluster) as source, admin("eu", old_cluster) as target:
        third = UNKNOWN | {"cleanup.policy": "compact,delete", "compression.gzip.level": "9", "retention.ms": "77"}
        specs = [NewTopicSpec(name, 1, 1, UNKNOWN | {"retention.ms": "1234"}) for name in names[:2]]
        assert not any(source.create_topics([*specs, NewTopicSpec(names[2], 1, 1, third)]).values())
        assert_soon(lambda: set(names) <= set(source.topics()), True)

        copies = ", ".join(f"us.{name}" for name in names)
        lint = found_by_lint(flow)
        for name in UNKNOWN:
            assert lint[name] == f"the target's brokers don't know this property of topics: {copies}"
        assert set(lint) == {*UNKNOWN, "compression.gzip.level"}
        lines()

        result = TopicDuty(source, target, own).sync_once()
        assert (result.refused, len(result.mirrored)) == ({}, 3)
        assert dynamic(target, f"us.{topic_name}") == {"retention.ms": "1234"}
        assert dynamic(target, f"us.{topic_name}-third") == {"cleanup.policy": "compact,delete", "retention.ms": "77"}
        (line,) = (line for line in lines() if "don't know" in line)
        assert line == (
            "created without properties that the brokers of cluster eu don't know: "
            f"compression.gzip.level (us.{names[2]}), message.timestamp.after.max.ms ({copies}), "
            f"remote.log.copy.disable ({copies})"
        )

        first_seen = TopicSync(mirrored=result.mirrored, created=(), grown=(), refused={})
        assert said_by_config_sync(flow, source, target, result, lines) == []
        (line,) = said_by_config_sync(flow, source, target, first_seen, lines)
        assert f"message.timestamp.after.max.ms ({copies})" in line
        assert set(found_by_lint(flow)) == {*UNKNOWN, "compression.gzip.level"}  # of copies that are there, too
        quiet = TopicSyncConfig(sync_topic_configs_enabled=False)
        assert found_by_lint(flow.model_copy(update={"topic_sync": quiet})) == {}


def test_a_value_that_the_target_refuses(
    source_cluster: KafkaCluster, old_cluster: KafkaCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with admin("us", source_cluster) as source, admin("eu", old_cluster) as target:
        assert source.create_topics([NewTopicSpec(topic_name, 1, 1, UNKNOWN)]) == {topic_name: None}
        assert_soon(lambda: topic_name in source.topics(), True)
        monkeypatch.setattr(
            "sparkmirror.mirror.sync.topics.creation_configs", lambda *_: UNKNOWN | {"cleanup.policy": "tidy"}
        )
        result = TopicDuty(source, target, rules(topics=topic_name, heartbeats=False)).sync_once()
        assert (result.mirrored, result.unknown) == ((), {})
        assert "Invalid value tidy for configuration cleanup.policy" in result.refused[topic_name]
        assert result.refused[topic_name].endswith("write config.properties.exclude = +cleanup.policy")
        assert "us." + topic_name not in target.topics()


def test_the_format_of_an_older_sources_records(
    old_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, lines: Callable[[], list[str]]
) -> None:
    with admin("us", old_cluster) as source, admin("eu", target_cluster) as target:
        configs = {"message.format.version": "2.8", "retention.ms": "1234"}
        assert source.create_topics([NewTopicSpec(topic_name, 1, 1, configs)]) == {topic_name: None}
        assert_soon(lambda: topic_name in source.topics(), True)
        assert "message.format.version" in dynamic(source, topic_name)
        flow = FlowConfig(source=source.config, target=target.config, topics=(topic_name,))
        own = rules(topics=topic_name, heartbeats=False)
        result = TopicDuty(source, target, own).sync_once()
        assert (result.refused, result.unknown) == ({}, {})
        assert lines() == [f"topic created: us.{topic_name} on cluster eu"]
        assert said_by_config_sync(flow, source, target, result, lines) == []
        assert dynamic(target, f"us.{topic_name}") == {"retention.ms": "1234"}
