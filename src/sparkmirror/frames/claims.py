"""The offset map of each partition of a flow, from the segments topic and the target's log below its high watermark.

Only read: what the log tells of unconfirmed claims is not written back. A damaged log must not keep verify from
looking at it, so positions are taken as they are, not cross-checked as a pump's are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.log_tail import last_batches
from sparkmirror.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.durable.claim_log import SegmentLog, TargetPartition
from sparkmirror.durable.claims import Retracted, home_partition, segments_topic
from sparkmirror.durable.identity import Identity
from sparkmirror.position.arbitration import Evidence
from sparkmirror.position.log_probe import LogProbe
from sparkmirror.translation.map_keeper import NOTHING_YET, ByOthers, LogBounds, PartitionMap
from sparkmirror.translation.offset_map import OffsetMap
from sparkmirror.wire.topic_partition import TopicPartition

UNKNOWN_TOPIC, TOPIC_NOT_AUTHORIZED = 3, 29


class CopyMap(NamedTuple):
    """The offset map of a partition, and the source topic that was copied last."""

    offsets: OffsetMap
    source_topic_id: bytes
    taken_over: bool
    """Whether it goes on behind somebody else's copy."""
    others: tuple[ByOthers, ...]
    """What somebody else copied between ours, in order."""


class FlowClaims:
    """What the flow claimed of its target partitions; read once."""

    def __init__(self, target: ClusterClient, source_alias: str) -> None:
        self._target = target
        self._log = SegmentLog(TopicLog(target, segments_topic(source_alias)))
        self.identity: Identity | None = None
        """Who the flow is at the target; None: it never copied anything there."""
        self.undecided: dict[TopicPartition, str] = {}
        """Partitions that have claims and no map, and why."""
        target.metadata([])
        try:
            self.identity = self._log.agree(target.cluster_id, None)
        except LogUnavailable as error:
            if error.code != UNKNOWN_TOPIC:
                raise

    def read(self, partitions: Iterable[TargetPartition]) -> dict[TargetPartition, PartitionMap]:
        """What is claimed of these partitions, as far as anything is; old claims are in the maps already."""
        if self.identity is None:
            return {}
        found = self._read(set(partitions), at_once=False)
        torn = {where for where, one in found.items() if one.broken}
        for where in torn:
            found.pop(where).close()
        return found | self._read(torn, at_once=True)

    def _read(self, wanted: set[TargetPartition], *, at_once: bool) -> dict[TargetPartition, PartitionMap]:
        found: dict[TargetPartition, PartitionMap] = {}
        assert self.identity is not None  # noqa: S101 - read has seen to it
        for home in {home_partition(topic_id, partition, self._log.homes) for topic_id, partition in wanted}:
            for one in self._log.history(home):
                where = one.target_topic_id, one.partition
                if where in wanted and (isinstance(one, Retracted) or self.identity.own([one])):
                    if where not in found:
                        found[where] = PartitionMap(at_once=at_once)
                    found[where].take(one)
        return {where: one for where, one in found.items() if not one.empty}

    def maps(
        self,
        leader: int,
        topic_ids: Mapping[str, bytes],
        logs: Mapping[TopicPartition, tuple[int, int]],
        claims: Mapping[TopicPartition, PartitionMap],
    ) -> dict[TopicPartition, CopyMap]:
        """The map of each partition that has claims. `logs` are log starts and high watermarks, all led by `leader`."""
        if self.identity is None or not claims:
            return {}
        probe = LogProbe(self._target, leader, topic_ids, self.identity)
        asked = {where: some for where, one in claims.items() if (some := one.open_claims())}
        evidence: Mapping[TopicPartition, Evidence] = (
            probe.evidence(asked, {where: logs[where][0] for where in asked}) if asked else {}
        )
        tails = last_batches(
            self._target,
            leader,
            {where: logs[where][1] for where in claims},
            topic_ids,
            self.identity.wrote,
            {where: one.begins for where, one in claims.items()},
        )
        found = {}
        for where, one in claims.items():
            one.bound(LogBounds(*logs[where]))
            why = one.judge(evidence.get(where, {}), tails[where], None)
            if why is not None and why is not NOTHING_YET:
                self.undecided[where] = why.reason
            elif why is None:
                found[where] = CopyMap(one.offsets, one.source_topic_id, one.taken_over, one.others)
        return found
