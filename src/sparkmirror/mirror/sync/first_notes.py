"""First notes on topics, which two flows may write at the same time.

A flow looks for other flows' notes before it notes a topic (`other_flows`). Two flows that start together both find
none. So a flow looks again after its own note: whoever finds another flow's note then takes the own note back and
copies nothing. The topic duty tries again soon.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping, Sequence

from sparkmirror.errors import SparkMirrorError
from sparkmirror.events import Event
from sparkmirror.exact.durable.known_topics import TopicMemory
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.reachability import one_line
from sparkmirror.mirror.sync.other_flows import OtherFlows, is_noted
from sparkmirror.mirror.sync.topics import MirroredTopic, TopicSync

log = logging.getLogger(__name__)


class FirstNotes:
    """Second look at others' notes: `expect` before the own notes, `give_way` after."""

    def __init__(self, flow: str, target: ClusterAdmin, others: OtherFlows, memory: TopicMemory) -> None:
        self.unsettled = False
        """True if a topic waits for another look."""
        self._flow = flow
        self._target = target
        self._others = others
        self._memory = memory
        self._new: set[str] = set()
        """Target topics with a new note, or with none yet, until the second look succeeds."""
        self._begun = False

    def expect(self, topics: Sequence[MirroredTopic]) -> None:
        """Remember the topics that are not noted yet.

        At first also the empty topics: a process may have ended between its note and its second look. Raises
        `ClusterUnreachable`.
        """
        known = self._memory.known
        names = {topic.remote.name for topic in topics}
        new = {topic.remote.name for topic in topics if not is_noted(known.get(topic.remote.name), topic.remote)}
        if not self._begun:
            parts = [(topic.remote.name, index) for topic in topics for index in topic.partitions]
            ends = self._target.end_offsets(part for part in parts if part[0] not in new)
            new |= names - {name for (name, _), end in ends.items() if end > 0}
            self._begun = True
        self._new = (self._new & names) | new

    def give_way(self, topics: TopicSync) -> TopicSync:
        """Return the topics without those that another flow has noted, too.

        Topics wait while another flow's notes can't be read.
        """
        new = {topic.remote.name: topic.remote for topic in topics.mirrored if topic.remote.name in self._new}
        try:
            others = self._others.noted(new, self._target.topics()) if new else {}
            self._memory.forget(note for name in others if (note := self._memory.known.get(name)) is not None)
        except (ConnectionError, SparkMirrorError) as error:
            self.unsettled = True
            why = f"it is not known whether another flow copies into it, and it waits: {one_line(error)}"
            return self._without(topics, dict.fromkeys(new, why))
        self._new.clear()
        self.unsettled = bool(others)
        return self._without(
            topics,
            {
                name: f"flow {other} has noted topic {name} at the target, as {self._flow} has: it is looked at again"
                for name, other in others.items()
            },
        )

    def _without(self, topics: TopicSync, reasons: Mapping[str, str]) -> TopicSync:
        """Return the topics without these target topics, whose source topics are refused."""
        refused = {
            topic.source.name: reasons[topic.remote.name] for topic in topics.mirrored if topic.remote.name in reasons
        }
        for name, reason in sorted(refused.items()):
            log.warning("topic not replicated: %s: %s", name, reason, extra=Event.TOPIC_NOT_REPLICATED.extra)
        return dataclasses.replace(
            topics,
            mirrored=tuple(topic for topic in topics.mirrored if topic.remote.name not in reasons),
            created=tuple(name for name in topics.created if name not in reasons),
            refused={**topics.refused, **refused},
        )
