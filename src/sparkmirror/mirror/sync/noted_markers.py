"""Durable notes on markers that were passed over after the last copied record.

Markers and aborted records have no copy, so no claim tells that they were passed over. Receipts tell it, but the
receipts topic keeps them for an hour, and no pump reports on a topic whose writers have moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from sparkmirror.exact.durable.losses import losses_topic
from sparkmirror.exact.durable.noted_progress import ProgressLog, ReportedProgress
from sparkmirror.exact.maps.partition_map import PartitionMap
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.pump.messages.control import ControlState, DoneTopic, control_topic


class PassedOver(NamedTuple):
    """Note: no record was left below `upstream` when the copy ended at `downstream`."""

    upstream: int
    downstream: int


class NotedMarkers:
    """Read the notes on one flow's partitions at the target."""

    def __init__(self, target: ClusterClient, source_alias: str) -> None:
        self._target = target
        self._ledger = TopicLog(target, losses_topic(source_alias))
        self._control = TopicLog(target, control_topic(source_alias))

    def of(
        self, copies: Mapping[TopicPartition, TopicPartition], maps: Mapping[TopicPartition, PartitionMap]
    ) -> dict[TopicPartition, list[PassedOver]]:
        """Return the notes on the copies in `maps`; nothing if unreadable now.

        `copies` maps target partitions to source partitions. Notes on earlier topics with the same names are left out.
        """
        if not maps:
            return {}
        try:
            ids = {name: topic.topic_id for name, topic in self._target.metadata({name for name, _ in maps}).items()}
            progress, control = ProgressLog(self._ledger), ControlState()
            control.apply(self._control.read(0, 0)[0])
            return {
                remote: [
                    *_reported(progress.of(remote), ids[remote[0]]),
                    *_done(control.done.get(copies[remote][0]), remote[1], copied),
                ]
                for remote, copied in maps.items()
            }
        except ConnectionError:
            return {}


def _reported(noted: ReportedProgress | None, target_topic_id: bytes) -> Iterator[PassedOver]:
    if noted is not None and noted.is_of(target_topic_id):
        yield PassedOver(noted.upstream, noted.downstream)


def _done(done: DoneTopic | None, partition: int, copied: PartitionMap) -> Iterator[PassedOver]:
    if done is None or done.source_topic_id != copied.source_topic_id.hex():
        return
    if partition in done.ends and partition in done.reached:
        yield PassedOver(done.copied_to(partition), done.reached[partition])


def pass_over(copied: PartitionMap, notes: Iterable[PassedOver]) -> None:
    """Let a map take in the notes that were made when the copy ended as it does now."""
    for note in notes:
        copied.offsets.pass_over(note.upstream, note.downstream)
