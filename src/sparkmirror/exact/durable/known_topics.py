"""Target topics that a flow has written to, with their ids.

The records are in the loss ledger's topic. Claims hold ids, not names: only by these records can a process tell that a
target topic is a new topic with an old name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from pydantic import BaseModel, ConfigDict, ValidationError

from sparkmirror.kafka.cluster.topic_log import TopicLog


class KnownTopic(BaseModel):
    """Target topic, as last seen."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    source_topic: str
    target_topic: str
    target_topic_id: str
    """Topic id, as 32 hexadecimal digits."""

    @property
    def key(self) -> bytes:
        return json.dumps(["topic", self.target_topic]).encode()


class TopicMemory:
    """Store for one flow's known topics; kept in memory after the first read."""

    def __init__(self, log: TopicLog) -> None:
        self._log = log
        self._known: dict[str, KnownTopic] | None = None

    @property
    def known(self) -> Mapping[str, KnownTopic]:
        """Known topics, by target topic."""
        if self._known is None:
            by_key: dict[bytes, KnownTopic] = {}
            for _, key, value in self._log.read(0, 0)[0]:
                topic = _read(value)
                if topic is not None:
                    by_key[topic.key] = topic
                elif key is not None and value is None:
                    by_key.pop(key, None)
            self._known = {topic.target_topic: topic for topic in by_key.values()}
        return self._known

    def learn(self, topics: Iterable[KnownTopic]) -> None:
        """Write the new and changed topics to the log."""
        known = dict(self.known)
        news = [topic for topic in topics if known.get(topic.target_topic) != topic]
        if news:
            self._log.append(0, [(topic.key, topic.model_dump_json().encode()) for topic in news])
            self._known = known | {topic.target_topic: topic for topic in news}

    def forget(self, topics: Iterable[KnownTopic]) -> None:
        """Remove topics that are gone on both sides."""
        doomed = {topic.target_topic: topic for topic in topics}
        if doomed:
            self._log.append(0, [(topic.key, None) for topic in doomed.values()])
            self._known = {name: known_topic for name, known_topic in self.known.items() if name not in doomed}


def _read(value: bytes | None) -> KnownTopic | None:
    """Read a known topic.

    Return None for a loss, which is in the same topic, and for a record that another sparkmirror version wrote.
    """
    try:
        return None if value is None else KnownTopic.model_validate_json(value)
    except ValidationError:
        return None
