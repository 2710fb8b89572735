"""Resolve partitions: claims, position and foreign records.

The target's log decides between the claims, the position follows, and foreign records are stepped over.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sparkmirror.errors import ClusterTrouble
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.position.arbitration import arbitrate
from sparkmirror.exact.position.decision import Doubt, Position, TargetReading, appended, decide, reached
from sparkmirror.exact.position.foreign import ForeignRecords, explain, foreign_between, foreign_tail, told_apart
from sparkmirror.exact.position.foreign_notes import ForeignNotes
from sparkmirror.exact.position.log_probe import LogProbe
from sparkmirror.exact.position.matching import TargetLog
from sparkmirror.exact.position.questioned_claims import Evidence, questioned
from sparkmirror.exact.position.target_reading import TargetReader
from sparkmirror.kafka.wire.topic_partition import TopicPartition


class Resolved(NamedTuple):
    """A partition's position, and its stretches without the flow's records."""

    position: Position | Doubt
    foreign: tuple[ForeignRecords, ...] = ()


class Superseded(ClusterTrouble):
    """Error for a process whose identity is not the flow's any more.

    A process on release 0.1 fenced this process (`durable.identity`).
    """


def assert_present(claim_log: ClaimLog, identity: Identity) -> None:
    """Raise `Superseded` if the flow has a newer identity."""
    if not claim_log.is_present(identity):
        raise Superseded("another process has taken this flow over, and it has another producer id since")


class PositionResolver:
    """Position resolver for one flow's partitions that the same broker leads.

    The resolver writes its findings to the segments topic, and notes foreign records.
    """

    def __init__(self, claim_log: ClaimLog, probe: LogProbe, identity: Identity, foreign: ForeignNotes) -> None:
        self._claim_log = claim_log
        self._probe = probe
        self._identity = identity
        self._foreign = foreign

    def evidence(
        self, readings: Mapping[TopicPartition, TargetReading], topic_ids: Mapping[str, bytes]
    ) -> dict[TopicPartition, Evidence]:
        """Return the log's batches at all these partitions' claims that need evidence."""
        asked = {
            partition: claims
            for partition in readings
            if (claims := questioned(self._identity.own(self._claim_log.claims(topic_ids[partition[0]], partition[1]))))
        }
        starts = {partition: readings[partition].log_start for partition in asked}
        return dict(self._probe.evidence(asked, starts)) if asked else {}

    def resolve(
        self,
        readings: Mapping[TopicPartition, TargetReading],
        topic_ids: Mapping[str, bytes],
        evidence: Mapping[TopicPartition, Evidence],
    ) -> dict[TopicPartition, Resolved]:
        """Return each partition's position. Raises `Superseded`."""
        assert_present(self._claim_log, self._identity)  # asked after the logs were read
        keys = {partition: (topic_ids[partition[0]], partition[1]) for partition in readings}
        resolved = {
            partition: self._decide(
                partition,
                reading,
                self._identity.own(self._claim_log.claims(*keys[partition])),
                evidence.get(partition, {}),
            )
            for partition, reading in readings.items()
        }
        uncovered = [
            partition
            for partition, result in resolved.items()
            if isinstance(result.position, Doubt) and result.position.uncovered
        ]
        if uncovered:
            wholes = self._claim_log.wholes(keys[partition] for partition in uncovered)
            claims = {partition: self._identity.own(wholes[keys[partition]]) for partition in uncovered}
            shown = self._probe.evidence(
                {partition: questioned(own) for partition, own in claims.items()},
                {partition: readings[partition].log_start for partition in uncovered},
            )
            for partition, own in claims.items():
                resolved[partition] = self._decide(partition, readings[partition], own, shown[partition], whole=True)
        return resolved

    def _decide(
        self,
        partition: TopicPartition,
        reading: TargetReading,
        claims: Sequence[Claim],
        evidence: Evidence,
        *,
        whole: bool = False,
    ) -> Resolved:
        sequence = appended(reading.last_sequence, reading.log_end_after, claims)
        ruling = arbitrate(claims, evidence, TargetLog(reading.log_start, reading.log_end_after, sequence))
        if ruling.undecided:
            return Resolved(Doubt(reason=ruling.undecided, wait=ruling.wait))
        between = foreign_between(self._probe, partition, ruling, claims)
        self._note(partition, reading, between)
        if ruling.confirmed or ruling.false:
            claimed = [claim for claim in ruling.confirmed if claim not in ruling.healed]
            self._claim_log.revise([*claimed, *ruling.moved], ruling.false)
        if ruling.healed:
            self._claim_log.revise(ruling.healed, ())
        tail = self._known_tail(partition, reading, ruling.true)
        if tail is None:
            return Resolved(
                Doubt(
                    reason="a foreign producer wrote to the target partition, and how much of that retention deleted "
                    "is not known: delete the target topic to have it copied again"
                )
            )
        position = decide(reading, ruling.true, tail, whole=whole)
        if not isinstance(position, Doubt) or not position.surplus:
            end = reading.log_end_after
            stretches = (*between, ForeignRecords(end - tail, end)) if tail else between
            return Resolved(position, self._told(partition, reading, stretches))
        if reading.log_end_before != reading.log_end_after:
            return Resolved(dataclasses.replace(position, wait=True))
        if reading.high_watermark < reading.log_end_after:
            reason = (
                "the target's log ends with records that its replicas have not confirmed: no consumer may read them yet"
            )
            return Resolved(Doubt(reason=reason, wait=True, unreplicated=True))
        there = tuple(reached(ruling.true, reading)) or ruling.true[:1]
        sequence = reading.log_end_after - there[-1].downstream + there[-1].sequence - position.surplus
        explained = explain(
            self._probe,
            partition,
            there,
            sequence,
            reading.log_start,
            reading.log_end_after,
            shown_to=reading.tail.next_offset if reading.state is None and reading.tail else None,
        )
        if explained is None:
            return Resolved(position)
        self._note(partition, reading, explained.stretches[: len(explained.claims)])
        if explained.claims:
            self._claim_log.revise(explained.claims, ())
        position = decide(reading, (*ruling.true, *explained.claims), explained.tail)
        return Resolved(position, self._told(partition, reading, between + explained.stretches))

    def _note(self, partition: TopicPartition, reading: TargetReading, stretches: Sequence[ForeignRecords]) -> None:
        for stretch in self._told(partition, reading, stretches):
            self._foreign.note(partition, stretch)

    def _told(
        self, partition: TopicPartition, reading: TargetReading, stretches: Sequence[ForeignRecords]
    ) -> tuple[ForeignRecords, ...]:
        """Return the stretches, split into the flow's fences and foreign records."""
        if not stretches or not self._probe.was_fenced:
            return tuple(stretches)
        fences = self._fences(partition, reading, min(stretches).first, max(stretch.end for stretch in stretches))
        return tuple(part for stretch in stretches for part in told_apart(stretch, fences))

    def _fences(self, partition: TopicPartition, reading: TargetReading, first: int, end: int) -> list[tuple[int, int]]:
        """Return the log's fences in an offset range, and all noted fences.

        The log may have lost the noted fences since.
        """
        noted = [(note.first, note.end) for note in self._foreign.known(partition) if note.fence]
        shown = self._probe.fences(partition, max(first, reading.log_start), end)
        return [*noted, *shown]

    def _fences_only(self, partition: TopicPartition, reading: TargetReading) -> int:
        """Return how many offsets a log with only fences has, else 0.

        In such a log no record was appended before the fences.
        """
        if not reading.has_records or not self._probe.was_fenced:
            return 0
        if not self._probe.fences_only(partition, reading.log_start, reading.log_end_after):
            return 0
        whole = ForeignRecords(reading.log_start, reading.log_end_after)
        parts = self._told(partition, reading, [whole])
        return whole.end - whole.first if all(part.fence for part in parts) else 0

    def _known_tail(self, partition: TopicPartition, reading: TargetReading, claims: Sequence[Claim]) -> int | None:
        """Return how many foreign offsets the log ends with, or None if unknown.

        The number counts only if the log has none of the flow's records, so that the log's end alone tells the
        position; else the number is 0. Behind a claim that says only where the flow begins the flow has no record: the
        first batch there is claimed. But as long as the log shows records there, the records may be another mirror's,
        and no pump may pass over these records. Only where a turn of a migration begins they are stragglers' (M2).
        """
        end = reading.log_end_after
        if reading.last_sequence is not None or reading.log_end_before != end:
            return 0
        if not claims:
            return self._fences_only(partition, reading)
        newest = (reached(claims, reading) or claims[:1])[-1]  # claims on lost records tell nothing of the log's end
        if newest.is_start and reading.log_start == end:
            return max(end - newest.downstream, 0)
        if newest.is_start and newest.turn:
            begin = max(newest.downstream, reading.log_start)
            return max(end - newest.downstream, 0) if self._probe.foreign_only(partition, begin, end) else None
        known = self._foreign.known(partition)
        if self._probe.was_fenced:
            known += [ForeignRecords(*fence) for fence in self._fences(partition, reading, newest.downstream, end)]
        tail = foreign_tail(known, newest.downstream, end)
        unknown = (
            stretch.first >= reading.log_start and self._probe.foreign_throughout(partition, stretch.first, stretch.end)
            for stretch in tail.unknown
        )
        return tail.offsets if all(unknown) else None


def resolve_replicated(
    resolver: PositionResolver,
    reader: TargetReader,
    leader: int,
    readings: Mapping[TopicPartition, TargetReading],
    topic_ids: Mapping[str, bytes],
    evidence: Mapping[TopicPartition, Evidence],
) -> dict[TopicPartition, Resolved]:
    """Resolve partitions, with a short wait for high watermarks.

    If a log ends above its high watermark, the partition is resolved again once the high watermark has come to the end
    that was read. Raises as `PositionResolver.resolve` does.
    """
    resolved = resolver.resolve(readings, topic_ids, evidence)
    lagging = {
        partition: readings[partition]
        for partition, result in resolved.items()
        if isinstance(result.position, Doubt) and result.position.unreplicated
    }
    if lagging and (replicated := reader.replicated(lagging, leader)):
        resolved |= resolver.resolve(replicated, topic_ids, resolver.evidence(replicated, topic_ids))
    return resolved
