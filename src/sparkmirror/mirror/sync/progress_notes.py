"""The duty that notes how far each partition was copied, for later processes.

A later process's loss detection reads the notes (`durable.noted_progress`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from sparkmirror.config import FlowConfig
from sparkmirror.exact.durable.losses import losses_topic
from sparkmirror.exact.durable.noted_progress import ProgressLog, ReportedProgress, TopicProgress
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.pump.messages.orders import Receipt


class ProgressNotes:
    """One flow's duty. `receipts` gives each partition's newest receipt."""

    def __init__(self, flow: FlowConfig, receipts: Callable[[], Iterable[Receipt]]) -> None:
        self._receipts = receipts
        self._client = ClusterClient(flow.target, f"{flow.name}|sparkmirror-standing")
        self._log = ProgressLog(TopicLog(self._client, losses_topic(flow.source.alias)))

    def run(self) -> None:
        """Write changed notes; raises `ConnectionError`."""
        self._log.learn(notes(self._receipts()))

    def close(self) -> None:
        self._client.close()


def notes(receipts: Iterable[Receipt]) -> list[TopicProgress]:
    """Return the notes that receipts give, by target topic.

    Receipts of partitions with an unknown target topic give no note.
    """
    by_topic: dict[tuple[str, str], dict[int, ReportedProgress]] = defaultdict(dict)
    for receipt in receipts:
        if receipt.target_topic_id and receipt.upstream >= 0:
            by_topic[receipt.target_topic, receipt.target_topic_id][receipt.partition] = receipt.progress
    return [
        TopicProgress(target_topic=topic, standing_of=topic_id, partitions=partitions)
        for (topic, topic_id), partitions in by_topic.items()
    ]
