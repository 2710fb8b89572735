"""What stops a run: each message is one line and names file, key and what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sparkmirror.config import MirrorConfig, load_mm2_properties
from sparkmirror.errors import ConfigError

Load = Callable[..., MirrorConfig]
BROKERS = "us.bootstrap.servers = u:1\neu.bootstrap.servers = e:1\n"


@pytest.mark.parametrize(
    ("key", "value", "part"),
    [
        ("tasks.max", "0", "'0' is not allowed, it must be a whole number from 1 to 2147483647"),
        ("tasks.max", "4 # four", "a # after a value is part of it"),
        ("tasks.max", "1_000", "whole number"),
        ("us->eu.replication.factor", "0", "from 1 to 32767, or -1"),
        ("refresh.topics.enabled", "yes", "'yes' is not allowed, it must be true or false"),
        (
            "us.consumer.auto.offset.reset",
            "none",
            "write earliest or latest; to stop where records are lost, write sparkmirror.on",
        ),
        ("us.consumer.isolation.level", "READ_COMMITTED", "must be read_uncommitted or read_committed"),
        ("topics", "a,,b", "empty item"),
        ("topics.exclude", "a,", "empty item"),
        ("us.bootstrap.servers", "u1", "'u1' is not allowed, it must be host:port"),
        ("us.bootstrap.servers", "u1:0", "the port from 1"),
        ("us.bootstrap.servers", "fe80::1]", "in brackets"),
        ("us.bootstrap.servers", "", "is empty"),
        ("replication.policy.separator", "/", "must be made of letters"),
        ("replication.policy.class", "com.example.Mine", "DefaultReplicationPolicy or org.apache.kafka"),
        ("interceptor.classes", "x", "take this key out"),
        ("us.consumer.interceptor.classes", "com.example.Mine", "take this key out"),
        ("key.converter", "org.apache.kafka.connect.storage.StringConverter", "copied as bytes"),
        ("eu.value.converter", "JsonConverter", "copied as bytes"),
        ("us->eu.header.converter", "JsonConverter", "copied as bytes"),
        ("topic.filter.class", "com.example.Mine", "DefaultTopicFilter, or a Python class as module:Class"),
        ("group.filter.class", "com.example.Mine", "DefaultGroupFilter, or a Python class as module:Class"),
        ("us->eu.config.property.filter.class", "Mine", "DefaultConfigPropertyFilter, or a Python class"),
        ("replication.policy.class", "mine:", "or a Python class as module:Class"),
        ("replication.policy.class", "a-b:C", "or a Python class as module:Class"),
        ("forwarding.admin.class", "mine:Admin", "Java classes can't be loaded"),
        ("metric.names.formats", "", "must be a list of legacy and new"),
        ("us->eu.metric.names.formats", "legacy, newest", "must be a list of legacy and new"),
        ("errors.tolerance", "some", "must be none or all"),
        ("eu.exactly.once.source.support", "yes", "must be disabled or preparing or enabled"),
        ("config.properties.exclude", "a,,b", "empty item"),
        ("config.properties.exclude", "+a,b", "items with a + and items without: write it before each one"),
        ("us->eu.config.properties.exclude", "a, +b", "or before none to replace that"),
        ("config.properties.exclude", "+a,+", "has a + with nothing after it"),
        ("groups", ",a", "empty item"),
        ("us->eu.use.defaults.from", "SOURCE", "must be target or source"),
        ("offset-syncs.topic.location", "eu", "must be source or target"),
        ("sync.topic.acls.enabled", "1", "must be true or false"),
        ("emit.heartbeats.interval.seconds", "0", "from 1"),
        ("checkpoints.topic.replication.factor", "40000", "from 1 to 32767, or -1"),
        ("offset.lag.max", "-1", "from 0"),
        ("us->eu.forwarding.admin.class", "com.example.Mine", "Java classes can't be loaded"),
        ("security.protocol", "SASL", "must be PLAINTEXT or SSL or SASL_PLAINTEXT or SASL_SSL"),
        ("us.sasl.login.class", "com.example.Mine", "Java classes can't be loaded"),
        ("us->eu.source.producer.security.protocol", "SSL", "no such client here: write us.security.protocol"),
        ("us.ssl.engine.factory.class", "com.example.Mine", "Java classes can't be loaded"),
        ("eu.producer.compression.type", "brotli", "must be none or gzip or snappy or lz4 or zstd"),
        ("us->eu.producer.override.compression.type", "LZ4", "must be none or gzip"),
        ("eu.producer.compression.gzip.level", "0", "'0' is not allowed, it must be a whole number from 1 to 9, or -1"),
        ("us->eu.producer.override.compression.gzip.level", "-2", "from 1 to 9, or -1"),
        ("eu.producer.compression.lz4.level", "18", "from 1 to 17"),
        ("eu.producer.compression.lz4.level", "-1", "from 1 to 17"),
        ("us->eu.producer.override.compression.zstd.level", "23", "from -131072 to 22"),
        ("eu.producer.compression.zstd.level", "-131073", "from -131072 to 22"),
        ("eu.producer.compression.zstd.level", "best", "a whole number"),
        ("sparkmirror.on.expired", "stop", "'stop' is not allowed, it must be continue or halt"),
        ("us->eu.sparkmirror.on.truncated", "restart", "must be halt or continue"),
        ("sparkmirror.on.recreated", "continue", "must be restart or halt"),
        ("sparkmirror.merge.tiny.batches", "yes", "must be true or false"),
        ("us.bootstrap.servers", "${file:/x:y}", "write config.providers = file and config.providers.file.class"),
        ("topics", "${env:TOPICS}", "${env:TOPICS} names no config provider"),
        ("us->eu.source.consumer.bootstrap.servers", "x:1", "other brokers than us.bootstrap.servers"),
        ("us->eu.producer.override.bootstrap.servers", "x:1", "other brokers than eu.bootstrap.servers"),
        ("us.consumer.bootstrap.servers", "x:1", "other brokers than us.bootstrap.servers"),
        ("source.cluster.alias", "other", "aliases come from the flow's own name"),
        ("us->eu.target.cluster.alias", "other", "aliases come from the flow's own name"),
    ],
)
def test_bad_value(load: Load, key: str, value: str, part: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(f"{key} = {value}")
    assert caught.value.key == key
    assert caught.value.exit_code == 2
    message = str(caught.value)
    assert "mm2.properties, line 5: " + key + ": " in message
    assert part in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "line",
    [
        "transforms =",
        "predicates = ",
        "key.converter = org.apache.kafka.connect.converters.ByteArrayConverter",
        "value.converter = ByteArrayConverter",
        "topic.filter.class = org.apache.kafka.connect.mirror.DefaultTopicFilter",
        "group.filter.class = org.apache.kafka.connect.mirror.DefaultGroupFilter",
        "config.property.filter.class = org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter",
        "eu.exactly.once.source.support = enabled",
        "us->eu.exactly.once.support = required",
        "eu.producer.acks = all",
        "eu.producer.enable.idempotence = true",
        "errors.tolerance = none",
        "tasks.max.enforce = true",
        "topic.creation.enable = true",
        "forwarding.admin.class = org.apache.kafka.clients.admin.ForwardingAdmin",
        "security.protocol = PLAINTEXT",
        "us.security.protocol = plaintext",
        "eu.producer.compression.type = none",
        "us->eu.source.cluster.alias = us",
        "sync.topic.acls.enabled = false",
        "emit.heartbeats.enabled = false",
        "dedicated.mode.enable.internal.rest = false",
    ],
)
def test_value_that_asks_for_nothing(load: Load, line: str) -> None:
    warnings = load(line).warnings
    assert not [text for text in warnings if "alias" not in text]


@pytest.mark.parametrize(
    ("start", "suggested"),
    [
        ("", "clusters = source, target"),
        (BROKERS, "clusters = us, eu"),
        (BROKERS + "clusters =\n", "clusters = us, eu"),
        ("clusters = #comma separated list of aliases\n" + BROKERS, "clusters = us, eu"),
    ],
)
def test_no_clusters(load: Load, start: str, suggested: str) -> None:
    with pytest.raises(ConfigError, match=suggested):
        load(start=start)


@pytest.mark.parametrize(
    ("start", "part"),
    [
        ("clusters = us, eu\n" + BROKERS, "no flow is enabled: write us->eu.enabled = true"),
        ("clusters = us, eu\nus->eu.enabled = false\n" + BROKERS, "no flow is enabled"),
        ("clusters = us, eu\nenabled = true\n" + BROKERS, "no flow is enabled"),
        ("clusters = us\n", "a second alias"),
        ("clusters = us, eu->x\n", "letters, digits"),
        ("clusters = us,,eu\n", "empty item"),
        ("clusters = us, eu\nus->eu.enabled = true\nus.bootstrap.servers = u:1\n", "write eu.bootstrap.servers"),
    ],
)
def test_flows_that_cannot_run(load: Load, start: str, part: str) -> None:
    with pytest.raises(ConfigError, match=part):
        load(start=start)


@pytest.mark.parametrize(
    ("chosen", "part"),
    [("us", "no enabled flow leads into us: us->eu"), ("euu", "did you mean eu?"), ("xyz", "there are us, eu")],
)
def test_chosen_clusters(load: Load, chosen: str, part: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(clusters=[chosen])
    assert part in str(caught.value)
    assert caught.value.origin == "--clusters"


def test_cluster_that_no_flow_uses_needs_no_brokers(load: Load) -> None:
    assert load("clusters = us, eu, asia").flows[0].name == "us->eu"


def test_bad_override(load: Load) -> None:
    with pytest.raises(ConfigError, match=r"^command line: tasks\.max: "):
        load(overrides={"tasks.max": "many"})


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("clusters = a\n".encode("utf-16"), "plain properties file"),
        (b"clusters = \\u12\n", r"has a \\u"),
    ],
)
def test_file_that_is_no_properties(tmp_path: Path, content: bytes, part: str) -> None:
    path = tmp_path / "mm2.properties"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=part):
        load_mm2_properties(str(path))


def test_missing_file_and_directory(tmp_path: Path) -> None:
    for path, part in (
        (tmp_path / "none", "no such file"),
        (tmp_path, "is a directory"),
        (Path("x" * 300), "can.t be read"),
    ):
        with pytest.raises(ConfigError, match=part):
            load_mm2_properties(str(path))


SECRETS = ("sasl.jaas.config", "ssl.key.password", "ssl.keystore.key", "sasl.oauthbearer.token", "my.client.secret")


@pytest.mark.parametrize("key", SECRETS)
@pytest.mark.parametrize("prefix", ["", "us.", "us->eu.", "us -> eu.", "us.consumer.", "other."])
def test_secrets_stay_out_of_messages(load: Load, prefix: str, key: str) -> None:
    lines = f"{prefix}{key} = hunter2 # x\n" * 2
    assert "hunter2" not in "\n".join(load(lines).warnings)
