"""Duty about copies that keep less than their sources.

The duty names these copies, and writes to the loss ledger which records the target has deleted while the source still
has them. Brokers delete by segments, so logs with equal retention never start at the same record: only copies whose
settings keep less are looked at.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from sparkmirror.config import FlowConfig
from sparkmirror.exact.durable.losses import Loss, LossKind, LossLedger, losses_topic
from sparkmirror.exact.durable.noted_progress import ReportedProgress
from sparkmirror.exact.maps.map_keeper import MapKeeper
from sparkmirror.exact.maps.partition_map import PartitionMap
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.list_offsets import EARLIEST, offsets_by_leader
from sparkmirror.kafka.cluster.topic_configs import topic_configs
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire.topic_ids import same_topic
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.sync.retention import PROPERTIES, keeps_less
from sparkmirror.mirror.sync.topics import MirroredTopic
from sparkmirror.pump.messages.orders import Receipt


class ShorterCopies:
    """A flow's copies that keep less than their sources, as last seen."""

    def __init__(self) -> None:
        self.reasons: Mapping[str, str] = {}
        """Properties that differ, in words, by source topic."""


class _ShorterCopy(NamedTuple):
    """Copy that keeps less, with the reason in words."""

    topic: MirroredTopic
    reason: str


class CopyRetention:
    """One flow's copy retention duty.

    `topics` gives both sides' topics, `receipts` the newest receipts.
    """

    def __init__(
        self,
        flow: FlowConfig,
        topics: Callable[[], Iterable[MirroredTopic]],
        receipts: Callable[[], Iterable[Receipt]],
        shorter: ShorterCopies,
    ) -> None:
        self._flow = flow
        self._topics = topics
        self._receipts = receipts
        self._shorter = shorter
        self._source = ClusterClient(flow.source, f"{flow.name}|sparkmirror-retention")
        self._target = ClusterClient(flow.target, f"{flow.name}|sparkmirror-retention")
        self._maps = MapKeeper(self._target, flow.source.alias)
        self._ledger = LossLedger(TopicLog(self._target, losses_topic(flow.source.alias)))

    def run(self) -> None:
        """Compare settings, and note deleted records.

        Raises `ConnectionError` and `SparkMirrorError`.
        """
        copies = self._keeping_less()
        self._shorter.reasons = {copy.topic.source.name: copy.reason for copy in copies}
        if copies:
            self._note_deleted(copies)

    def close(self) -> None:
        """Close the connections, and free the maps."""
        self._maps.close()
        self._source.close()
        self._target.close()

    def _keeping_less(self) -> list[_ShorterCopy]:
        topics = list(self._topics())
        here = topic_configs(self._source, [topic.source.name for topic in topics], PROPERTIES)
        there = topic_configs(self._target, [topic.remote.name for topic in topics], PROPERTIES)
        reasons = ((topic, keeps_less(here[topic.source.name], there[topic.remote.name])) for topic in topics)
        return [_ShorterCopy(topic, reason) for topic, reason in reasons if reason]

    def _note_deleted(self, copies: Iterable[_ShorterCopy]) -> None:
        """Write down the records that only the source still has."""
        by_remote = {
            (copy.topic.remote.name, partition): copy for copy in copies for partition in copy.topic.partitions
        }
        # Target first: what the source deletes in between makes the range smaller, never too large.
        maps = self._maps.refresh(self._reached(by_remote))
        starts = offsets_by_leader(
            self._source, [(copy.topic.source.name, number) for (_, number), copy in by_remote.items()], EARLIEST
        )
        self._ledger.outdate()
        described = self._target.metadata({remote for remote, _ in by_remote})
        for (remote, partition), copy in by_remote.items():
            copied, start = maps[remote, partition], starts.get((copy.topic.source.name, partition))
            if not isinstance(copied, PartitionMap) or not copied.log.start or start is None:
                continue
            if not same_topic(copied.source_topic_id, copy.topic.source.topic_id):
                continue
            first, end = max(start, copied.lowest_upstream), copied.deleted_to
            if first < end:
                self._note(copy, partition, described[remote].topic_id, (first, end), copied.log.start)

    def _reached(self, remotes: Iterable[TopicPartition]) -> dict[TopicPartition, ReportedProgress | None]:
        reports = {
            (receipt.target_topic, receipt.partition): receipt.progress
            for receipt in self._receipts()
            if receipt.upstream >= 0 and receipt.downstream >= 0
        }
        return {remote: reports.get(remote) for remote in remotes}

    def _note(
        self, copy: _ShorterCopy, partition: int, target_topic_id: bytes, deleted: tuple[int, int], downstream: int
    ) -> None:
        """Write the range to the ledger, or make the newest entry longer."""
        first, end = deleted
        known = [
            entry
            for entry in self._ledger.known(target_topic_id.hex(), partition)
            if entry.kind is LossKind.COPY_EXPIRED and entry.end >= first
        ]
        if known:
            first, end, downstream = known[-1].first, max(end, known[-1].end), known[-1].downstream
        if known and end == known[-1].end:
            return
        source, remote = copy.topic.source.name, copy.topic.remote.name
        words = (
            f"the target has deleted offsets {first} to {end - 1} of source {source}-{partition}, which the source "
            f"had longer: at {remote} {copy.reason}; set the property at the source's topic, or, unless the source's "
            f"brokers have it in their files, write {self._flow.name}.use.defaults.from = source"
        )
        self._ledger.record(
            Loss(
                kind=LossKind.COPY_EXPIRED,
                source_topic=source,
                target_topic=remote,
                partition=partition,
                first=first,
                end=end,
                downstream=downstream,
                target_topic_id=target_topic_id.hex(),
                action="continued",
                words=words,
                at_ms=int(time.time() * 1000),
            )
        )
