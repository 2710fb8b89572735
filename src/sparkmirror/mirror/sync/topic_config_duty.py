"""Topics' properties, kept equal to the source's.

Settings: `sync.topic.configs.enabled`, `sync.topic.configs.interval.seconds` (`mm2.md` 3.2, syncTopicConfigs).
MirrorMaker 2 sends all properties again at each interval. This duty compares with the target first, and sends only
differing properties.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from sparkmirror.chunks import chunks
from sparkmirror.config import FlowConfig
from sparkmirror.events import Event
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import TOPICS_PER_REQUEST, ClusterClient
from sparkmirror.kafka.cluster.config_changes import ConfigChange, alter_topic_configs
from sparkmirror.kafka.wire.rpc import UnsupportedBroker
from sparkmirror.mirror.sync.topic_properties import config_change
from sparkmirror.mirror.sync.topic_rules import TopicRules
from sparkmirror.mirror.sync.topics import MirroredTopic, TopicSync
from sparkmirror.mirror.sync.unknown_properties import by_property

_UNREADABLE = "it can't be read: the topic is gone, or sparkmirror's principal needs DESCRIBE_CONFIGS on it"

logger = logging.getLogger(__name__)


class TopicConfigSync:
    """The topic property duty, each `sync.topic.configs.interval.seconds`.

    `sync.topic.configs.enabled` switches the duty on. `topics` gives the topic duty's last result. The caller closes
    the admins.
    """

    def __init__(
        self,
        flow: FlowConfig,
        rules: TopicRules,
        source: ClusterAdmin,
        target: ClusterAdmin,
        topics: Callable[[], TopicSync],
    ) -> None:
        self._rules = rules
        self._source = source
        self._target = target
        self._topics = topics
        self._client = ClusterClient(flow.target, f"{flow.name}|sparkmirror-topic-configs")
        self._named_as_unsupported = False
        self._named_as_unknown: set[tuple[str, str]] = set()
        """Pairs of a remote topic and a property unknown to the target's brokers."""

    def run(self) -> None:
        """Compare topics that exist on both sides, and change differing properties.

        A failing topic gets one line in the log. Raises `ConnectionError` or `SparkMirrorError`.
        """
        topics = self._topics()
        self._named_as_unknown |= {(remote, name) for remote, names in topics.unknown.items() for name in names}
        unknown: dict[str, tuple[str, ...]] = {}
        try:
            for chunk in chunks(topics.mirrored, TOPICS_PER_REQUEST):
                changes = self._changes(chunk, unknown)
                if changes and not self._alter(changes):
                    return
        finally:
            self._name(unknown)

    def close(self) -> None:
        self._client.close()

    def _changes(self, mirrored: Sequence[MirroredTopic], unknown: dict[str, tuple[str, ...]]) -> list[ConfigChange]:
        """Return these topics' changes.

        `unknown` receives the properties that the target's brokers don't know.
        """
        source = self._source.topic_configs(topic.source.name for topic in mirrored)
        target = self._target.topic_configs(topic.remote.name for topic in mirrored)
        changes = []
        for topic in mirrored:
            name, remote = topic.source.name, topic.remote.name
            if name not in source:
                _warn(name, self._source, _UNREADABLE)
            elif remote not in target:
                _warn(remote, self._target, _UNREADABLE)
            else:
                change, unknown[remote] = config_change(remote, source[name], target[remote], self._rules)
                if change:
                    changes.append(change)
        return changes

    def _name(self, unknown: Mapping[str, Sequence[str]]) -> None:
        """Warn in one line about unknown properties not named before."""
        new = {
            remote: [name for name in names if (remote, name) not in self._named_as_unknown]
            for remote, names in unknown.items()
        }
        if any(new.values()):
            logger.warning(
                "configuration not synced: the brokers of cluster %s don't know these properties: %s",
                self._target.config.alias,
                by_property(new),
                extra=Event.TOPIC_CONFIG_NOT_SYNCED.extra,
            )
        self._named_as_unknown |= {(remote, name) for remote, names in new.items() for name in names}

    def _alter(self, changes: Sequence[ConfigChange]) -> bool:
        """Make the changes; return False if the target's brokers don't support them."""
        alias = self._target.config.alias
        try:
            outcomes = alter_topic_configs(self._client, changes)
        except UnsupportedBroker as error:
            level = logging.DEBUG if self._named_as_unsupported else logging.WARNING
            logger.log(
                level,
                "no topic's configuration is synced to cluster %s: %s",
                alias,
                error,
                extra=Event.TOPIC_CONFIG_NOT_SYNCED.extra,
            )
            self._named_as_unsupported = True
            return False
        for change in changes:
            reason = outcomes.get(change.topic, "the broker said nothing about it")
            if reason is None:
                logger.info(
                    "topic configured: %s on cluster %s: %s",
                    change.topic,
                    alias,
                    change,
                    extra=Event.TOPIC_CONFIGURED.extra,
                )
            else:
                _warn(change.topic, self._target, reason)
        return True


def _warn(topic: str, admin: ClusterAdmin, reason: str) -> None:
    logger.warning(
        "configuration not synced: topic %s on cluster %s: %s",
        topic,
        admin.config.alias,
        reason,
        extra=Event.TOPIC_CONFIG_NOT_SYNCED.extra,
    )
