"""Which topics are copied: MirrorMaker 2's `DefaultTopicFilter` and what goes before it.

Source: `mm2.md` sections 1.5 and 3.2 (shouldReplicateTopic, isCycle).
"""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.policy.java_regex import compile_java
from sparkmirror.policy.replication import ReplicationPolicy


class TopicFilter:
    """Java regexes to include and to exclude topics by; each matches whole names.

    Raises `ValueError` for what is no regex, or can't be translated.
    """

    def __init__(self, include: Sequence[str], exclude: Sequence[str] = ()) -> None:
        # Joined first, as Java does it: a regex with a comma arrives here in two halves.
        self._include = compile_java("|".join(include)) if include else None
        self._exclude = compile_java("|".join(exclude)) if exclude else None

    def accepts(self, topic: str) -> bool:
        """Whether `topic` is included and not excluded; no regex matches nothing."""
        included = self._include is not None and self._include.fullmatch(topic) is not None
        return included and (self._exclude is None or self._exclude.fullmatch(topic) is None)


def is_cycle(policy: ReplicationPolicy, topic: str, target_alias: str) -> bool:
    """Whether `topic` has come from the target, by whatever way."""
    source, upstream = policy.topic_source(topic), policy.upstream_topic(topic)
    while source is not None and source != target_alias:
        if upstream is None or upstream == topic:
            return False
        topic = upstream
        source, upstream = policy.topic_source(topic), policy.upstream_topic(topic)
    return source is not None


def should_replicate(
    topic: str,
    *,
    policy: ReplicationPolicy,
    topics: TopicFilter,
    target_alias: str,
    heartbeats_replication_enabled: bool = True,
) -> bool:
    """Whether a topic of the source is copied to the target."""
    heartbeats = heartbeats_replication_enabled and policy.is_heartbeats_topic(topic)
    wanted = heartbeats or topics.accepts(topic)
    return wanted and not policy.is_internal_topic(topic) and not is_cycle(policy, topic, target_alias)
