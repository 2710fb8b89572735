"""Topics' properties: those that a copy is created with, and how they are kept (`mm2.md` 3.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest
from flow_rules import cluster_config, rules
from lab import KafkaCluster
from waiting import assert_soon

from sparkmirror.config import FlowConfig
from sparkmirror.config.model import DEFAULT_CONFIG_EXCLUDE
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.config_changes import ConfigChange, alter_topic_configs
from sparkmirror.kafka.cluster.new_topics import NewTopicSpec
from sparkmirror.kafka.cluster.topic_configs import ConfigEntry
from sparkmirror.kafka.wire.rpc import UnsupportedBroker
from sparkmirror.mirror.sync.topic_config_duty import TopicConfigSync
from sparkmirror.mirror.sync.topic_properties import config_change, creation_configs
from sparkmirror.mirror.sync.topic_rules import TopicRules
from sparkmirror.mirror.sync.topics import MirroredTopic, TopicSync
from sparkmirror.policy import IdentityReplicationPolicy

EXCLUDED = (*DEFAULT_CONFIG_EXCLUDE, r"delete\.retention\..*")
TOPIC, DEFAULT = "DYNAMIC_TOPIC_CONFIG", "DEFAULT_CONFIG"


def entry(name: str, source: str = TOPIC, value: str | None = "v", **flags: bool) -> ConfigEntry:
    return ConfigEntry(
        name=name,
        value=value,
        source=source,
        read_only=flags.get("read_only", False),
        sensitive=flags.get("sensitive", False),
    )


@pytest.mark.parametrize(
    ("source", "copied"),
    [
        ("DYNAMIC_TOPIC_CONFIG", True),
        ("DYNAMIC_BROKER_CONFIG", True),
        ("DYNAMIC_DEFAULT_BROKER_CONFIG", True),
        ("STATIC_BROKER_CONFIG", False),
        ("DEFAULT_CONFIG", False),
    ],
)
def test_only_what_someone_set_is_copied(source: str, copied: bool) -> None:
    assert creation_configs([entry("retention.ms", source)], rules()) == ({"retention.ms": "v"} if copied else {})


@pytest.mark.parametrize(("source", "copied"), [("DEFAULT_CONFIG", True), ("STATIC_BROKER_CONFIG", False)])
def test_defaults_of_the_source_if_they_are_asked_for(source: str, copied: bool) -> None:
    found = creation_configs([entry("retention.ms", source)], rules(defaults_from="source"))
    assert found == ({"retention.ms": "v"} if copied else {})


def test_read_only_and_sensitive_properties_stay() -> None:
    assert creation_configs([entry("a", read_only=True), entry("b", sensitive=True)], rules()) == {}


@pytest.mark.parametrize("source", [TOPIC, DEFAULT])
def test_the_format_of_stored_records_never_travels(source: str) -> None:
    own = rules(properties=[], defaults_from="source")
    theirs = entry("message.format.version", source, "2.8-IV1")
    assert creation_configs([theirs], own) == {}
    assert config_change("t", [theirs], [], own) == (NOTHING, ())  # and no word about it
    assert change(theirs, entry("message.format.version", TOPIC, "3.0-IV1"), own) == NOTHING


@pytest.mark.parametrize("name", ["message.timestamp.type", "min.insync.replicas", "unclean.leader.election.enable"])
def test_default_exclude(name: str) -> None:
    assert creation_configs([entry(name), entry(f"{name}.x")], rules()) == {f"{name}.x": "v"}


def test_exclude_matches_whole_names() -> None:
    entries = [entry("retention.ms"), entry("delete.retention.ms"), entry("retention.bytes")]
    assert creation_configs(entries, rules(properties=[r"retention\..*"])) == {"delete.retention.ms": "v"}
    assert creation_configs(entries, rules(properties=[])) == {e.name: "v" for e in entries}


def change(source: ConfigEntry, target: ConfigEntry | None, own: TopicRules | None = None) -> ConfigChange:
    made, unknown = config_change("t", [source], [target] if target else [], own or rules())
    assert unknown == ()
    return made


SET = ConfigChange("t", {"retention.ms": "v"})
REMOVED = ConfigChange("t", {}, ("retention.ms",))
NOTHING = ConfigChange("t")


@pytest.mark.parametrize(
    ("source", "target", "target_value", "expected"),
    [
        (TOPIC, TOPIC, "other", SET),
        (TOPIC, TOPIC, "v", NOTHING),
        (TOPIC, DEFAULT, "v", SET),  # the target's default may change one day
        (TOPIC, "DYNAMIC_DEFAULT_BROKER_CONFIG", "v", SET),
        ("DYNAMIC_DEFAULT_BROKER_CONFIG", DEFAULT, "other", SET),
        (DEFAULT, TOPIC, "other", REMOVED),
        (DEFAULT, TOPIC, "v", REMOVED),
        (DEFAULT, DEFAULT, "other", NOTHING),
        (DEFAULT, "STATIC_BROKER_CONFIG", "other", NOTHING),
        ("STATIC_BROKER_CONFIG", TOPIC, "other", NOTHING),
    ],
)
def test_what_is_changed(source: str, target: str, target_value: str, expected: ConfigChange) -> None:
    assert change(entry("retention.ms", source), entry("retention.ms", target, target_value)) == expected


@pytest.mark.parametrize("target", [TOPIC, DEFAULT])
def test_a_default_of_the_source_is_set_if_it_is_asked_for(target: str) -> None:
    own = rules(defaults_from="source")
    assert change(entry("retention.ms", DEFAULT), entry("retention.ms", target, "other"), own) == SET


@pytest.mark.parametrize("source", [TOPIC, DEFAULT])
def test_an_excluded_property_is_not_touched(source: str) -> None:
    own = rules(properties=[r"retention\..*"])
    assert change(entry("retention.ms", source), entry("retention.ms", TOPIC, "other"), own) == NOTHING


def test_a_property_that_the_target_does_not_know() -> None:
    source = [entry("new.one"), entry("retention.ms"), entry("new.default", DEFAULT)]
    target = [entry("retention.ms", TOPIC, "other")]
    assert config_change("t", source, target, rules()) == (SET, ("new.one",))


# --- two real clusters ------------------------------------------------------------------------------


class Pair:
    """A topic at the source and its copy at the target, each with properties of its own, and the duty."""

    def __init__(self, flow: FlowConfig, source: ClusterAdmin, target: ClusterAdmin, name: str) -> None:
        self.flow, self.source, self.target, self.name, self.remote = flow, source, target, name, f"us.{name}"
        self.duty: TopicConfigSync | None = None

    def create(self, source: Mapping[str, str], target: Mapping[str, str]) -> None:
        assert self.source.create_topics([NewTopicSpec(self.name, 1, 1, source)]) == {self.name: None}
        assert self.target.create_topics([NewTopicSpec(self.remote, 1, 1, target)]) == {self.remote: None}
        assert_soon(lambda: set(self.source.topic_configs([self.name])), {self.name})
        assert_soon(lambda: set(self.target.topic_configs([self.remote])), {self.remote})

    def sync(self, own: TopicRules) -> None:
        here, there = self.source.topics([self.name]), self.target.topics([self.remote])
        found = TopicSync(
            mirrored=(MirroredTopic(here[self.name], there[self.remote]),), created=(), grown=(), refused={}
        )
        self.duty = self.duty or TopicConfigSync(self.flow, own, self.source, self.target, lambda: found)
        self.duty.run()

    def remove_at_source(self, name: str) -> None:
        client = ClusterClient(self.flow.source, "test")
        assert alter_topic_configs(client, [ConfigChange(self.name, {}, (name,))]) == {self.name: None}
        client.close()
        assert_soon(lambda: name in _set(self.source, self.name), False)

    def set_at_target(self) -> dict[str, str | None]:
        return _set(self.target, self.remote)

    def close(self) -> None:
        if self.duty is not None:
            self.duty.close()


def _set(admin: ClusterAdmin, topic: str) -> dict[str, str | None]:
    return {one.name: one.value for one in admin.topic_configs([topic])[topic] if one.source == TOPIC}


@pytest.fixture
def pair(source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str) -> Iterator[Pair]:
    flow = FlowConfig(source=cluster_config("us", source_cluster), target=cluster_config("eu", target_cluster))
    with (
        ClusterAdmin.connect(flow.source, "test", 20) as source,
        ClusterAdmin.connect(flow.target, "test", 20) as target,
    ):
        made = Pair(flow, source, target, topic_name)
        yield made
        made.close()


@pytest.mark.broker
def test_sync_topic_configs(pair: Pair, lines: Callable[[], list[str]]) -> None:
    own = rules(properties=EXCLUDED)
    pair.create(
        {"delete.retention.ms": "1000", "retention.bytes": "1000"},
        {"delete.retention.ms": "2000", "retention.bytes": "2000"},
    )
    pair.sync(own)
    assert_soon(pair.set_at_target, {"delete.retention.ms": "2000", "retention.bytes": "1000"})
    assert lines() == [f"topic configured: {pair.remote} on cluster eu: retention.bytes=1000"]
    pair.sync(own)
    assert lines() == []  # nothing differs, nothing is sent


@pytest.mark.broker
def test_replicate_target_default(pair: Pair, lines: Callable[[], list[str]]) -> None:
    own = rules(properties=EXCLUDED)
    pair.create({"retention.bytes": "1000"}, {"delete.retention.ms": "2000"})
    pair.sync(own)
    assert_soon(pair.set_at_target, {"retention.bytes": "1000", "delete.retention.ms": "2000"})
    pair.remove_at_source("retention.bytes")
    pair.sync(own)
    assert_soon(pair.set_at_target, {"delete.retention.ms": "2000"})
    assert lines()[-1] == f"topic configured: {pair.remote} on cluster eu: retention.bytes back to its default"


@pytest.mark.broker
def test_replicate_source_default(pair: Pair) -> None:
    own = rules(properties=EXCLUDED, defaults_from="source")
    pair.create({}, {"retention.bytes": "2000", "delete.retention.ms": "2000"})
    pair.sync(own)
    assert_soon(lambda: pair.set_at_target().get("retention.bytes"), "-1")
    configured = pair.set_at_target()
    assert (configured["delete.retention.ms"], configured["cleanup.policy"]) == ("2000", "delete")


@pytest.mark.broker
def test_a_topic_of_the_same_name(pair: Pair) -> None:
    pair.remote = pair.name
    pair.create({"retention.ms": "1234"}, {})
    pair.sync(rules(policy=IdentityReplicationPolicy("us")))
    assert_soon(pair.set_at_target, {"retention.ms": "1234"})


@pytest.mark.broker
def test_what_can_not_be_synced_is_named(
    pair: Pair, lines: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = rules()
    pair.create({"retention.ms": "1"}, {})
    read = pair.source.topic_configs
    monkeypatch.setattr(pair.source, "topic_configs", lambda _: {})
    pair.sync(own)
    assert lines() == [
        f"configuration not synced: topic {pair.name} on cluster us: it can't be read: the topic is gone, "
        "or sparkmirror's principal needs DESCRIBE_CONFIGS on it"
    ]
    monkeypatch.setattr(pair.source, "topic_configs", lambda _: {pair.name: [entry("retention.ms", value="-7")]})
    pair.sync(own)
    (line,) = lines()
    assert line.startswith(f"configuration not synced: topic {pair.remote} on cluster eu: Invalid value -7 for conf")
    assert line.endswith("exclude the property from the copied ones: config.properties.exclude = +NAME")
    monkeypatch.setattr(pair.source, "topic_configs", lambda _: {pair.name: [entry("of.a.newer.kafka")]})
    for expected in (
        [
            "configuration not synced: the brokers of cluster eu don't know these properties: "
            f"of.a.newer.kafka ({pair.remote})"
        ],
        [],  # it was said
    ):
        pair.sync(own)
        assert lines() == expected
    monkeypatch.setattr(pair.source, "topic_configs", read)
    pair.sync(own)
    assert_soon(pair.set_at_target, {"retention.ms": "1"})


@pytest.mark.broker
def test_an_old_target_is_named_once(
    pair: Pair, lines: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise UnsupportedBroker("the broker speaks no IncrementalAlterConfigs")

    monkeypatch.setattr("sparkmirror.mirror.sync.topic_config_duty.alter_topic_configs", refuse)
    pair.create({"retention.ms": "1"}, {})
    for expected in (1, 0):
        pair.sync(rules())
        assert len(lines()) == expected
