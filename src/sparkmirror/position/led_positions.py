"""Positions of partitions that one broker of the target leads.

One way of reading for pumps, for takeovers and for altered offsets, in the order that exactness needs:

1. the target: logs, producer state, tails;
2. the claims: every record of the flow in the log was claimed before it was sent;
3. the log's batches at claims that only the log can decide.

Who compares positions with the loss ledger reads the ledger before step 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from sparkmirror.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.durable.claim_log import SegmentLog
from sparkmirror.durable.identity import Identity
from sparkmirror.durable.losses import LossLedger
from sparkmirror.position.decision import TargetReading
from sparkmirror.position.foreign_notes import ForeignNotes
from sparkmirror.position.log_probe import LogProbe
from sparkmirror.position.resolving import PositionResolver, Resolved, resolve_replicated
from sparkmirror.position.route import PartitionPair
from sparkmirror.position.target_reading import TargetReader, Unserved
from sparkmirror.wire.topic_partition import TopicPartition


class LedPositions:
    """Reader of these pairs' positions at their common leader; `read`, then `resolve`."""

    def __init__(
        self,
        target: ClusterClient,
        segments: SegmentLog,
        ledger: LossLedger,
        identity: Identity,
        leader: int,
        pairs: Sequence[PartitionPair],
        topics: Mapping[str, TopicLeaders],
        moved: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """Take the pairs, and the metadata of their target topics.

        `moved` tells whether a source topic's writers have moved to the copy.
        """
        self.ids = {pair.target_topic: topics[pair.target_topic].topic_id for pair in pairs}
        """Topic id of each target topic."""
        self.readings: dict[TopicPartition, TargetReading] = {}
        """Readings of the partitions that could be read."""
        self._segments, self._leader, self._topics = segments, leader, topics
        self._reader = TargetReader(target, identity)
        self._resolver = PositionResolver(
            segments,
            LogProbe(target, leader, self.ids, identity),
            identity,
            ForeignNotes(ledger, {pair.target: pair for pair in pairs}, self.ids, moved),
        )

    def read(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, TargetReading | Unserved]:
        """Read target partitions, then all claims.

        Return each reading, or the reason for its absence.
        """
        if not partitions:
            return {}
        floors = self._reader.floors(partitions, self._topics, self._leader, self._segments)
        answers = self._reader.read(partitions, self._topics, self._leader, floors)
        self._segments.refresh((self.ids[topic], index) for topic, index in partitions)
        self.readings |= {
            partition: answer for partition, answer in answers.items() if isinstance(answer, TargetReading)
        }
        return answers

    def resolve(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Resolved]:
        """Return the position of each partition that was read. Raises `Superseded`."""
        read = {partition: self.readings[partition] for partition in partitions}
        evidence = self._resolver.evidence(read, self.ids)
        return resolve_replicated(self._resolver, self._reader, self._leader, read, self.ids, evidence)
