"""Positions of partitions that one broker at the target leads.

One way to read for pumps, for takeovers and for altered offsets, in the order that exactness needs:

1. the target: logs, producer state, tails;
2. the claims: each of the flow's records in the log was claimed before it was sent;
3. the log's batches at claims that only the log can decide.

Who compares positions with the loss ledger reads the ledger before step 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.durable.losses import LossLedger
from sparkmirror.exact.position.decision import TargetReading
from sparkmirror.exact.position.foreign_notes import ForeignNotes
from sparkmirror.exact.position.log_probe import LogProbe
from sparkmirror.exact.position.loss_detection import Writers
from sparkmirror.exact.position.resolving import PositionResolver, Resolved, resolve_replicated
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.exact.position.target_reading import TargetReader, Unserved
from sparkmirror.kafka.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.kafka.wire.topic_partition import TopicPartition


class LedPositions:
    """Reader of these pairs' positions at their common leader; `read`, then `resolve`."""

    def __init__(
        self,
        target: ClusterClient,
        claim_log: ClaimLog,
        ledger: LossLedger,
        identity: Identity,
        leader: int,
        pairs: Sequence[PartitionPair],
        topics: Mapping[str, TopicLeaders],
        writers: Callable[[str], Writers] = lambda _: Writers.UNSAID,
    ) -> None:
        """Take the pairs, and their target topics' metadata.

        `writers` tells where a source topic's own writers write.
        """
        self.ids = {pair.target_topic: topics[pair.target_topic].topic_id for pair in pairs}
        """Topic id by target topic."""
        self.readings: dict[TopicPartition, TargetReading] = {}
        """Readings from the partitions that could be read."""
        self._claim_log, self._leader, self._topics = claim_log, leader, topics
        self._reader = TargetReader(target, identity)
        self._resolver = PositionResolver(
            claim_log,
            LogProbe(target, leader, self.ids, identity),
            identity,
            ForeignNotes(ledger, {pair.target: pair for pair in pairs}, self.ids, writers),
        )

    def read(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, TargetReading | Unserved]:
        """Read target partitions, then claims, of a long history the newest.

        Return each reading, or the reason for its absence.
        """
        if not partitions:
            return {}
        floors = self._reader.floors(partitions, self._topics, self._leader, self._claim_log)
        answers = self._reader.read(partitions, self._topics, self._leader, floors)
        self._claim_log.refresh((self.ids[topic], index) for topic, index in partitions)
        self.readings |= {
            partition: answer for partition, answer in answers.items() if isinstance(answer, TargetReading)
        }
        return answers

    def resolve(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Resolved]:
        """Return each read partition's position. Raises `Superseded`."""
        read = {partition: self.readings[partition] for partition in partitions}
        evidence = self._resolver.evidence(read, self.ids)
        return resolve_replicated(self._resolver, self._reader, self._leader, read, self.ids, evidence)
