"""How far each partition was copied when somebody last wrote it down: durable beside the losses.

Claims tell that only roughly: a dense log needs one for millions of records, and none tells that nothing but
transaction markers followed. So a process that comes later would not notice that the target lost the newest records,
and would take markers that the source has deleted meanwhile for lost records. No position is ever taken from here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.wire.topic_partition import TopicPartition


class Stood(NamedTuple):
    """One partition at one moment. All are the next offsets; -1: not known."""

    upstream: int
    """Everything below it was copied, or has no record."""
    downstream: int
    appended: int
    """The target's offset after the last record that it acknowledged."""


class TopicStanding(BaseModel):
    """The partitions of one target topic."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    target_topic: str
    standing_of: str
    """The target topic's id, as 32 hexadecimal digits."""
    partitions: dict[int, Stood]

    @property
    def key(self) -> bytes:
        return json.dumps(["standing", self.target_topic]).encode()


class StandingLog:
    """What one flow knows; kept in memory once it was read."""

    def __init__(self, log: TopicLog) -> None:
        self._log = log
        self._known: dict[str, TopicStanding] | None = None

    @property
    def known(self) -> Mapping[str, TopicStanding]:
        """By target topic."""
        if self._known is None:
            found = (_read(value) for _, _, value in self._log.read(0, 0)[0])
            self._known = {one.target_topic: one for one in found if one is not None}
        return self._known

    def of(self, where: TopicPartition) -> tuple[str, Stood] | None:
        """A target topic's id, and how its partition stood."""
        topic = self.known.get(where[0])
        return (topic.standing_of, topic.partitions[where[1]]) if topic and where[1] in topic.partitions else None

    def learn(self, topics: Iterable[TopicStanding]) -> None:
        """Write down what has changed; of partitions that are not given what is known stays."""
        known = dict(self.known)
        news = []
        for topic in topics:
            before = known.get(topic.target_topic)
            if before is not None and before.standing_of == topic.standing_of:
                topic = topic.model_copy(update={"partitions": before.partitions | topic.partitions})
            if topic != before:
                news.append(topic)
        if news:
            self._log.append(0, [(topic.key, topic.model_dump_json().encode()) for topic in news])
            self._known = known | {topic.target_topic: topic for topic in news}


def _read(value: bytes | None) -> TopicStanding | None:
    """None for a loss and a known topic, which lie in the same topic, and for what another version wrote."""
    try:
        return None if value is None else TopicStanding.model_validate_json(value)
    except ValidationError:
        return None
