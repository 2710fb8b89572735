"""Policies for topic names at the target.

These are MirrorMaker 2's two replication policies (`mm2.md` section 2.4), Strimzi's `IdentityReplicationPolicy`, which
is the Apache one under another name, and the AWS lab's same-name policy, which differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from sparkmirror.policy.loading import load, must_name

HEARTBEATS = "heartbeats"
DEFAULT = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
STRIMZI_IDENTITY = "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy"
AWS_SAME_NAME = "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy"

SEPARATOR_KEY = "replication.policy.separator"
INTERNAL_SEPARATOR_KEY = "replication.policy.internal.topic.separator.enabled"
SOURCE_ALIAS_KEY = "source.cluster.alias"


class ReplicationPolicy(Protocol):
    """Interface for MirrorMaker 2's policies; None stands for Java's null."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """Return the target's name for the source's `topic`."""

    def topic_source(self, topic: str) -> str | None:
        """Return the alias of the cluster that `topic` was copied from; None if no copy."""

    def upstream_topic(self, topic: str) -> str | None:
        """Return the name of `topic` at its source cluster; None if no copy."""

    def original_topic(self, topic: str) -> str:
        """Return the name of `topic` at the cluster where records were first written."""

    def heartbeats_topic(self) -> str:
        """Return the topic for heartbeats."""

    def offset_syncs_topic(self, alias: str) -> str:
        """Return the offset syncs topic.

        `alias` is the cluster at the flow's other end, not the cluster that holds the topic.
        """

    def checkpoints_topic(self, alias: str) -> str:
        """Return the checkpoints topic for the source `alias`."""

    def is_heartbeats_topic(self, topic: str) -> bool:
        """True if `topic` holds heartbeats, copied or not."""

    def is_checkpoints_topic(self, topic: str) -> bool:
        """True if `topic` holds checkpoints."""

    def is_mm2_internal_topic(self, topic: str) -> bool:
        """True if `topic` is MirrorMaker 2's own."""

    def is_internal_topic(self, topic: str) -> bool:
        """True if `topic` is never copied, whatever the filters say."""


class DefaultReplicationPolicy:
    """Names `topic` from the cluster `us` as `us.topic`, with `separator` between."""

    def __init__(self, separator: str = ".", internal_separator_enabled: bool = True) -> None:
        self._set_separator(separator, internal_separator_enabled)

    def configure(self, settings: Mapping[str, str]) -> None:
        """Take the separator from a connector's settings, as subclasses get it."""
        if SEPARATOR_KEY in settings:
            enabled = settings.get(INTERNAL_SEPARATOR_KEY, "true").strip().lower() == "true"
            self._set_separator(settings[SEPARATOR_KEY], enabled)

    def _set_separator(self, separator: str, internal_separator_enabled: bool) -> None:
        self._separator = separator
        internal = separator if internal_separator_enabled else "."
        self._internal_end = f"{internal}internal"
        self._checkpoints_end = f"{internal}checkpoints{internal}internal"
        self._offset_syncs_start = f"mm2-offset-syncs{internal}"

    @property
    def separator(self) -> str:
        """Text between alias and topic."""
        return self._separator

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """Put the alias before the name."""
        return f"{source_alias}{self._separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        """Return the text before the first separator.

        None if only separators follow, or nothing.
        """
        parts = _java_split(topic, self._separator)
        return parts[0] if len(parts) > 1 else None

    def upstream_topic(self, topic: str) -> str | None:
        """Return the text after the first separator."""
        source = self.topic_source(topic)
        return None if source is None else topic[len(source) + len(self._separator) :]

    def original_topic(self, topic: str) -> str:
        """Return the name without any alias."""
        upstream = self.upstream_topic(topic)
        while upstream is not None and upstream != topic:
            topic, upstream = upstream, self.upstream_topic(upstream)
        return topic

    def heartbeats_topic(self) -> str:
        """Return `heartbeats`."""
        return HEARTBEATS

    def offset_syncs_topic(self, alias: str) -> str:
        """Return `mm2-offset-syncs.<alias>.internal`."""
        return f"{self._offset_syncs_start}{alias}{self._internal_end}"

    def checkpoints_topic(self, alias: str) -> str:
        """Return `<alias>.checkpoints.internal`."""
        return f"{alias}{self._checkpoints_end}"

    def is_heartbeats_topic(self, topic: str) -> bool:
        """True if the original topic is `heartbeats`."""
        return self.original_topic(topic) == HEARTBEATS

    def is_checkpoints_topic(self, topic: str) -> bool:
        """True if `topic` ends in `.checkpoints.internal`, or with another separator."""
        return topic.endswith(self._checkpoints_end)

    def is_mm2_internal_topic(self, topic: str) -> bool:
        """True for MirrorMaker 2's topics.

        Since Kafka 4.0 a user's own `*.internal` is not among these topics (KIP-1074).
        """
        own = topic.startswith("mm2") and topic.endswith(self._internal_end)
        return own or self.is_checkpoints_topic(topic)

    def is_internal_topic(self, topic: str) -> bool:
        """True for MirrorMaker 2's and brokers' internal topics, and for hidden topics."""
        return self.is_mm2_internal_topic(topic) or topic.startswith(("__", "."))


class IdentityReplicationPolicy(DefaultReplicationPolicy):
    """Keeps all names but those of heartbeats, so names don't show copies."""

    def __init__(
        self, source_alias: str | None = None, separator: str = ".", internal_separator_enabled: bool = True
    ) -> None:
        super().__init__(separator, internal_separator_enabled)
        self._source_alias = source_alias

    def configure(self, settings: Mapping[str, str]) -> None:
        """Take the separator and the source's alias from a connector's settings."""
        super().configure(settings)
        self._source_alias = settings.get(SOURCE_ALIAS_KEY, self._source_alias)

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """Return the name itself, except for heartbeats."""
        return super().format_remote_topic(source_alias, topic) if _like_heartbeats(topic) else topic

    def topic_source(self, topic: str) -> str | None:
        """Return the source's alias for all topics but heartbeats."""
        return super().topic_source(topic) if _like_heartbeats(topic) else self._source_alias

    def upstream_topic(self, topic: str) -> str | None:
        """Return the name itself, except for heartbeats."""
        return super().upstream_topic(topic) if _like_heartbeats(topic) else topic


class SameNameReplicationPolicy(DefaultReplicationPolicy):
    """The AWS lab's `CustomMM2ReplicationPolicy`: keeps all names, also `heartbeats`.

    So the source's `heartbeats` goes into the target's own topic, and no copy has a known upstream topic.
    """

    def __init__(self, source_alias: str, separator: str = ".", internal_separator_enabled: bool = True) -> None:
        super().__init__(separator, internal_separator_enabled)
        self._source_alias = source_alias

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """Return the name itself."""
        return topic

    def topic_source(self, topic: str) -> str | None:
        """Return the source's alias for all topics."""
        return self._source_alias

    def upstream_topic(self, topic: str) -> str | None:
        """Return None: the upstream topic is never known."""
        return None


def policy_for(
    policy_class: str,
    *,
    source_alias: str,
    separator: str = ".",
    internal_separator_enabled: bool = True,
    originals: Mapping[str, str] | None = None,
) -> ReplicationPolicy:
    """Return the policy for a Java class, or a policy written in Python.

    A Python policy is named `module:Class`, and configured with `originals`, in which the other arguments take
    precedence. Raises `ValueError` if there is no such policy, or if it has no heartbeats topic: a cluster pair needs
    this topic before any other is looked at.
    """
    if policy_class == DEFAULT:
        return DefaultReplicationPolicy(separator, internal_separator_enabled)
    if policy_class in (IDENTITY, STRIMZI_IDENTITY):
        return IdentityReplicationPolicy(source_alias, separator, internal_separator_enabled)
    if policy_class == AWS_SAME_NAME:
        return SameNameReplicationPolicy(source_alias, separator, internal_separator_enabled)
    known = [DEFAULT, IDENTITY, STRIMZI_IDENTITY, AWS_SAME_NAME]
    settings = {
        **(originals or {}),
        SOURCE_ALIAS_KEY: source_alias,
        SEPARATOR_KEY: separator,
        INTERNAL_SEPARATOR_KEY: str(internal_separator_enabled).lower(),
    }
    policy: ReplicationPolicy = load(policy_class, ReplicationPolicy, settings, instead=known)
    must_name(policy_class, "the heartbeats topic", policy.heartbeats_topic, settings)
    return policy


def _like_heartbeats(topic: str) -> bool:
    """True if MirrorMaker 2 takes the topic for heartbeats: also `my-heartbeats`."""
    return topic.endswith(HEARTBEATS)


def _java_split(text: str, separator: str) -> list[str]:
    """Split like Java's `String.split` at a literal.

    Empty parts are dropped at the end, and kept at the start.
    """
    parts = text.split(separator) if separator else list(text)
    while parts and not parts[-1]:
        parts.pop()
    return parts
