"""Topic selection: MirrorMaker 2's `DefaultTopicFilter`, and its test for cycles.

Source: `mm2.md` sections 1.5 and 3.2 (shouldReplicateTopic, isCycle).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from sparkmirror.policy.loading import load
from sparkmirror.policy.name_patterns import NamePatterns, names_in
from sparkmirror.policy.replication import ReplicationPolicy

DEFAULT = "org.apache.kafka.connect.mirror.DefaultTopicFilter"


class TopicFilter(Protocol):
    """Interface for the classes that `topic.filter.class` may name."""

    def should_replicate_topic(self, topic: str) -> bool:
        """True if the flow copies this source topic."""


class DefaultTopicFilter:
    """Accepts `topics` without `topics.exclude`.

    Raises `ValueError` for an invalid regex, and for a regex that can't be translated to Python.
    """

    def __init__(self, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> None:
        self._patterns = NamePatterns(include, exclude)

    def configure(self, settings: Mapping[str, str]) -> None:
        """Take the regexes from a connector's settings, as subclasses get them."""
        self._patterns = NamePatterns(names_in(settings, "topics"), names_in(settings, "topics.exclude"))

    def should_replicate_topic(self, topic: str) -> bool:
        """True if `topic` is included and not excluded."""
        return self._patterns.accepts(topic)


def topic_filter_for(
    filter_class: str, include: Sequence[str], exclude: Sequence[str], originals: Mapping[str, str]
) -> TopicFilter:
    """Return the filter for a Java class, or a filter written in Python.

    Raises `ValueError` if there is no such filter.
    """
    if filter_class == DEFAULT:
        return DefaultTopicFilter(include, exclude)
    topics: TopicFilter = load(filter_class, TopicFilter, originals, instead=[DEFAULT])
    return topics


def is_cycle(policy: ReplicationPolicy, topic: str, target_alias: str) -> bool:
    """True if `topic` has come from the target, directly or through other clusters."""
    source, upstream = policy.topic_source(topic), policy.upstream_topic(topic)
    while source is not None and source != target_alias:
        if upstream is None or upstream == topic:
            return False
        topic = upstream
        source, upstream = policy.topic_source(topic), policy.upstream_topic(topic)
    return source is not None
