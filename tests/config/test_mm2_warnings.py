"""What is said about keys that do nothing, or not what their writer meant."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sparkmirror.config import MirrorConfig

Load = Callable[..., MirrorConfig]
FETCH_PLACE = "write us.consumer.fetch.max.bytes or us->eu.source.consumer.fetch.max.bytes"
CODEC_PLACE = "write eu.producer.compression.type or us->eu.producer.override.compression.type"
REQUEST_PLACE = "write eu.producer.max.request.size or us->eu.producer.override.max.request.size"


@pytest.mark.parametrize(
    ("key", "part"),
    [
        ("consumer.fetch.max.bytes", FETCH_PLACE),
        ("source.consumer.fetch.max.bytes", FETCH_PLACE),
        ("fetch.max.bytes", FETCH_PLACE),
        ("us.fetch.max.bytes", FETCH_PLACE),
        ("us->eu.fetch.max.bytes", FETCH_PLACE),
        ("eu.consumer.fetch.max.bytes", FETCH_PLACE),
        ("producer.max.request.size", REQUEST_PLACE),
        ("producer.override.max.request.size", REQUEST_PLACE),
        ("target.producer.max.request.size", REQUEST_PLACE),
        ("us->eu.producer.max.request.size", REQUEST_PLACE),
        ("us->eu.target.producer.max.request.size", REQUEST_PLACE),
        ("us.producer.max.request.size", REQUEST_PLACE),
        ("eu.tasks.max", "write tasks.max or us->eu.tasks.max"),
        ("us.admin.timeout.ms", "write admin.timeout.ms or us->eu.admin.timeout.ms"),
        ("session.timeout.ms", "write eu.session.timeout.ms"),
        ("us->eu.session.timeout.ms", "write eu.session.timeout.ms"),
        ("us.offset.flush.interval.ms", "write eu.offset.flush.interval.ms"),
        ("enabled", "write <source>-><target>.enabled = true"),
        ("consumer.poll.timeout.ms", "has no effect: pumps wait for records as consumer.fetch.max.wait.ms says"),
        ("metric.reporters", "has no effect: there is no JMX"),
        ("eu.producer.acks", "has no effect: a batch counts as written when all in-sync replicas have it"),
        ("us.request.timeout.ms", "has no effect: say for which client, with <cluster>.admin."),
        ("admin.request.timeout.ms", "write us.admin.request.timeout.ms or us->eu.source.admin.request.timeout.ms"),
        ("us.admin.fetch.max.bytes", "has no effect: that client has no such setting"),
        ("us->eu.source.admin.retries", "has no effect: a failed request is tried again until it succeeds"),
        ("us.consumer.group.id", "has no effect: copying needs no consumer group"),
        ("eu.producer.linger.ms", "has no effect: batches are copied as they are at the source"),
        ("us.metadata.max.age.ms", "has no effect: topics are looked up as refresh.topics.interval.seconds says"),
        ("us->eu.producer.compression.type", CODEC_PLACE),
        ("us.producer.compression.type", CODEC_PLACE),
        ("producer.compression.lz4.level", "write eu.producer.compression.lz4.level or us->eu.producer.override."),
        ("eu.sparkmirror.on.expired", "write sparkmirror.on.expired or us->eu.sparkmirror.on.expired"),
        ("sparkmirror.on.expire", "did you mean sparkmirror.on.expired?"),
        ("us->eu.sparkmirror.merge.tiny.batch", "did you mean us->eu.sparkmirror.merge.tiny.batches?"),
        ("us.config.providers", "declared once for the whole file: write it without a prefix"),
        ("us->eu.config.providers.x.class", "write it without a prefix"),
        ("config.providers.x.class", "x is not among config.providers"),
        ("config.providers.x.allowed.paths", "a provider's parameter is config.providers.x.param.allowed.paths or"),
        ("us.offset.storage.replication.factor", "or offset.storage.replication.factor"),
        ("us.emit.heartbeats.enabled", "write emit.heartbeats.enabled or us->eu.emit.heartbeats.enabled"),
        ("use.defaults.from", "write us->eu.use.defaults.from"),
        ("eu.config.storage.replication.factor", "so that no configuration is stored"),
        ("status.storage.partitions", "no connectors' states are stored"),
        ("transforms.x.type", "no transform is named by `transforms`"),
        ("dedicated.mode.enable.internal.rest", "agree through the target cluster, without REST"),
        ("key.converter.schemas.enable", "records are copied as bytes, without converters"),
        ("us->eu.topic.creation.groups", "topics are created as they are at the source"),
        ("eu.offset.flush.timeout.ms", "a write of Connect's offsets may take 10 s"),
        ("us->eu.tasks.max.enforced", "did you mean us->eu.tasks.max.enforce?"),
        ("plugin.path", "Python ones are found on PYTHONPATH"),
        ("errors.retry.timeout", "parked with the reason and tried again"),
        ("listeners", "a dedicated mirror has no REST interface"),
        ("sasl.mechanism", "has no effect without SASL"),
        ("us.consumer.ssl.protocol", "has no effect without TLS"),
        ("topic.blacklist", "is not known; did you mean topics.exclude?"),
        ("us->eu.max.tasks", "is not known; did you mean us->eu.tasks.max?"),
        ("rest.port", "has no effect since Kafka 3.0: a worker's port is listeners = http://:8083"),
        ("us.internal.key.converter", "has no effect since Kafka 3.0: take it out"),
        ("topics.whitelist", "since Kafka 4.0, so all topics are copied unless topics chooses some; write topics"),
        ("use.incremental.alter.configs", "has no effect since Kafka 4.0"),
        ("offset-sync.topic.replication.factor", "did you mean offset-syncs.topic.replication.factor?"),
        ("heartbeat.topic.replication.factor", "did you mean heartbeats.topic.replication.factor?"),
        ("checkpoint.topic.replication.factor", "did you mean checkpoints.topic.replication.factor?"),
        ("us->eu.topic.exclude", "did you mean us->eu.topics.exclude?"),
        ("us.consumer.fetch.mim.bytes", "did you mean us.consumer.fetch.min.bytes?"),
        ("us.consumers.fetch.min.bytes", "did you mean us.consumer.fetch.min.bytes?"),
        ("uss->eu.enabled", "did you mean us->eu.enabled?"),
        ("asia.bootstrap.servers", "asia is no cluster, flow or client"),
        ("something", "is not known, and has no effect"),
    ],
)
def test_key_without_effect(load: Load, key: str, part: str) -> None:
    without = load()
    config = load(f"{key} = true")
    (warning,) = config.warnings
    assert f"mm2.properties: {key}: " in warning
    assert part in warning
    assert config.flows == without.flows


def test_places_of_several_flows(load: Load) -> None:
    (warning,) = load("eu->us.enabled = true\nconsumer.fetch.max.bytes = 1").warnings
    assert "write <source>.consumer.fetch.max.bytes or" in warning


def test_last_of_several_counts(load: Load) -> None:
    config = load("tasks.max = 2\ntasks.max = 3")
    assert config.flows[0].tasks_max == 3
    assert [text.split(": ", 1)[1] for text in config.warnings] == [
        "tasks.max: is set more than once; the last one counts"
    ]


def test_repeated_items(load: Load) -> None:
    """As Kafka 4.3.1 does: they are dropped with a warning, once for all flows."""
    config = load("topics = a, b, a\neu->us.enabled = true")
    assert {flow.topics for flow in config.flows} == {("a", "b")}
    (warning,) = config.warnings
    assert warning.endswith("topics: names a more than once")


def test_comment_behind_a_value(load: Load) -> None:
    (warning,) = load("topics = orders # all of them").warnings
    assert warning.endswith("topics: holds a #, which does not start a comment after a value")


@pytest.mark.parametrize("arrow", [" -> ", "-> ", " ->"])
def test_spaces_around_the_arrow(load: Load, arrow: str) -> None:
    config = load(f"us{arrow}eu.tasks.max = 4\nus{arrow}eu.topics = a\\\\.b")
    assert config.flows[0].tasks_max == 4
    assert config.flows[0].topics == (r"a\.b",)
    first, second = config.warnings
    assert first.endswith("ignores it; write us->eu.tasks.max")
    assert second.endswith("ignores it; write us->eu.topics")
