"""MirrorMaker 1's two files and its flags as a flow, and what is wrong in them, named as it was written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparkmirror.config import FlowConfig, MirrorConfig
from sparkmirror.config.legacy import LegacyOptions, included, load_legacy, named_after
from sparkmirror.errors import ConfigError
from sparkmirror.mirror.sync.topic_rules import topic_rules

CONSUMER = {"bootstrap.servers": "old1:9092,old2:9092", "group.id": "mirror"}
PRODUCER = {"bootstrap.servers": "new:9092"}

Load = Callable[..., MirrorConfig]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Read two files with these keys in addition, and with flags."""

    def written(name: str, keys: dict[str, str]) -> str:
        path = tmp_path / name
        path.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
        return str(path)

    def loaded(
        consumer: dict[str, str] | None = None,
        producer: dict[str, str] | None = None,
        include: str = "orders",
        **options: Any,
    ) -> MirrorConfig:
        return load_legacy(
            LegacyOptions(
                consumer=written("consumer.properties", CONSUMER | (consumer or {})),
                producer=written("producer.properties", PRODUCER | (producer or {})),
                include=include,
                **options,
            )
        )

    return loaded


def flow(config: MirrorConfig) -> FlowConfig:
    (only,) = config.flows
    return only


def test_the_least_that_must_be_given(load: Load) -> None:
    config = load()
    one = flow(config)
    assert config.warnings == ()
    assert config.beats == ()
    assert one.source.bootstrap_servers == ("old1:9092", "old2:9092")
    assert one.target.bootstrap_servers == ("new:9092",)
    assert one.legacy is not None
    assert one.legacy.model_dump() == {
        "group_id": "mirror",
        "offset_commit_interval_ms": 60_000,
        "abort_on_send_failure": True,
    }
    assert one.tasks_max == 1
    assert one.refresh_topics_interval_seconds == 300
    assert one.fetch.auto_offset_reset == "latest"
    assert one.replication_factor == -1
    asked = (
        one.heartbeat.emit_heartbeats_enabled,
        one.heartbeats_replication_enabled,
        one.group.emit_checkpoints_enabled,
        one.offset_sync.emit_offset_syncs_enabled,
        one.topic_sync.sync_topic_configs_enabled,
        one.topic_sync.sync_topic_acls_enabled,
    )
    assert not any(asked)


def test_keys_that_count(load: Load) -> None:
    config = load(
        {
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "fetch.max.bytes": "1000000",
            "max.partition.fetch.bytes": "2000",
            "metadata.max.age.ms": "30000",
            "client.rack": "a",
            "request.timeout.ms": "12000",
            "security.protocol": "SSL",
            "ssl.truststore.location": "/etc/old.p12",
            "ssl.truststore.password": "hunter2",
        },
        {
            "compression.type": "zstd",
            "compression.zstd.level": "7",
            "max.request.size": "3000000",
            "client.id": "mirror-1",
            "security.protocol": "SSL",
            "ssl.truststore.location": "/etc/new.p12",
        },
        num_streams=4,
        offset_commit_interval_ms=5000,
        abort_on_send_failure=False,
    )
    one = flow(config)
    assert config.warnings == ()
    assert one.fetch.auto_offset_reset == "earliest"
    assert one.fetch.isolation_level == "read_committed"
    assert one.fetch.fetch_max_bytes == 1_000_000
    assert one.fetch.max_partition_fetch_bytes == 2000
    assert one.fetch.request_timeout_ms == 12_000
    assert one.fetch.client_rack == "a"
    assert one.refresh_topics_interval_seconds == 30
    assert (one.produce.compression_type, one.produce.compression_level) == ("zstd", 7)
    assert one.produce.max_request_size == 3_000_000
    assert one.produce.client_id == "mirror-1"
    assert one.source.ssl.truststore_location == "/etc/old.p12"
    assert one.source.ssl.truststore_password.get_secret_value() == "hunter2"
    assert one.target.ssl.truststore_location == "/etc/new.p12"
    assert one.tasks_max == 4
    assert one.legacy is not None
    assert one.legacy.offset_commit_interval_ms == 5000
    assert not one.legacy.abort_on_send_failure


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("orders", "orders"),
        ("orders,bills", "orders|bills"),
        (" orders , bills ", "orders|bills"),
        ("'orders|bills'", "orders|bills"),
        ('"a.*",b', 'a.*"|b'),
    ],
)
def test_a_regex_as_mirror_maker_1_reads_it(written: str, means: str) -> None:
    assert included(written) == means


@pytest.mark.parametrize(
    ("include", "topic", "wanted"),
    [
        ("orders,bills", "bills", True),
        ("orders|bills", "orders", True),
        ("orders", "orders-2", False),
        ("ord", "orders", False),
        ("(?i)ORDERS", "orders", True),
        (".*", "a.replica", True),
        (".*", "my.heartbeats", True),
        (".*", "__consumer_offsets", False),
        (".*", "mm2-sparkmirror-segments.x.internal", False),
    ],
)
def test_whole_names_match_and_stay(load: Load, include: str, topic: str, wanted: bool) -> None:
    rules = topic_rules(flow(named_after(load(include=include), "id")))
    assert rules.wanted(topic) == wanted
    assert rules.remote_name(topic) == topic


def test_a_mirror_has_a_name_of_its_own(load: Load) -> None:
    """So that several into one cluster, from several clusters, don't take each other's place."""
    first, second = (flow(named_after(load({"group.id": "my mirror/1"}), cluster)) for cluster in ("Aa-_1", "Bb"))
    assert first.name == "my_mirror_1.Aa-_1->target"
    assert second.source.alias == "my_mirror_1.Bb"
    assert first.legacy == second.legacy


def test_what_has_no_effect_is_named_as_it_was_written(load: Load) -> None:
    warnings = load(
        {
            "client.id": "x",
            "enable.auto.commit": "true",
            "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
            "auto.ofset.reset": "earliest",
        },
        {"acks": "1", "producer.type": "sync", "linger.ms": "100"},
    ).warnings
    for key in ("client.id", "enable.auto.commit", "partition.assignment.strategy"):
        assert any(f"consumer.properties: {key}: has no effect: " in line for line in warnings), key
    for key in ("acks", "producer.type", "linger.ms"):
        assert any(f"producer.properties: {key}: has no effect: " in line for line in warnings), key
    assert any(line.endswith("auto.ofset.reset: is not known; did you mean auto.offset.reset?") for line in warnings)
    assert len(warnings) == 7
    assert not any("source." in line or "target." in line for line in warnings)


def test_what_is_done_anyway_is_not_named(load: Load) -> None:
    anyway = {"acks": "all", "enable.idempotence": "true"}
    assert load({"enable.auto.commit": "false", "exclude.internal.topics": "true"}, anyway).warnings == ()


@pytest.mark.parametrize(
    ("consumer", "producer", "says"),
    [
        ({"group.id": ""}, {}, "consumer.properties: group.id: is missing"),
        (
            {"bootstrap.servers": ""},
            {},
            "consumer.properties: bootstrap.servers: is missing: write bootstrap.servers =",
        ),
        ({}, {"bootstrap.servers": ""}, "producer.properties: bootstrap.servers: is missing"),
        (
            {"bootstrap.servers": "", "zookeeper.connect": "zk:2181"},
            {},
            "consumer.properties: zookeeper.connect: is of clients before Kafka 0.9",
        ),
        (
            {},
            {"bootstrap.servers": "", "metadata.broker.list": "b:9092"},
            "producer.properties: metadata.broker.list: is of clients before Kafka 0.9",
        ),
        ({"auto.offset.reset": "smallest"}, {}, "auto.offset.reset: 'smallest' is not allowed"),
        ({"metadata.max.age.ms": "5m"}, {}, "consumer.properties: metadata.max.age.ms: '5m' is not allowed"),
        ({"exclude.internal.topics": "false"}, {}, "line 3: exclude.internal.topics: the brokers' own"),
        ({"interceptor.classes": "a.B"}, {}, "line 3: interceptor.classes: records are copied unchanged"),
        ({}, {"compression.type": "lzma"}, "producer.properties, line 2: compression.type: 'lzma' is not allowed"),
        ({}, {"bootstrap.servers": "new"}, "producer.properties, line 1: bootstrap.servers: 'new' is not allowed"),
    ],
)
def test_what_is_wrong_is_named_as_it_was_written(
    load: Load, consumer: dict[str, str], producer: dict[str, str], says: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(consumer, producer)
    assert says in str(caught.value)
    assert "source." not in str(caught.value)


def test_secrets_that_stand_elsewhere(load: Load, tmp_path: Path) -> None:
    """Each file may declare config providers, as Kafka's clients let it."""
    (tmp_path / "secrets.properties").write_text("old=hunter1\nnew=hunter2\n")

    def side(provider: str, name: str) -> dict[str, str]:
        return {
            "config.providers": provider,
            f"config.providers.{provider}.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
            "security.protocol": "SSL",
            "ssl.truststore.password": f"${{{provider}:{tmp_path}/secrets.properties:{name}}}",
        }

    config = load(side("file", "old"), side("other", "new"))
    assert config.warnings == ()
    one = flow(config)
    assert not one.has_secrets
    assert {provider.name for provider in one.source.providers} == {"file", "other"}
    assert "hunter" not in config.model_dump_json()
