"""A flow's rules about topics: replication policy and filters, built once.

`NameCheck` is the only list of what decides about a name; `mirror/sync/name_refusals.py` has its words. Custom policies
and filters (`module:Class`) are users' code: an exception from them becomes one line that names the topic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from sparkmirror.config import FlowConfig
from sparkmirror.errors import ConfigError, SparkMirrorError
from sparkmirror.mirror.sync.own_class_settings import own_class_settings
from sparkmirror.policy import (
    ConfigPropertyFilter,
    GroupFilter,
    ReplicationPolicy,
    TopicFilter,
    group_filter_for,
    is_cycle,
    policy_for,
    property_filter_for,
    topic_filter_for,
)

_Built = TypeVar("_Built")
_Answer = TypeVar("_Answer")

_LONGEST_NAME = 249
LEGAL_NAME = re.compile(rf"[a-zA-Z0-9._-]{{1,{_LONGEST_NAME}}}")


class NameCheck(StrEnum):
    """Checks of a topic's name, in the order in which they decide."""

    FILTER = "filter"
    INTERNAL = "internal"
    CYCLE = "cycle"
    OWN_HEARTBEATS = "heartbeats"
    """Heartbeats that would go into the target's own heartbeats topic.

    A policy that keeps names copies them so.
    """
    LEGAL = "policy"
    """A legal name at the target; a topic without one is wanted, and refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRules:
    """Rules for replicated topics: selection, names at the target, kept properties."""

    source_alias: str
    target_alias: str
    policy: ReplicationPolicy
    topics: TopicFilter
    properties: ConfigPropertyFilter
    replication_factor: int = -1
    """Replication factor for created topics; -1 is the target's default."""
    heartbeats_replication_enabled: bool = True
    left_alone: Callable[[str], bool] = lambda _: False
    """Function that is True for source topics whose writers have moved to the copies.

    The mirror leaves such topics alone.
    """

    def wanted(self, topic: str) -> bool:
        """Tell whether to replicate a topic, by filter, heartbeats, internals and cycles.

        Internal topics and copies that would go back to their origin (cycles) are not replicated.
        """
        return not self.left_alone(topic) and self._asked(
            f"whether topic {topic} is replicated", lambda: next(self._unwanted(topic), None) is None
        )

    def failed(self, topic: str) -> list[NameCheck]:
        """Return all checks that a topic's name fails; the first decides."""
        unwanted = self._asked(f"whether topic {topic} is replicated", lambda: list(self._unwanted(topic)))
        return [*unwanted, NameCheck.LEGAL] if illegal(self.remote_name(topic)) else unwanted

    def _unwanted(self, topic: str) -> Iterator[NameCheck]:
        if not self.has_all_heartbeats(topic) and not self.topics.should_replicate_topic(topic):
            yield NameCheck.FILTER
        yield from self._lasting(topic)

    def never_copied(self, topic: str) -> bool:
        """Tell whether a topic is never copied, whatever the filter says."""
        return self._asked(f"whether topic {topic} is replicated", lambda: next(self._lasting(topic), None) is not None)

    def _lasting(self, topic: str) -> Iterator[NameCheck]:
        if self.policy.is_internal_topic(topic):
            yield NameCheck.INTERNAL
        if is_cycle(self.policy, topic, self.target_alias):
            yield NameCheck.CYCLE
        if self.policy.is_heartbeats_topic(topic) and self.remote_name(topic) == self.policy.heartbeats_topic():
            yield NameCheck.OWN_HEARTBEATS

    def has_all_heartbeats(self, topic: str) -> bool:
        """Tell whether these are heartbeats, and copied whatever the filter says."""
        return self.heartbeats_replication_enabled and self.policy.is_heartbeats_topic(topic)

    def is_heartbeats(self, topic: str) -> bool:
        """Tell whether a topic holds heartbeats: no transform sees these.

        Without a separator MM2's policies know no topic of heartbeats, and `heartbeats` holds them all the same.
        """
        return self._asked(
            f"whether topic {topic} holds heartbeats",
            lambda: topic == self.policy.heartbeats_topic() or self.policy.is_heartbeats_topic(topic),
        )

    def accepts(self, topic: str) -> bool:
        return self._asked(f"whether topic {topic} is replicated", lambda: self.topics.should_replicate_topic(topic))

    def remote_name(self, topic: str) -> str:
        """Return the name that the replication policy gives a topic at the target."""
        what = f"the remote name of topic {topic}"
        name = self._asked(what, lambda: self.policy.format_remote_topic(self.source_alias, topic))
        if not isinstance(name, str):
            raise self._failed(what, f"the policy says {name!r}, which is no name")
        return name

    def keeps(self, name: str) -> bool:
        """Tell whether a topic property with this name is kept equal to the source's."""
        return self._asked(f"whether {name} is copied", lambda: self.properties.should_replicate_config_property(name))

    def keeps_default(self, name: str) -> bool:
        """Tell whether a property without explicit value gets the source's default."""
        return self._asked(
            f"whether the source's default of {name} is copied",
            lambda: self.properties.should_replicate_source_default(name),
        )

    def _asked(self, what: str, question: Callable[[], _Answer]) -> _Answer:
        try:
            return question()
        except SparkMirrorError as error:
            raise SparkMirrorError(f"flow {self._flow}: {error}") from error
        except Exception as error:
            raise self._failed(what, f"{type(error).__name__}: {' '.join(str(error).split())}") from error

    @property
    def _flow(self) -> str:
        return f"{self.source_alias}->{self.target_alias}"

    def _failed(self, what: str, why: str) -> SparkMirrorError:
        custom = [
            f"{type(part).__module__}:{type(part).__name__}"
            for part in (self.policy, self.topics, self.properties)
            if not type(part).__module__.startswith("sparkmirror.")
        ]
        return SparkMirrorError(f"flow {self._flow}: {' and '.join(custom)} can't tell {what}: {why}")


def illegal(remote: str) -> str:
    """Return why a remote name is illegal; empty if legal."""
    if len(remote) > _LONGEST_NAME:
        return f"its remote name would have {len(remote)} characters, and Kafka allows {_LONGEST_NAME}: {remote}"
    if not LEGAL_NAME.fullmatch(remote) or remote in (".", ".."):
        return f"its remote name would not be legal in Kafka: {remote!r}"
    return ""


def topic_rules(flow: FlowConfig) -> TopicRules:
    """Build a flow's policy and filters; raises `ConfigError` for unusable settings."""
    settings = own_class_settings(flow)
    sync = flow.topic_sync
    return TopicRules(
        source_alias=flow.source.alias,
        target_alias=flow.target.alias,
        policy=_built(
            flow,
            "replication.policy.class",
            lambda: policy_for(
                flow.replication_policy_class,
                source_alias=flow.source.alias,
                separator=flow.replication_policy_separator,
                internal_separator_enabled=flow.internal_topic_separator_enabled,
                originals=settings,
            ),
        ),
        topics=_built(
            flow,
            "topics, topics.exclude, topic.filter.class",
            lambda: topic_filter_for(flow.topic_filter_class, flow.topics, flow.topics_exclude, settings),
        ),
        properties=_built(
            flow,
            "config.properties.exclude, config.property.filter.class",
            lambda: property_filter_for(
                sync.config_property_filter_class, sync.config_properties_exclude, sync.use_defaults_from, settings
            ),
        ),
        replication_factor=flow.replication_factor,
        heartbeats_replication_enabled=flow.heartbeats_replication_enabled,
    )


def group_filter(flow: FlowConfig) -> GroupFilter:
    """Build a flow's group filter; raises `ConfigError` for unusable settings."""
    group = flow.group
    settings = own_class_settings(flow)
    return _built(
        flow,
        "groups, groups.exclude, group.filter.class",
        lambda: group_filter_for(group.group_filter_class, group.groups, group.groups_exclude, settings),
    )


def _built(flow: FlowConfig, key: str, build: Callable[[], _Built]) -> _Built:
    try:
        return build()
    except ValueError as error:
        raise ConfigError(str(error), origin=f"flow {flow.name}", key=key) from error
