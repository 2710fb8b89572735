"""Policies and filters that users write in Python, and the Java classes that are known by their names."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.policy.replicated import replicated

from sparkmirror.policy import (
    DefaultReplicationPolicy,
    DefaultTopicFilter,
    GroupFilter,
    ReplicationPolicy,
    group_filter_for,
    is_cycle,
    policy_for,
    property_filter_for,
    topic_filter_for,
)
from sparkmirror.policy.group_filter import DEFAULT as DEFAULT_GROUPS
from sparkmirror.policy.property_filter import DEFAULT as DEFAULT_PROPERTIES
from sparkmirror.policy.replication import AWS_SAME_NAME, IDENTITY, STRIMZI_IDENTITY
from sparkmirror.policy.topic_filter import DEFAULT as DEFAULT_TOPICS

Write = Callable[[str], str]

INHERITS = """
from sparkmirror.policy import DefaultReplicationPolicy

class Mine(DefaultReplicationPolicy):
    def configure(self, settings): self.settings = settings
"""


def policy(named: str, originals: Mapping[str, str] | None = None, *, separator: str = ".") -> ReplicationPolicy:
    return policy_for(named, source_alias="us", separator=separator, originals=originals)


def test_a_policy_that_inherits(write: Write) -> None:
    module = write(
        """
from sparkmirror.policy import DefaultReplicationPolicy

class Suffixed(DefaultReplicationPolicy):
    def configure(self, settings):
        super().configure(settings)
        self.alias = settings["source.cluster.alias"]

    def format_remote_topic(self, source_alias, topic):
        return f"{topic}@{source_alias}"

    def topic_source(self, topic):
        return topic.rpartition("@")[2] if "@" in topic else None

    def upstream_topic(self, topic):
        return topic.rpartition("@")[0] or None
"""
    )
    own = policy(f"{module}:Suffixed", separator="_")
    assert own.format_remote_topic("us", "t") == "t@us"
    assert (own.topic_source("t@us"), own.upstream_topic("t@us"), own.original_topic("a@x@us")) == ("us", "t", "a")
    assert own.checkpoints_topic("us") == "us_checkpoints_internal"
    assert own.is_heartbeats_topic("heartbeats@us")
    assert is_cycle(own, "t@eu@us", "eu")
    assert not is_cycle(own, "t@us", "eu")


def test_filters(write: Write) -> None:
    module = write(
        """
class Short:
    def should_replicate_topic(self, topic):
        return len(topic) < 4

class Known:
    def configure(self, settings):
        self.groups = settings["my.groups"].split()

    def should_replicate_group(self, group):
        return group in self.groups

class Retention:
    def should_replicate_config_property(self, name):
        return name.startswith("retention.")

    def should_replicate_source_default(self, name):
        return name == "retention.ms"
"""
    )
    topics = topic_filter_for(f"{module}:Short", [".*"], [], {})
    assert [topics.should_replicate_topic(name) for name in ("abc", "abcd")] == [True, False]
    groups = group_filter_for(f"{module}:Known", [".*"], [], {"my.groups": "a b"})
    assert [groups.should_replicate_group(name) for name in ("a", "b", "c")] == [True, True, False]
    properties = property_filter_for(f"{module}:Retention", [], "target", {})
    assert properties.should_replicate_config_property("retention.bytes")
    assert not properties.should_replicate_config_property("cleanup.policy")
    assert properties.should_replicate_source_default("retention.ms")
    assert not properties.should_replicate_source_default("retention.bytes")


def test_filters_that_inherit_get_the_settings(write: Write) -> None:
    module = write(
        """
from sparkmirror.policy import DefaultConfigPropertyFilter, DefaultGroupFilter, DefaultTopicFilter

class Topics(DefaultTopicFilter):
    def should_replicate_topic(self, topic):
        return topic == "also" or super().should_replicate_topic(topic)

class Groups(DefaultGroupFilter):
    pass

class Properties(DefaultConfigPropertyFilter):
    pass
"""
    )
    settings = {
        "topics": "a.* , b",
        "topics.exclude": "ax",
        "groups": "g.*",
        "groups.exclude": "",
        "config.properties.exclude": r"retention\..*",
        "use.defaults.from": "source",
    }
    topics = topic_filter_for(f"{module}:Topics", [], [], settings)
    accepted = [name for name in ("a", "ab", "ax", "b", "c", "also") if topics.should_replicate_topic(name)]
    assert accepted == ["a", "ab", "b", "also"]
    groups = group_filter_for(f"{module}:Groups", [], [], settings)
    assert groups.should_replicate_group("g1")
    assert not groups.should_replicate_group("h")
    properties = property_filter_for(f"{module}:Properties", [], "target", settings)
    assert not properties.should_replicate_config_property("retention.ms")
    assert properties.should_replicate_config_property("cleanup.policy")
    assert properties.should_replicate_source_default("cleanup.policy")


@pytest.mark.parametrize(
    ("text", "named", "reason"),
    [
        ("", "com.example.Mine", r"com\.example\.Mine is not known: there are .*module:Class$"),
        ("", "no_such_module:Mine", r"^there is no module no_such_module in /.* or on PYTHONPATH$"),
        ("", "no_such_module.inner:Mine", r"^there is no module no_such_module in "),
        ("import no_such_dependency", "{}:Mine", r"can't be imported: ModuleNotFoundError: .*'no_such_dependency'$"),
        ("def broken(:", "{}:Mine", r"^module \w+ can't be imported: SyntaxError: "),
        ("raise KeyError(7)", "{}:Mine", r"^module \w+ can't be imported: KeyError: 7$"),
        ("Mine = 3", "{}:Mine", r"^/.*\.py has no class Mine$"),
        ("class Mine:\n    def __init__(self, x): pass", "{}:Mine", r"can't be built: TypeError: "),
        ("class Mine:\n    def configure(self, s): raise ValueError(s)", "{}:Mine", r"can't be built: ValueError: "),
        (
            f"{INHERITS}    def heartbeats_topic(self): raise ValueError(self.settings)",
            "{}:Mine",
            r":Mine can't tell the heartbeats topic: ValueError: ",
        ),
        (
            f"{INHERITS}    def heartbeats_topic(self): return None",
            "{}:Mine",
            r":Mine can't tell the heartbeats topic: it says None, which is no name$",
        ),
        ("class Mine: pass", "{}:Mine", r"has no method format_remote_topic or .*Default[A-Za-z]*$"),
    ],
)
def test_what_can_not_be_loaded_is_one_line(write: Write, text: str, named: str, reason: str) -> None:
    module = write(text)
    with pytest.raises(ValueError, match=reason) as caught:
        policy(named.format(module), {"ssl.key.password": "hunter2", "topics": "a"})
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_filter_without_its_method(write: Write) -> None:
    module = write("class Mine: pass")
    for build, method, parent in (
        (topic_filter_for, "should_replicate_topic", "DefaultTopicFilter"),
        (group_filter_for, "should_replicate_group", "DefaultGroupFilter"),
    ):
        with pytest.raises(ValueError, match=rf"has no method {method}: .*sparkmirror\.policy\.{parent}$"):
            build(f"{module}:Mine", [".*"], [], {})
    with pytest.raises(ValueError, match=r"should_replicate_config_property or should_replicate_source_default: "):
        property_filter_for(f"{module}:Mine", [], "target", {})


def test_the_current_directory_hides_nothing(write: Write, tmp_path: Path) -> None:
    write("")
    (tmp_path / "json.py").write_text("class Mine: pass")
    with pytest.raises(ValueError, match="has no class Mine"):
        policy("json:Mine")
    assert sys.path[-1] == str(tmp_path)


def test_default_filters_by_their_java_names() -> None:
    assert isinstance(topic_filter_for(DEFAULT_TOPICS, ["a"], [], {}), DefaultTopicFilter)
    properties = property_filter_for(DEFAULT_PROPERTIES, [r"x\..*"], "source", {})
    assert not properties.should_replicate_config_property("x.y")
    assert properties.should_replicate_source_default("z")
    assert not property_filter_for(DEFAULT_PROPERTIES, [], "target", {}).should_replicate_source_default("z")


@pytest.mark.parametrize(
    ("include", "exclude", "group", "accepted"),
    [
        ([".*"], ["console-consumer-.*", "connect-.*", "__.*"], "payments", True),
        ([".*"], ["console-consumer-.*", "connect-.*", "__.*"], "connect-sink", False),
        (["pay"], [], "payments", False),
        (["pay.*", "x"], ["payments"], "payments", False),
        ([], [], "payments", False),
    ],
)
def test_groups(include: list[str], exclude: list[str], group: str, accepted: bool) -> None:
    groups: GroupFilter = group_filter_for(DEFAULT_GROUPS, include, exclude, {})
    assert groups.should_replicate_group(group) is accepted


@pytest.mark.parametrize("topic", ["topic", "heartbeats", "B.heartbeats", "my-heartbeats", "eu.topic"])
def test_strimzi_identity_is_the_apache_one(topic: str) -> None:
    apache, strimzi = policy(IDENTITY), policy(STRIMZI_IDENTITY)
    assert type(strimzi) is type(apache)
    assert strimzi.format_remote_topic("us", topic) == apache.format_remote_topic("us", topic)


@pytest.mark.parametrize("topic", ["ExampleTopic", "heartbeats", "eu.topic", "us.checkpoints.internal"])
def test_the_same_names_of_the_aws_lab(topic: str) -> None:
    """All as they are, heartbeats too; each topic looks like a copy from the source, of nothing that is known."""
    own = policy(AWS_SAME_NAME)
    assert own.format_remote_topic("us", topic) == topic
    assert own.topic_source(topic) == "us"
    assert own.upstream_topic(topic) is None
    assert own.original_topic(topic) == topic
    assert own.is_heartbeats_topic(topic) is (topic == "heartbeats")
    assert not is_cycle(own, topic, "eu")
    assert is_cycle(own, topic, "us")
    internal = topic.endswith(".internal")
    topics = DefaultTopicFilter([".*"])
    assert replicated(topic, own, topics, target="eu") is not (internal or topic == "heartbeats")


def test_internal_names_of_the_aws_lab() -> None:
    own = policy(AWS_SAME_NAME)
    assert own.offset_syncs_topic("mskdest") == "mm2-offset-syncs.mskdest.internal"
    assert own.checkpoints_topic("msksource") == "msksource.checkpoints.internal"
    assert isinstance(own, DefaultReplicationPolicy)
