"""What an `mm2.properties` file means: flows, defaults, lists and which key wins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.config import (
    IDENTITY_POLICY,
    ClusterConfig,
    FetchConfig,
    FlowConfig,
    LossPolicy,
    MirrorConfig,
    ProduceConfig,
    load_mm2_properties,
)
from sparkmirror.config.model import DEFAULT_CONFIG_EXCLUDE
from sparkmirror.config.setting import Setting
from sparkmirror.config.settings import ADMIN_SETTINGS, FETCH_SETTINGS, FLOW_SETTINGS, LOSS_SETTINGS, PRODUCE_SETTINGS
from sparkmirror.values import Integer, Names

Load = Callable[..., MirrorConfig]
THREE = """\
clusters = a, b, c
bootstrap.servers = anywhere:9092
a->b.enabled = true
b->a.enabled = true
c->a.enabled = TRUE
a->c.enabled = false
"""


def test_least_file_gives_defaults(load: Load) -> None:
    config = load()
    assert config.flows == (
        FlowConfig(
            source=ClusterConfig(alias="us", bootstrap_servers=("us1:9092",)),
            target=ClusterConfig(alias="eu", bootstrap_servers=("eu1:9092",)),
        ),
    )
    assert config.warnings == ()
    assert config.spark == {}
    assert config.path.endswith("mm2.properties")


def test_migration_example() -> None:
    path = str(Path(__file__).parent / "migration_example.properties")
    config = load_mm2_properties(path)
    (flow,) = config.flows
    assert flow.name == "source->target"
    assert flow.source.bootstrap_servers == ("apache-kafka-source:9092",)
    assert flow.target.bootstrap_servers == ("apache-kafka-target:9092",)
    assert (flow.tasks_max, flow.replication_factor, flow.topics) == (1, 1, (".*",))
    text = "\n".join(config.warnings)
    assert "ignores it; write source->target.enabled" in text
    for name in ("offset-syncs", "heartbeats", "checkpoints"):
        assert f"did you mean {name}.topic.replication.factor?" in text
    assert all(line.startswith(path + ": ") for line in config.warnings)
    assert "write target.offset.storage.replication.factor or offset.storage.replication.factor" in text
    assert len(config.warnings) == 7


@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        ((), ["a->b", "b->a", "c->a"]),
        (("a",), ["b->a", "c->a"]),
        (("b",), ["a->b"]),
        (("b", "c"), ["a->b"]),
        (("b", "a"), ["a->b", "b->a", "c->a"]),
    ],
)
def test_flows_into_chosen_targets(load: Load, chosen: tuple[str, ...], names: list[str]) -> None:
    assert [flow.name for flow in load(start=THREE, clusters=chosen).flows] == names


def test_other_clusters_keys_do_not_matter(load: Load) -> None:
    lines = "c.security.protocol = SSL\nc->a.transforms = x\nc.consumer.fetch.mim.bytes = 1"
    assert load(lines, start=THREE, clusters=("b",)).warnings == ()


CONNECTOR = ["us->eu.{}", "{}"]
LEVELS = ("gzip", "lz4", "zstd")
"""Codecs with levels."""

PLACES: dict[str, list[str]] = {
    "tasks.max": CONNECTOR,
    "replication.factor": CONNECTOR,
    "offset.lag.max": CONNECTOR,
    "admin.timeout.ms": CONNECTOR,
    "refresh.topics.interval.seconds": CONNECTOR,
    "sparkmirror.objective.seconds": CONNECTOR,
    "session.timeout.ms": ["eu.{}"],
    "fetch.min.bytes": ["us->eu.source.consumer.{}", "us.consumer.{}", "us->eu.consumer.{}"],
    "fetch.max.bytes": ["us->eu.source.consumer.{}", "us.consumer.{}", "us->eu.consumer.{}"],
    "fetch.max.wait.ms": ["us->eu.source.consumer.{}", "us.consumer.{}", "us->eu.consumer.{}"],
    "max.partition.fetch.bytes": ["us->eu.source.consumer.{}", "us.consumer.{}", "us->eu.consumer.{}"],
    "receive.buffer.bytes": ["us->eu.source.consumer.{}", "us.consumer.{}", "us->eu.consumer.{}"],
    "max.request.size": ["us->eu.producer.override.{}", "eu.producer.{}"],
    "max.in.flight.requests.per.connection": ["us->eu.producer.override.{}", "eu.producer.{}"],
    "send.buffer.bytes": ["us->eu.producer.override.{}", "eu.producer.{}"],
    **{f"compression.{codec}.level": ["us->eu.producer.override.{}", "eu.producer.{}"] for codec in LEVELS},
}
REQUEST_TIMEOUT = {
    ClusterConfig: ["us->eu.source.admin.{}", "us.admin.{}", "us->eu.admin.{}"],
    FetchConfig: ["us->eu.source.consumer.{}", "us.consumer.{}", "us->eu.consumer.{}"],
    ProduceConfig: ["us->eu.producer.override.{}", "eu.producer.{}"],
}
ALL_SETTINGS = (*ADMIN_SETTINGS, *FLOW_SETTINGS, *FETCH_SETTINGS, *PRODUCE_SETTINGS, *LOSS_SETTINGS)
NUMBERS = [setting for setting in ALL_SETTINGS if isinstance(setting.kind, Integer)]


def value_of(config: MirrorConfig, setting: Setting) -> object:
    (flow,) = config.flows
    parts = {ClusterConfig: flow.source, FlowConfig: flow, FetchConfig: flow.fetch, ProduceConfig: flow.produce}
    return next(getattr(part, setting.field) for model, part in parts.items() if model is setting.model)


@pytest.mark.parametrize("setting", NUMBERS, ids=lambda setting: setting.name)
def test_stronger_place_wins(load: Load, setting: Setting) -> None:
    """The weakest key stands alone first; each stronger one then beats those before."""
    assert setting.kind.parse(str(setting.default)) == setting.default
    lines: list[str] = []
    places = PLACES.get(setting.name) or next(some for model, some in REQUEST_TIMEOUT.items() if model is setting.model)
    for number, place in enumerate(reversed(places), start=1):
        lines.insert(0, f"{place.format(setting.name)} = {number}")
        codec = [codec for codec in LEVELS if codec in setting.name]
        config = load("\n".join((*lines, *(f"eu.producer.compression.type = {one}" for one in codec))))
        assert value_of(config, setting) == number
        assert config.warnings == (), "a weaker key is no mistake"


@pytest.mark.parametrize("setting", ALL_SETTINGS, ids=lambda setting: setting.name)
def test_each_setting_is_declared_as_the_model_has_it(setting: Setting) -> None:
    assert setting.model is not None
    assert setting.field in setting.model.model_fields
    assert setting.doc.endswith(".")


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("topics = orders, payments.*", "topics", ("orders", "payments.*")),
        ("topics =", "topics", ()),
        ("topics.exclude = \tx\t,y ", "topics_exclude", ("x", "y")),
        ("topics.exclude =", "topics_exclude", ()),
        (r"topics = a\\.b", "topics", (r"a\.b",)),
        (f"replication.policy.class = {IDENTITY_POLICY}", "replication_policy_class", IDENTITY_POLICY),
        *(
            (f"replication.policy.class = {name}", "replication_policy_class", name)
            for name in (
                "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy",
                "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy",
                "my.module:Policy",
            )
        ),
        ("us->eu.topic.filter.class = filters:Mine", "topic_filter_class", "filters:Mine"),
        ("replication.policy.separator = __", "replication_policy_separator", "__"),
        ("replication.policy.separator =", "replication_policy_separator", ""),
        (
            "replication.policy.internal.topic.separator.enabled = false",
            "internal_topic_separator_enabled",
            False,
        ),
        ("refresh.topics.enabled = False ", "refresh_topics_enabled", False),
        ("heartbeats.replication.enabled = false", "heartbeats_replication_enabled", False),
        ("replication.factor = -1", "replication_factor", -1),
        ("eu.session.timeout.ms = 6000", "group_session_timeout_ms", 6000),
        ("tasks.max = +4 ", "tasks_max", 4),
        ("sparkmirror.merge.tiny.batches = false", "merge_tiny_batches", False),
        ("us->eu.sparkmirror.merge.tiny.batches = FALSE", "merge_tiny_batches", False),
    ],
)
def test_flow_values(load: Load, line: str, field: str, value: object) -> None:
    (flow,) = load(line).flows
    assert getattr(flow, field) == value


def test_consumer_words(load: Load) -> None:
    lines = "\n".join(
        [
            "us.consumer.auto.offset.reset = latest",
            "us.consumer.isolation.level = read_committed",
            "us.consumer.client.rack = rack 1",
            "us.consumer.receive.buffer.bytes = -1",
        ]
    )
    fetch = load(lines).flows[0].fetch
    assert fetch == FetchConfig(
        auto_offset_reset="latest",
        isolation_level="read_committed",
        client_rack="rack 1",
        receive_buffer_bytes=-1,
    )


@pytest.mark.parametrize("place", ["", "us->eu."])
def test_what_to_do_about_losses(load: Load, place: str) -> None:
    """The other value of each is the default."""
    lines = [f"{place}sparkmirror.on.{what}" for what in ("expired = halt", "truncated = continue", "recreated = halt")]
    assert load().flows[0].loss == LossPolicy(expired="continue", truncated="halt", recreated="restart")
    config = load("\n".join(lines))
    assert config.flows[0].loss == LossPolicy(expired="halt", truncated="continue", recreated="halt")
    assert config.warnings == ()


def test_a_flows_own_policy_beats_the_files(load: Load) -> None:
    config = load("sparkmirror.on.expired = halt\nus->eu.sparkmirror.on.expired = continue")
    assert config.flows[0].loss.expired == "continue"


@pytest.mark.parametrize("key", ["eu.producer.compression.type", "us->eu.producer.override.compression.type"])
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_codec_of_the_target(load: Load, key: str, codec: str) -> None:
    config = load(f"{key} = {codec}")
    assert config.flows[0].produce.compression_type == codec
    assert config.warnings == ()


@pytest.mark.parametrize("place", ["eu.producer.", "us->eu.producer.override."])
@pytest.mark.parametrize(("codec", "level"), [("gzip", 9), ("gzip", -1), ("lz4", 17), ("zstd", -131_072), ("zstd", 22)])
def test_level_of_the_codec(load: Load, place: str, codec: str, level: int) -> None:
    config = load(f"{place}compression.type = {codec}\n{place}compression.{codec}.level = {level}")
    assert config.flows[0].produce.compression_level == level
    assert config.warnings == ()


@pytest.mark.parametrize(("codec", "level"), [("none", None), ("gzip", -1), ("snappy", None), ("lz4", 9), ("zstd", 3)])
def test_levels_of_other_codecs_do_not_count(load: Load, codec: str, level: int | None) -> None:
    others = [f"eu.producer.compression.{other}.level = 1" for other in LEVELS if other != codec]
    config = load("\n".join((f"eu.producer.compression.type = {codec}", *others)))
    assert config.flows[0].produce.compression_level == level
    assert [warning.partition("level: ")[2].partition(" = ")[0] for warning in config.warnings] == [
        "has no effect without compression.type"
    ] * len(others)


def test_an_alias_may_start_as_our_own_keys_do(load: Load) -> None:
    start = (
        "clusters = a, sparkmirror\na.bootstrap.servers = a:1\nsparkmirror.bootstrap.servers = b:1\n"
        "a->sparkmirror.enabled = true\nsparkmirror.on.expired = halt"
    )
    config = load(start=start)
    assert config.flows[0].loss.expired == "halt"
    assert config.warnings == ()


def test_brokers(load: Load) -> None:
    flow = load("us.bootstrap.servers = us1:9092 , [fe80::1%eth0]:9093,10.0.0.1:1").flows[0]
    assert flow.source.bootstrap_servers == ("us1:9092", "[fe80::1%eth0]:9093", "10.0.0.1:1")


def test_brokers_for_all_clusters(load: Load) -> None:
    """A top-level client key fills in where a cluster has none (`mm2.md` section 1.6, clusterProps)."""
    flow = load(start=THREE, lines="a.bootstrap.servers = a:1", clusters=("b",)).flows[0]
    assert (flow.source.bootstrap_servers, flow.target.bootstrap_servers) == (("a:1",), ("anywhere:9092",))


def test_overrides_replace_keys(load: Load) -> None:
    config = load("tasks.max = 2\nus->eu.topics = a", overrides={"tasks.max": "3", "topics": "b"})
    assert config.flows[0].tasks_max == 3
    assert config.flows[0].topics == ("a",), "still the flow's own key wins"
    flows = load(start=THREE, overrides={"clusters": "a, b"}).flows
    assert [flow.name for flow in flows] == ["a->b", "b->a"]


def test_spark_keys(load: Load) -> None:
    config = load("spark.master = local[4]\nspark.ui.enabled=true")
    assert config.spark == {"spark.master": "local[4]", "spark.ui.enabled": "true"}
    assert config.warnings == ()


def test_alias_that_starts_another(load: Load) -> None:
    start = (
        "clusters = a, a.b\na.bootstrap.servers = a:1\na.b.bootstrap.servers = b:1\n"
        "a->a.b.enabled = true\na.b.producer.max.request.size = 7"
    )
    config = load(start=start)
    assert config.flows[0].name == "a->a.b"
    assert config.flows[0].produce.max_request_size == 7
    assert config.warnings == ()


@given(st.lists(st.text("ab.*", min_size=1), min_size=1), st.sampled_from([",", " , ", "\t,"]))
def test_lists_keep_their_items(items: list[str], comma: str) -> None:
    assert Names().parse(f" {comma.join(items)} ") == tuple(items)


@pytest.mark.parametrize(
    ("text", "excluded"),
    [
        ("+my.property, +other.*", (*DEFAULT_CONFIG_EXCLUDE, "my.property", "other.*")),
        ("+ my.property", (*DEFAULT_CONFIG_EXCLUDE, "my.property")),
        ("+min.insync.replicas", DEFAULT_CONFIG_EXCLUDE),
        ("my.property, other.+", ("my.property", "other.+")),
        ("", ()),
    ],
)
def test_properties_that_are_excluded(load: Load, text: str, excluded: tuple[str, ...]) -> None:
    config = load(f"config.properties.exclude = {text}")
    assert config.flows[0].topic_sync.config_properties_exclude == excluded
    assert config.warnings == ()


def test_additions_for_one_flow_count_instead_of_those_for_all(load: Load) -> None:
    """What a stronger key adds is added to the default list, not to what the weaker one says."""
    (flow,) = load("config.properties.exclude = a\nus->eu.config.properties.exclude = +b").flows
    assert flow.topic_sync.config_properties_exclude == (*DEFAULT_CONFIG_EXCLUDE, "b")
