"""Each partition's last recorded progress.

The records are in the loss ledger's topic. Claims tell the progress only roughly: a dense log needs a single claim for
millions of records, and a claim can't tell that only transaction markers followed. Without these records a later
process would not notice that the target lost the newest records, and would take markers that the source has deleted
meanwhile for lost records. No position is ever taken from these records.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_serializer, field_validator

from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire.topic_partition import TopicPartition


class ReportedProgress(NamedTuple):
    """A partition's progress at one moment, as a pump reported it.

    All numbers are next offsets; -1: not known. They are only a report: a position comes from claims and the log
    (`position.decision.Position`), and the map's end from the claims that the log shows
    (`translation.offset_map.Copied`).
    """

    upstream: int = -1
    """Next upstream offset: every record below was copied.

    When the copy ended at `downstream`, no record was left below.
    """
    downstream: int = -1
    """Next downstream offset."""
    appended: int = -1
    """Downstream offset after the last acknowledged record."""
    target_topic_id: str = ""
    """Target topic's id, as 32 hexadecimal digits; empty if nothing was appended.

    A topic that is created again has other offsets.
    """

    def is_of(self, target_topic_id: bytes) -> bool:
        """Tell whether the report is about this target topic, or about none.

        A topic that was created again has other records at these offsets.
        """
        return self.target_topic_id in ("", target_topic_id.hex())

    def appended_to(self, target_topic_id: bytes) -> int:
        """Return `appended` if it is about this target topic; else -1."""
        return self.appended if self.target_topic_id == target_topic_id.hex() else -1


NOTHING_REPORTED = ReportedProgress()


class TopicProgress(BaseModel):
    """Progress in one target topic's partitions.

    As JSON each partition has its three numbers; the topic id is written once for all.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    target_topic: str
    standing_of: str
    """Target topic's id, as 32 hexadecimal digits."""
    partitions: dict[int, ReportedProgress]

    @field_validator("partitions")
    @classmethod
    def _of_this_topic(
        cls, partitions: dict[int, ReportedProgress], info: ValidationInfo
    ) -> dict[int, ReportedProgress]:
        topic_id = info.data.get("standing_of", "")
        return {partition: progress._replace(target_topic_id=topic_id) for partition, progress in partitions.items()}

    @field_serializer("partitions")
    def _numbers(self, partitions: dict[int, ReportedProgress]) -> dict[int, tuple[int, int, int]]:
        return {
            partition: (progress.upstream, progress.downstream, progress.appended)
            for partition, progress in partitions.items()
        }

    @property
    def key(self) -> bytes:
        return json.dumps(["standing", self.target_topic]).encode()


class ProgressLog:
    """Store for one flow's progress; kept in memory after the first read."""

    def __init__(self, log: TopicLog) -> None:
        self._log = log
        self._known: dict[str, TopicProgress] | None = None

    @property
    def known(self) -> Mapping[str, TopicProgress]:
        """Progress, by target topic."""
        if self._known is None:
            records = (_read(value) for _, _, value in self._log.read(0, 0)[0])
            self._known = {progress.target_topic: progress for progress in records if progress is not None}
        return self._known

    def of(self, partition: TopicPartition) -> ReportedProgress | None:
        topic = self.known.get(partition[0])
        return None if topic is None else topic.partitions.get(partition[1])

    def learn(self, topics: Iterable[TopicProgress]) -> None:
        """Write changed progress to the log.

        Further partitions' known progress stays.
        """
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


def _read(value: bytes | None) -> TopicProgress | None:
    """Read a topic's progress.

    Return None for a loss or a known topic, which are in the same topic, and for a record that another sparkmirror
    version wrote.
    """
    try:
        return None if value is None else TopicProgress.model_validate_json(value)
    except ValidationError:
        return None
