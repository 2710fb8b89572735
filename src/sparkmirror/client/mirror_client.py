"""`MirrorClient`: questions about the clusters mirrored into a cluster.

`mm2.md` 3.11.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import TracebackType
from typing import Self, overload

import regex

from sparkmirror.client.settings import ADMIN, CONSUMER, cluster_config, replication_policy
from sparkmirror.client.translated_offsets import GroupOffsets, OffsetAndMetadata, TopicPartition, read_checkpoints
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.policy import ReplicationPolicy

UNREACHABLE = -1
"""Number of hops to a cluster without heartbeats here."""


class MirrorClient:
    """Client for one cluster; close it, or use it as a context manager.

    `settings` are as for Kafka's `MirrorClient`: `bootstrap.servers`, `replication.policy.*`, `security.protocol`,
    `ssl.*`, the last two also with the prefix `admin.` or `consumer.`; other keys are ignored. Connects at the first
    call. Raises `ConfigError`; the other methods raise `ClusterUnreachable`.
    """

    def __init__(self, settings: Mapping[str, str], *, timeout_s: float = 60.0) -> None:
        self._admin_config = cluster_config(settings, ADMIN)
        self._consumer_config = cluster_config(settings, CONSUMER)
        self._policy = replication_policy(settings)
        self._timeout_s = timeout_s
        self._admin: ClusterAdmin | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        if self._admin is not None:
            self._admin.close()
            self._admin = None

    @property
    def replication_policy(self) -> ReplicationPolicy:
        """Replication policy, which names the topics in this cluster."""
        return self._policy

    def replication_hops(self, alias: str) -> int:
        """Return the number of mirrors between the cluster `alias` and this one.

        Counted along `alias`'s heartbeats, on the shortest path; -1 without any.
        """
        hops = (self._hops(topic, alias) for topic in self.heartbeat_topics())
        return min((count for count in hops if count != UNREACHABLE), default=UNREACHABLE)

    def heartbeat_topics(self) -> set[str]:
        """Return this cluster's topics with heartbeats, its own among them."""
        return {topic for topic in self._topics() if self._policy.is_heartbeats_topic(topic)}

    def checkpoint_topics(self) -> set[str]:
        """Return this cluster's topics with checkpoints."""
        return {topic for topic in self._topics() if self._policy.is_checkpoints_topic(topic)}

    def upstream_clusters(self) -> set[str]:
        """Return the clusters whose heartbeats arrive here, at any distance."""
        return {alias for topic in self.heartbeat_topics() for alias in self._sources(topic)}

    def remote_topics(self, source: str | None = None) -> set[str]:
        """Return this cluster's remote topics: copies of other clusters' topics.

        With `source`, only the topics copied directly from that cluster.
        """
        sources = {
            topic: self._policy.topic_source(topic)
            for topic in self._topics()
            if not self._policy.is_internal_topic(topic)
        }
        return {topic for topic, alias in sources.items() if alias and source in (None, alias)}

    @overload
    def remote_consumer_offsets(self, groups: str, alias: str, timeout_s: float) -> GroupOffsets: ...

    @overload
    def remote_consumer_offsets(
        self, groups: re.Pattern[str] | regex.Pattern[str], alias: str, timeout_s: float
    ) -> dict[str, GroupOffsets]: ...

    def remote_consumer_offsets(
        self, groups: str | re.Pattern[str] | regex.Pattern[str], alias: str, timeout_s: float
    ) -> GroupOffsets | dict[str, GroupOffsets]:
        """Return the offsets here for a group of the cluster `alias`, by its checkpoints.

        With a pattern, return the offsets for each group whose whole name matches. The result is empty for a group
        without checkpoints. If time is up before all checkpoints are read, the newest may be missing, and a warning is
        logged. Raises `TypeError` if `groups` is neither a name nor a compiled pattern, or `alias` is no name.
        """
        if not isinstance(groups, str | re.Pattern | regex.Pattern) or not isinstance(alias, str):
            raise TypeError("groups must be a group's name or a compiled regular expression, alias a name")
        matching = re.compile(re.escape(groups)) if isinstance(groups, str) else groups
        translated: dict[str, GroupOffsets] = {}
        topic = self._policy.checkpoints_topic(alias)
        for checkpoint in read_checkpoints(self._consumer_config, topic, timeout_s):
            if matching.fullmatch(checkpoint.group):
                partition = TopicPartition(checkpoint.topic, checkpoint.partition)
                committed = OffsetAndMetadata(checkpoint.downstream, checkpoint.metadata)
                translated.setdefault(checkpoint.group, {})[partition] = committed
        return translated.get(groups, {}) if isinstance(groups, str) else translated

    def _topics(self) -> set[str]:
        if self._admin is None:
            self._admin = ClusterAdmin.connect(self._admin_config, "mirror-client", self._timeout_s)
        return set(self._admin.topics())

    def _hops(self, topic: str, alias: str) -> int:
        sources = self._sources(topic)
        return sources.index(alias) + 1 if alias in sources else UNREACHABLE

    def _sources(self, topic: str) -> list[str]:
        """Return the clusters on a topic's path to this one, the nearest first.

        Each cluster once, even if a policy's answers form a circle.
        """
        sources: list[str] = []
        source = self._policy.topic_source(topic)
        while source is not None and source not in sources:
            sources.append(source)
            topic = self._policy.upstream_topic(topic) or topic
            source = self._policy.topic_source(topic)
        return sources
