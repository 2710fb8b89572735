"""The offset map of each partition of a flow, from the segments topic and the target's log below its high watermark.

Only read: what the log tells of unconfirmed claims is not written back. A damaged log must not keep verify from
looking at it, so positions are taken as they are, not cross-checked as a pump's are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.log_tail import last_batches
from sparkmirror.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.offsets.arbitration import Evidence, arbitrate, unsettled
from sparkmirror.offsets.evidence import LogProbe
from sparkmirror.offsets.map_keeper import copied_below
from sparkmirror.offsets.matching import TargetLog
from sparkmirror.offsets.offset_map import OffsetMap
from sparkmirror.offsets.position import appended
from sparkmirror.offsets.segment_log import SegmentLog, TargetPartition
from sparkmirror.offsets.segments import Identity, Segment, home_partition, segments_topic
from sparkmirror.wire.topic_partition import TopicPartition

_UNKNOWN_TOPIC = 3


class CopyMap(NamedTuple):
    """The offset map of a partition, and the source topic that was copied last."""

    offsets: OffsetMap
    source_topic_id: bytes


class FlowClaims:
    """What the flow claimed of its target partitions; read once."""

    def __init__(self, target: ClusterClient, source_alias: str) -> None:
        self._target = target
        self._log = SegmentLog(TopicLog(target, segments_topic(source_alias)))
        self.identity: Identity | None = None
        """Who the flow is at the target; None: it never copied anything there."""
        target.metadata([])
        try:
            self.identity = self._log.agree(target.cluster_id, None)
        except LogUnavailable as error:
            if error.code != _UNKNOWN_TOPIC:
                raise

    def read(self, partitions: Iterable[TargetPartition]) -> dict[TargetPartition, list[Segment]]:
        """The claims of these partitions, rivals' among them."""
        wanted = set(partitions)
        found: dict[TargetPartition, dict[tuple[int, int], Segment]] = defaultdict(dict)
        if self.identity is None:
            return {}
        ours = self.identity.producer_id, self.identity.producer_epoch
        for home in {home_partition(topic_id, partition, self._log.homes) for topic_id, partition in wanted}:
            for one in self._log.history(home):
                where, key = (one.target_topic_id, one.partition), (one.sequence, one.incarnation)
                if where not in wanted:
                    continue
                if isinstance(one, Segment) and (one.producer_id, one.producer_epoch) == ours:
                    found[where][key] = one
                elif not isinstance(one, Segment):
                    found[where].pop(key, None)
        return {where: list(claims.values()) for where, claims in found.items()}

    def maps(
        self,
        leader: int,
        topic_ids: Mapping[str, bytes],
        logs: Mapping[TopicPartition, tuple[int, int]],
        claims: Mapping[TopicPartition, Sequence[Segment]],
    ) -> dict[TopicPartition, CopyMap]:
        """The map of each partition that has claims. `logs` are log starts and high watermarks, all led by `leader`."""
        if self.identity is None or not claims:
            return {}
        probe = LogProbe(self._target, leader, topic_ids, self.identity)
        asked = {where: some for where, all_of in claims.items() if (some := unsettled(all_of))}
        evidence: Mapping[TopicPartition, Evidence] = (
            probe.evidence(asked, {where: logs[where][0] for where in asked}) if asked else {}
        )
        lowest_claims = {where: min(some, key=_sequence) for where, some in claims.items()}
        tails = last_batches(
            self._target,
            leader,
            {where: logs[where][1] for where in claims},
            topic_ids,
            self.identity.producer_id,
            self.identity.producer_epoch,
            {where: lowest.downstream for where, lowest in lowest_claims.items() if lowest.is_start},
        )
        found = {}
        for where, all_of in claims.items():
            (start, high_watermark), tail = logs[where], tails[where]
            sequence = appended(tail.last_sequence if tail else None, high_watermark, all_of)
            true = arbitrate(all_of, evidence.get(where, {}), TargetLog(start, high_watermark, sequence)).true
            if true:
                offsets = OffsetMap.build(true, copied_below(true, tail, high_watermark))
                found[where] = CopyMap(offsets, true[-1].source_topic_id)
        return found


def _sequence(claim: Segment) -> int:
    return claim.sequence
