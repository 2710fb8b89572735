"""A flow's policy and filters, built from its configuration, with classes of the user's own."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from sparkmirror.config import ClusterConfig, FlowConfig, load_mm2_properties
from sparkmirror.config.model import DEFAULT_CONFIG_EXCLUDE
from sparkmirror.errors import ConfigError, SparkMirrorError
from sparkmirror.mirror.sync.topic_rules import NameCheck, group_filter, topic_rules
from sparkmirror.policy import DefaultReplicationPolicy, IdentityReplicationPolicy
from sparkmirror.policy.replication import AWS_SAME_NAME, STRIMZI_IDENTITY

FLOW = FlowConfig(
    source=ClusterConfig(alias="us", bootstrap_servers=("us:9092",)),
    target=ClusterConfig(alias="eu", bootstrap_servers=("eu:9092",)),
)
Write = Callable[[str], str]


def flow(**fields: object) -> FlowConfig:
    return FLOW.model_copy(update=fields)


def test_what_the_defaults_are() -> None:
    own = topic_rules(FLOW)
    names = ["orders", "us.orders", "eu.orders", "heartbeats", "x.replica", "mm2-offsets.x.internal", "__secret", ".x"]
    assert [name for name in names if own.wanted(name)] == ["orders", "us.orders", "heartbeats"]
    assert own.remote_name("orders") == "us.orders"
    assert own.keeps("retention.ms")
    assert not own.keeps("min.insync.replicas")
    assert not own.keeps_default("retention.ms")
    assert own.replication_factor == 2
    groups = group_filter(FLOW)
    assert [
        name for name in ("a", "console-consumer-1", "connect-a", "__a") if groups.should_replicate_group(name)
    ] == ["a"]


def test_settings_reach_the_rules() -> None:
    sync = FLOW.topic_sync.model_copy(
        update={"config_properties_exclude": (r"retention\..*",), "use_defaults_from": "source"}
    )
    own = topic_rules(
        flow(
            topics=("a.*",),
            topics_exclude=("ax",),
            heartbeats_replication_enabled=False,
            replication_policy_separator="_",
            topic_sync=sync,
        )
    )
    assert [name for name in ("a", "ax", "b", "heartbeats", "eu_a") if own.wanted(name)] == ["a"]
    assert own.remote_name("a") == "us_a"
    assert not own.keeps("retention.ms")
    assert own.keeps("min.insync.replicas")
    assert own.keeps_default("cleanup.policy")


@pytest.mark.parametrize(
    ("policy_class", "kind"),
    [(STRIMZI_IDENTITY, IdentityReplicationPolicy), (AWS_SAME_NAME, DefaultReplicationPolicy)],
)
def test_policies_that_keep_names(policy_class: str, kind: type) -> None:
    own = topic_rules(flow(replication_policy_class=policy_class))
    assert isinstance(own.policy, kind)
    assert own.remote_name("orders") == "orders"
    assert own.remote_name("heartbeats") == ("us.heartbeats" if policy_class == STRIMZI_IDENTITY else "heartbeats")
    assert own.policy.topic_source("orders") == "us"


def test_a_filter_of_the_user_sees_the_whole_list_of_excluded_properties(write: Write, tmp_path: Path) -> None:
    module = write(
        """
from sparkmirror.policy import DefaultConfigPropertyFilter

class Mine(DefaultConfigPropertyFilter):
    def configure(self, settings):
        super().configure(settings)
        self.given = settings["config.properties.exclude"]
"""
    )
    file = tmp_path / "mm2.properties"
    file.write_text(
        "clusters = us, eu\nus.bootstrap.servers = us:1\neu.bootstrap.servers = eu:1\nus->eu.enabled = true\n"
        f"config.property.filter.class = {module}:Mine\nconfig.properties.exclude = +my.property\n"
    )
    (read,) = load_mm2_properties(str(file)).flows
    own = topic_rules(read)
    assert getattr(own.properties, "given", "") == ",".join([*DEFAULT_CONFIG_EXCLUDE, "my.property"])
    assert [name for name in ("min.insync.replicas", "my.property", "retention.ms") if own.keeps(name)] == [
        "retention.ms"
    ]


def test_classes_of_the_user_get_the_effective_settings(write: Write) -> None:
    module = write(
        """
from sparkmirror.policy import DefaultGroupFilter, DefaultReplicationPolicy, DefaultTopicFilter

class Seen:
    settings = None

class Topics(DefaultTopicFilter):
    def configure(self, settings):
        super().configure(settings)
        Seen.settings = settings

class Policy(DefaultReplicationPolicy):
    pass

class Groups(DefaultGroupFilter):
    pass
"""
    )
    group = FLOW.group.model_copy(update={"group_filter_class": f"{module}:Groups"})
    own_flow = flow(
        topic_filter_class=f"{module}:Topics",
        replication_policy_class=f"{module}:Policy",
        replication_policy_separator="__",
        group=group,
        originals={"my.key": "7", "source.cluster.alias": "wrong"},
    )
    own = topic_rules(own_flow)
    seen: Mapping[str, str] = sys.modules[module].Seen.settings
    assert (seen["my.key"], seen["source.cluster.alias"], seen["target.cluster.alias"]) == ("7", "us", "eu")
    assert own.remote_name("t") == "us__t"
    assert [name for name in ("t", "x.replica") if own.wanted(name)] == ["t"]
    groups = group_filter(own_flow)
    assert [name for name in ("g", "connect-x") if groups.should_replicate_group(name)] == ["g"]


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"topics": ("*",)}, "topics, topics.exclude, topic.filter.class"),
        ({"topic_filter_class": "no_such_module:A"}, "topics, topics.exclude, topic.filter.class"),
        ({"replication_policy_class": "com.example.Mine"}, "replication.policy.class"),
    ],
)
def test_what_can_not_be_built_names_flow_and_key(fields: Mapping[str, object], key: str) -> None:
    with pytest.raises(ConfigError, match=r"^flow us->eu: ") as caught:
        topic_rules(flow(**fields))
    assert caught.value.key == key
    assert "\n" not in str(caught.value)


def test_what_they_raise_is_one_line_that_names_the_topic(write: Write) -> None:
    module = write(
        """
from sparkmirror.policy import DefaultReplicationPolicy

class Topics:
    def should_replicate_topic(self, topic):
        return {"good": True}[topic]

class Policy(DefaultReplicationPolicy):
    def format_remote_topic(self, source_alias, topic):
        return None
"""
    )
    own = topic_rules(flow(topic_filter_class=f"{module}:Topics", replication_policy_class=f"{module}:Policy"))
    assert own.wanted("good")
    with pytest.raises(SparkMirrorError, match=r"Topics can't tell whether topic bad is replicated: KeyError: 'bad'$"):
        own.wanted("bad")
    with pytest.raises(SparkMirrorError, match=r"remote name of topic good: the policy says None, which is no name$"):
        own.remote_name("good")


def test_heartbeats_are_not_mixed_with_the_targets_own() -> None:
    rules = topic_rules(flow(replication_policy_class=AWS_SAME_NAME))
    assert rules.remote_name("heartbeats") == "heartbeats"
    assert not rules.wanted("heartbeats")
    assert rules.wanted("orders")


class NothingPasses(DefaultReplicationPolicy):
    """A policy by which a topic fails all checks of names."""

    def is_internal_topic(self, topic: str) -> bool:
        return True

    def topic_source(self, topic: str) -> str | None:
        return "eu"

    def is_heartbeats_topic(self, topic: str) -> bool:
        return True

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return "h" * 250

    def heartbeats_topic(self) -> str:
        return "h" * 250


def test_checks_of_names_come_in_their_order() -> None:
    own = topic_rules(flow(topics=(), heartbeats_replication_enabled=False))
    assert own.failed("orders") == [NameCheck.FILTER]
    nothing = dataclasses.replace(own, policy=NothingPasses())
    assert nothing.failed("orders") == list(NameCheck)
    assert not nothing.wanted("orders")
    listed = topic_rules(flow(topics=("x+",)))
    assert (listed.failed("x" * 300), listed.wanted("x" * 300)) == ([NameCheck.LEGAL], True)


@pytest.mark.parametrize("separator", [".", ""])
@pytest.mark.parametrize("policy", [DefaultReplicationPolicy, IdentityReplicationPolicy])
def test_a_topic_holds_heartbeats_by_the_policy_and_by_no_other_end_of_its_name(
    policy: type[DefaultReplicationPolicy], separator: str
) -> None:
    own = dataclasses.replace(topic_rules(flow(topics=())), policy=policy(separator=separator))
    assert [own.is_heartbeats(name) for name in ("heartbeats", "device-heartbeats")] == [True, False]
    assert own.is_heartbeats("us.heartbeats") == bool(separator)
