"""One partition's claims settled by the target's log, its position decided, foreign records stepped over."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sparkmirror.durable.claim_log import SegmentLog
from sparkmirror.durable.claims import Segment
from sparkmirror.durable.identity import Identity
from sparkmirror.position.arbitration import Evidence, arbitrate, unsettled
from sparkmirror.position.decision import Doubt, Position, TargetReading, appended, decide, reached
from sparkmirror.position.foreign import ForeignRecords, explain, foreign_between, foreign_tail, told_apart
from sparkmirror.position.foreign_notes import ForeignNotes
from sparkmirror.position.log_probe import LogProbe
from sparkmirror.position.matching import TargetLog
from sparkmirror.position.target_reading import TargetReader
from sparkmirror.wire.topic_partition import TopicPartition


class Settled(NamedTuple):
    """Where a partition stands, and which stretches of it somebody else wrote."""

    position: Position | Doubt
    foreign: tuple[ForeignRecords, ...] = ()


class Superseded(ConnectionError):
    """The flow has another identity since: a process of release 0.1 fenced this one (`durable.identity`)."""


def assert_present(segments: SegmentLog, identity: Identity) -> None:
    """Raises `Superseded` where another identity has followed."""
    if not segments.is_present(identity):
        raise Superseded("another process has taken this flow over, and it has another producer id since")


class Settler:
    """Settles partitions of one flow that are led by one broker. What it finds out is written to the segments topic."""

    def __init__(self, segments: SegmentLog, probe: LogProbe, identity: Identity, foreign: ForeignNotes) -> None:
        self._segments = segments
        self._probe = probe
        self._identity = identity
        self._foreign = foreign

    def evidence(
        self, readings: Mapping[TopicPartition, TargetReading], topic_ids: Mapping[str, bytes]
    ) -> dict[TopicPartition, Evidence]:
        """What the log holds for all claims of these partitions that need it."""
        asked = {
            partition: claims
            for partition in readings
            if (claims := unsettled(self._identity.own(self._segments.claims(topic_ids[partition[0]], partition[1]))))
        }
        starts = {partition: readings[partition].log_start for partition in asked}
        return dict(self._probe.evidence(asked, starts)) if asked else {}

    def settle(
        self,
        readings: Mapping[TopicPartition, TargetReading],
        topic_ids: Mapping[str, bytes],
        evidence: Mapping[TopicPartition, Evidence],
    ) -> dict[TopicPartition, Settled]:
        """The position of each of these partitions; raises `Superseded`."""
        assert_present(self._segments, self._identity)  # asked after the logs were read
        keys = {partition: (topic_ids[partition[0]], partition[1]) for partition in readings}
        settled = {
            partition: self._decide(
                partition,
                reading,
                self._identity.own(self._segments.claims(*keys[partition])),
                evidence.get(partition, {}),
            )
            for partition, reading in readings.items()
        }
        uncovered = [
            partition
            for partition, result in settled.items()
            if isinstance(result.position, Doubt) and result.position.uncovered
        ]
        if uncovered:
            wholes = self._segments.wholes(keys[partition] for partition in uncovered)
            claims = {partition: self._identity.own(wholes[keys[partition]]) for partition in uncovered}
            shown = self._probe.evidence(
                {partition: unsettled(own) for partition, own in claims.items()},
                {partition: readings[partition].log_start for partition in uncovered},
            )
            for partition, own in claims.items():
                settled[partition] = self._decide(partition, readings[partition], own, shown[partition], whole=True)
        return settled

    def _decide(
        self,
        partition: TopicPartition,
        reading: TargetReading,
        claims: Sequence[Segment],
        evidence: Evidence,
        *,
        whole: bool = False,
    ) -> Settled:
        sequence = appended(reading.last_sequence, reading.log_end_after, claims)
        ruling = arbitrate(claims, evidence, TargetLog(reading.log_start, reading.log_end_after, sequence))
        if ruling.undecided:
            return Settled(Doubt(ruling.undecided, wait=ruling.wait))
        between = foreign_between(self._probe, partition, ruling)
        self._note(partition, reading, between)
        if ruling.confirmed or ruling.false:
            claimed = [claim for claim in ruling.confirmed if claim not in ruling.healed]
            self._segments.settle([*claimed, *ruling.moved], ruling.false)
        if ruling.healed:
            self._segments.settle(ruling.healed, ())
        tail = self._known_tail(partition, reading, ruling.true)
        if tail is None:
            return Settled(
                Doubt(
                    "somebody else wrote to the target partition, and what retention deleted of it is not known: "
                    "delete the target topic to have it copied again"
                )
            )
        position = decide(reading, ruling.true, tail, whole=whole)
        if not isinstance(position, Doubt) or not position.surplus:
            end = reading.log_end_after
            stretches = (*between, ForeignRecords(end - tail, end)) if tail else between
            return Settled(position, self._told(partition, reading, stretches))
        if reading.log_end_before != reading.log_end_after:
            return Settled(dataclasses.replace(position, wait=True))
        if reading.high_watermark < reading.log_end_after:
            reason = "the target's log ends with records that its replicas have not confirmed: nobody may read them yet"
            return Settled(Doubt(reason, wait=True, unreplicated=True))
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
            return Settled(position)
        self._note(partition, reading, explained.stretches[: len(explained.claims)])
        if explained.claims:
            self._segments.settle(explained.claims, ())
        position = decide(reading, (*ruling.true, *explained.claims), explained.tail)
        return Settled(position, self._told(partition, reading, between + explained.stretches))

    def _note(self, partition: TopicPartition, reading: TargetReading, stretches: Sequence[ForeignRecords]) -> None:
        for stretch in self._told(partition, reading, stretches):
            self._foreign.note(partition, stretch)

    def _told(
        self, partition: TopicPartition, reading: TargetReading, stretches: Sequence[ForeignRecords]
    ) -> tuple[ForeignRecords, ...]:
        """The same, our own fences told from what somebody else wrote."""
        if not stretches or not self._probe.was_fenced:
            return tuple(stretches)
        fences = self._fences(partition, reading, min(stretches).first, max(stretch.end for stretch in stretches))
        return tuple(part for stretch in stretches for part in told_apart(stretch, fences))

    def _fences(self, partition: TopicPartition, reading: TargetReading, first: int, end: int) -> list[tuple[int, int]]:
        """In a range of offsets: those that the log shows; and all that were noted before it lost them."""
        noted = [(note.first, note.end) for note in self._foreign.known(partition) if note.fence]
        shown = self._probe.fences(partition, max(first, reading.log_start), end)
        return [*noted, *shown]

    def _fences_only(self, partition: TopicPartition, reading: TargetReading) -> int:
        """How many offsets a log has where nothing ever got through before the fences, if it has nothing else."""
        if not reading.has_records or not self._probe.was_fenced:
            return 0
        if not self._probe.fences_only(partition, reading.log_start, reading.log_end_after):
            return 0
        whole = ForeignRecords(reading.log_start, reading.log_end_after)
        parts = self._told(partition, reading, [whole])
        return whole.end - whole.first if all(part.fence for part in parts) else 0

    def _known_tail(self, partition: TopicPartition, reading: TargetReading, claims: Sequence[Segment]) -> int | None:
        """Foreign offsets at the log's end, where it holds nothing of ours and its end alone tells the position.

        Behind a claim that says only where we begin nothing is ours: what is sent first there is claimed. But as long
        as the log shows records there they may be another mirror's, which nobody may pass over.
        """
        end = reading.log_end_after
        if reading.last_sequence is not None or reading.log_end_before != end:
            return 0
        if not claims:
            return self._fences_only(partition, reading)
        newest = (reached(claims, reading) or claims[:1])[-1]  # what the target lost says nothing of its end
        if newest.is_start and reading.log_start == end:
            return max(end - newest.downstream, 0)
        known = self._foreign.known(partition)
        if self._probe.was_fenced:
            known += [ForeignRecords(*fence) for fence in self._fences(partition, reading, newest.downstream, end)]
        tail = foreign_tail(known, newest.downstream, end)
        unknown = (
            stretch.first >= reading.log_start and self._probe.foreign_throughout(partition, stretch.first, stretch.end)
            for stretch in tail.unknown
        )
        return tail.offsets if all(unknown) else None


def settle_replicated(
    settler: Settler,
    reader: TargetReader,
    leader: int,
    readings: Mapping[TopicPartition, TargetReading],
    topic_ids: Mapping[str, bytes],
    evidence: Mapping[TopicPartition, Evidence],
) -> dict[TopicPartition, Settled]:
    """As `Settler.settle`; where a log ends above its high watermark that is waited for a moment. Raises the same."""
    settled = settler.settle(readings, topic_ids, evidence)
    lagging = {
        partition: readings[partition]
        for partition, result in settled.items()
        if isinstance(result.position, Doubt) and result.position.unreplicated
    }
    if lagging and (replicated := reader.replicated(lagging, leader)):
        settled |= settler.settle(replicated, topic_ids, settler.evidence(replicated, topic_ids))
    return settled
