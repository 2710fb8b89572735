"""How topics are named at the target: MirrorMaker 2's two replication policies (`mm2.md` section 2.4), and two more.

Strimzi's `IdentityReplicationPolicy` is the Apache one under another name; the AWS lab's same-name policy differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from sparkmirror.policy.loading import load

HEARTBEATS = "heartbeats"
DEFAULT = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
STRIMZI_IDENTITY = "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy"
AWS_SAME_NAME = "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy"

SEPARATOR_KEY = "replication.policy.separator"
INTERNAL_SEPARATOR_KEY = "replication.policy.internal.topic.separator.enabled"
SOURCE_ALIAS_KEY = "source.cluster.alias"


class ReplicationPolicy(Protocol):
    """What MirrorMaker 2 asks of a policy; None stands for Java's null."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """The name at the target of the source's `topic`."""

    def topic_source(self, topic: str) -> str | None:
        """The alias of the cluster that `topic` was copied from; None if it is no copy."""

    def upstream_topic(self, topic: str) -> str | None:
        """The name of `topic` at the cluster that it was copied from; None if it is no copy."""

    def original_topic(self, topic: str) -> str:
        """The name of `topic` where it was first written to."""

    def heartbeats_topic(self) -> str:
        """The topic that heartbeats are sent to."""

    def offset_syncs_topic(self, alias: str) -> str:
        """The topic of offset syncs, `alias` being the other cluster than the one it is on."""

    def checkpoints_topic(self, alias: str) -> str:
        """The topic of checkpoints of the source `alias`."""

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Whether `topic` holds heartbeats, copied or not."""

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Whether `topic` holds checkpoints."""

    def is_mm2_internal_topic(self, topic: str) -> bool:
        """Whether `topic` is MirrorMaker 2's own."""

    def is_internal_topic(self, topic: str) -> bool:
        """Whether `topic` is never copied, whatever the filters say."""


class DefaultReplicationPolicy:
    """`topic` of `us` becomes `us.topic`; `separator` stands between."""

    def __init__(self, separator: str = ".", internal_separator_enabled: bool = True) -> None:
        self._set_separator(separator, internal_separator_enabled)

    def configure(self, settings: Mapping[str, str]) -> None:
        """Take the separator from a connector's settings, as a policy that inherits from this one gets it."""
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
        """What stands between alias and topic."""
        return self._separator

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """The alias before the name."""
        return f"{source_alias}{self._separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        """What stands before the first separator, if anything but separators follows it."""
        parts = _java_split(topic, self._separator)
        return parts[0] if len(parts) > 1 else None

    def upstream_topic(self, topic: str) -> str | None:
        """What stands after the first separator."""
        source = self.topic_source(topic)
        return None if source is None else topic[len(source) + len(self._separator) :]

    def original_topic(self, topic: str) -> str:
        """The name without any alias."""
        upstream = self.upstream_topic(topic)
        while upstream is not None and upstream != topic:
            topic, upstream = upstream, self.upstream_topic(upstream)
        return topic

    def heartbeats_topic(self) -> str:
        """Always `heartbeats`."""
        return HEARTBEATS

    def offset_syncs_topic(self, alias: str) -> str:
        """`mm2-offset-syncs.<alias>.internal`."""
        return f"{self._offset_syncs_start}{alias}{self._internal_end}"

    def checkpoints_topic(self, alias: str) -> str:
        """`<alias>.checkpoints.internal`."""
        return f"{alias}{self._checkpoints_end}"

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Whether its original is `heartbeats`."""
        return self.original_topic(topic) == HEARTBEATS

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Whether it ends as a topic of checkpoints does."""
        return topic.endswith(self._checkpoints_end)

    def is_mm2_internal_topic(self, topic: str) -> bool:
        """Since Kafka 4.0 a user's own `*.internal` is not among them (KIP-1074)."""
        own = topic.startswith("mm2") and topic.endswith(self._internal_end)
        return own or self.is_checkpoints_topic(topic)

    def is_internal_topic(self, topic: str) -> bool:
        """MirrorMaker 2's own, the brokers' and hidden ones."""
        return self.is_mm2_internal_topic(topic) or topic.startswith(("__", "."))


class IdentityReplicationPolicy(DefaultReplicationPolicy):
    """Names stay as they are, but for heartbeats; so it can't be seen that a topic is a copy."""

    def __init__(
        self, source_alias: str | None = None, separator: str = ".", internal_separator_enabled: bool = True
    ) -> None:
        super().__init__(separator, internal_separator_enabled)
        self._source_alias = source_alias

    def configure(self, settings: Mapping[str, str]) -> None:
        """Take the source's alias, too."""
        super().configure(settings)
        self._source_alias = settings.get(SOURCE_ALIAS_KEY, self._source_alias)

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """The name itself."""
        return super().format_remote_topic(source_alias, topic) if _like_heartbeats(topic) else topic

    def topic_source(self, topic: str) -> str | None:
        """The source's alias, whatever the topic."""
        return super().topic_source(topic) if _like_heartbeats(topic) else self._source_alias

    def upstream_topic(self, topic: str) -> str | None:
        """The name itself."""
        return super().upstream_topic(topic) if _like_heartbeats(topic) else topic


class SameNameReplicationPolicy(DefaultReplicationPolicy):
    """The AWS lab's `CustomMM2ReplicationPolicy`: all names stay as they are, heartbeats' too.

    So the source's `heartbeats` goes into the target's own, and a copy has no upstream topic that is known.
    """

    def __init__(self, source_alias: str, separator: str = ".", internal_separator_enabled: bool = True) -> None:
        super().__init__(separator, internal_separator_enabled)
        self._source_alias = source_alias

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """The name itself."""
        return topic

    def topic_source(self, topic: str) -> str | None:
        """The source's alias, whatever the topic."""
        return self._source_alias

    def upstream_topic(self, topic: str) -> str | None:
        """Never known."""
        return None


def policy_for(
    policy_class: str,
    *,
    source_alias: str,
    separator: str = ".",
    internal_separator_enabled: bool = True,
    originals: Mapping[str, str] | None = None,
) -> ReplicationPolicy:
    """The policy that stands for a Java class, or one written in Python (`module:Class`).

    That is configured with `originals`, in which the other arguments count. Raises `ValueError` if there is none.
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
    return policy


def _like_heartbeats(topic: str) -> bool:
    """As MirrorMaker 2 asks it: `my-heartbeats` counts, too."""
    return topic.endswith(HEARTBEATS)


def _java_split(text: str, separator: str) -> list[str]:
    """Java's `String.split` at a literal: empty parts at the end are dropped, at the start kept."""
    parts = text.split(separator) if separator else list(text)
    while parts and not parts[-1]:
        parts.pop()
    return parts
