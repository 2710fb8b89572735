"""Each partition's offset map, from the segments topic and the target's log.

The log is read below its high watermark. The module only reads: the log's decisions on unconfirmed claims are not
written back. A damaged log must not keep verify from looking at it, so positions are taken as they are, without a
pump's cross-checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import Retracted, TargetPartition, segments_topic
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.maps.offset_map import OffsetMap
from sparkmirror.exact.maps.partition_map import NOTHING_YET, ForeignRange, LogBounds, PartitionMap
from sparkmirror.exact.position.log_probe import LogProbe
from sparkmirror.exact.position.questioned_claims import Evidence
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.log_tail import last_batches
from sparkmirror.kafka.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.topic_partition import TopicPartition


class CopyMap(NamedTuple):
    """A partition's offset map, and the last copied records' source topic."""

    offsets: OffsetMap
    source_topic_id: bytes
    taken_over: bool
    """True if the copy continues after a foreign mirror's copy."""
    others: tuple[ForeignRange, ...]
    """Ranges that foreign mirrors copied between this flow's records, in order."""


class FlowClaims:
    """The flow's claims on its target partitions, read once."""

    def __init__(self, target: ClusterClient, source_alias: str) -> None:
        self._target = target
        self._log = ClaimLog(TopicLog(target, segments_topic(source_alias)))
        self.identity: Identity | None = None
        """The flow's identity at the target; `None` if it never copied a record there."""
        self.undecided: dict[TopicPartition, str] = {}
        """Partitions with claims and without a map, with the reason."""
        target.metadata([])
        try:
            self.identity = self._log.agree(target.cluster_id, None)
        except LogUnavailable as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise

    def read(self, partitions: Iterable[TargetPartition]) -> dict[TargetPartition, PartitionMap]:
        """Return these partitions' maps with their claims; old claims are folded in.

        Partitions without claims are left out.
        """
        if self.identity is None:
            return {}
        maps = self._read(set(partitions), at_once=False)
        torn = {partition for partition, partition_map in maps.items() if partition_map.broken}
        for partition in torn:
            maps.pop(partition).close()
        return maps | self._read(torn, at_once=True)

    def _read(self, wanted: set[TargetPartition], *, at_once: bool) -> dict[TargetPartition, PartitionMap]:
        maps: dict[TargetPartition, PartitionMap] = {}
        assert self.identity is not None  # noqa: S101 - read has checked it
        for home in {self._log.home(partition) for partition in wanted}:
            for record in self._log.history(home):
                partition = record.target_topic_id, record.partition
                if partition in wanted and (isinstance(record, Retracted) or self.identity.own([record])):
                    if partition not in maps:
                        maps[partition] = PartitionMap(at_once=at_once)
                    maps[partition].take(record)
        return {partition: partition_map for partition, partition_map in maps.items() if not partition_map.empty}

    def maps(
        self,
        leader: int,
        topic_ids: Mapping[str, bytes],
        logs: Mapping[TopicPartition, tuple[int, int]],
        claims: Mapping[TopicPartition, PartitionMap],
    ) -> dict[TopicPartition, CopyMap]:
        """Return each partition's map if it has claims.

        `logs` are log starts and high watermarks, all led by `leader`.
        """
        if self.identity is None or not claims:
            return {}
        probe = LogProbe(self._target, leader, topic_ids, self.identity)
        asked = {
            partition: open_claims
            for partition, partition_map in claims.items()
            if (open_claims := partition_map.open_claims())
        }
        evidence: Mapping[TopicPartition, Evidence] = (
            probe.evidence(asked, {partition: logs[partition][0] for partition in asked}) if asked else {}
        )
        tails = last_batches(
            self._target,
            leader,
            {partition: logs[partition][1] for partition in claims},
            topic_ids,
            self.identity.wrote,
            {partition: partition_map.begins for partition, partition_map in claims.items()},
        )
        copies = {}
        for partition, partition_map in claims.items():
            partition_map.bound(LogBounds(*logs[partition]))
            why = partition_map.judge(evidence.get(partition, {}), tails[partition], None)
            if why is not None and why is not NOTHING_YET:
                self.undecided[partition] = why.reason
            elif why is None:
                copies[partition] = CopyMap(
                    partition_map.offsets, partition_map.source_topic_id, partition_map.taken_over, partition_map.others
                )
        return copies
