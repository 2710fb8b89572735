"""First notes on topics, which two flows may write at the same time.

A flow looks for other flows' notes before it notes a topic (`other_flows`). Two flows that start together both find
none. So a flow looks again after its own note: whoever finds another flow's note then takes the own note back and
copies nothing. The next run of the topic duty tries again.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable

from sparkmirror.cluster.admin import ClusterAdmin
from sparkmirror.durable.known_topics import TopicMemory
from sparkmirror.events import Event
from sparkmirror.sync.other_flows import OtherFlows, is_noted, refusal_of_second
from sparkmirror.sync.topics import MirroredTopic, TopicSync

log = logging.getLogger(__name__)


class FirstNotes:
    """Second look at others' notes: `expect` before the own notes, `give_way` after."""

    def __init__(self, flow: str, target: ClusterAdmin, others: OtherFlows, memory: TopicMemory) -> None:
        self._flow = flow
        self._target = target
        self._others = others
        self._memory = memory
        self._new: set[str] = set()
        """Target topics with a new note, or with none yet, until the second look succeeds."""

    def expect(self, topics: Iterable[MirroredTopic]) -> None:
        """Remember the topics that are not noted yet."""
        known = self._memory.known
        self._new |= {topic.remote.name for topic in topics if not is_noted(known.get(topic.remote.name), topic.remote)}

    def give_way(self, topics: TopicSync) -> TopicSync:
        """Return the topics without those that another flow has noted, too.

        Raises `ClusterUnreachable` and other `ConnectionError`s; then the next call looks again.
        """
        new = {topic.remote.name: topic.remote for topic in topics.mirrored if topic.remote.name in self._new}
        others = self._others.noted(new, self._target.topics()) if new else {}
        if not others:
            self._new.clear()
            return topics
        self._memory.forget(note for name in others if (note := self._memory.known.get(name)) is not None)
        self._new.clear()
        lost = {topic.source.name: topic.remote.name for topic in topics.mirrored if topic.remote.name in others}
        refused = {name: refusal_of_second(self._flow, others[remote], remote) for name, remote in lost.items()}
        for name, reason in sorted(refused.items()):
            log.warning("topic not replicated: %s: %s", name, reason, extra=Event.TOPIC_NOT_REPLICATED.extra)
        return dataclasses.replace(
            topics,
            mirrored=tuple(topic for topic in topics.mirrored if topic.remote.name not in others),
            created=tuple(name for name in topics.created if name not in others),
            refused={**topics.refused, **refused},
        )
