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
            where: claims
            for where in readings
            if (claims := unsettled(self._identity.own(self._segments.claims(topic_ids[where[0]], where[1]))))
        }
        starts = {where: readings[where].log_start for where in asked}
        return dict(self._probe.evidence(asked, starts)) if asked else {}

    def settle(
        self,
        readings: Mapping[TopicPartition, TargetReading],
        topic_ids: Mapping[str, bytes],
        evidence: Mapping[TopicPartition, Evidence],
    ) -> dict[TopicPartition, Settled]:
        """The position of each of these partitions; raises `Superseded`."""
        assert_present(self._segments, self._identity)  # asked after the logs were read
        keys = {where: (topic_ids[where[0]], where[1]) for where in readings}
        settled = {
            where: self._decide(
                where, reading, self._identity.own(self._segments.claims(*keys[where])), evidence.get(where, {})
            )
            for where, reading in readings.items()
        }
        uncovered = [
            where for where, one in settled.items() if isinstance(one.position, Doubt) and one.position.uncovered
        ]
        if uncovered:
            wholes = self._segments.wholes(keys[where] for where in uncovered)
            claims = {where: self._identity.own(wholes[keys[where]]) for where in uncovered}
            found = self._probe.evidence(
                {where: unsettled(some) for where, some in claims.items()},
                {where: readings[where].log_start for where in uncovered},
            )
            for where, some in claims.items():
                settled[where] = self._decide(where, readings[where], some, found[where], whole=True)
        return settled

    def _decide(
        self,
        where: TopicPartition,
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
        between = foreign_between(self._probe, where, ruling)
        self._note(where, reading, between)
        if ruling.confirmed or ruling.false:
            claimed = [claim for claim in ruling.confirmed if claim not in ruling.healed]
            self._segments.settle([*claimed, *ruling.moved], ruling.false)
        if ruling.healed:
            self._segments.settle(ruling.healed, ())
        tail = self._known_tail(where, reading, ruling.true)
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
            return Settled(position, self._told(where, reading, stretches))
        if reading.log_end_before != reading.log_end_after:
            return Settled(dataclasses.replace(position, wait=True))
        if reading.high_watermark < reading.log_end_after:
            reason = "the target's log ends with records that its replicas have not confirmed: nobody may read them yet"
            return Settled(Doubt(reason, wait=True, unreplicated=True))
        there = tuple(reached(ruling.true, reading)) or ruling.true[:1]
        sequence = reading.log_end_after - there[-1].downstream + there[-1].sequence - position.surplus
        found = explain(
            self._probe,
            where,
            there,
            sequence,
            reading.log_start,
            reading.log_end_after,
            shown_to=reading.tail.next_offset if reading.state is None and reading.tail else None,
        )
        if found is None:
            return Settled(position)
        self._note(where, reading, found.stretches[: len(found.claims)])
        if found.claims:
            self._segments.settle(found.claims, ())
        position = decide(reading, (*ruling.true, *found.claims), found.tail)
        return Settled(position, self._told(where, reading, between + found.stretches))

    def _note(self, where: TopicPartition, reading: TargetReading, stretches: Sequence[ForeignRecords]) -> None:
        for stretch in self._told(where, reading, stretches):
            self._foreign.note(where, stretch)

    def _told(
        self, where: TopicPartition, reading: TargetReading, stretches: Sequence[ForeignRecords]
    ) -> tuple[ForeignRecords, ...]:
        """The same, our own fences told from what somebody else wrote."""
        if not stretches or not self._probe.was_fenced:
            return tuple(stretches)
        fences = self._fences(where, reading, min(stretches).first, max(one.end for one in stretches))
        return tuple(part for stretch in stretches for part in told_apart(stretch, fences))

    def _fences(self, where: TopicPartition, reading: TargetReading, first: int, end: int) -> list[tuple[int, int]]:
        """In a range of offsets: those that the log shows; and all that were noted before it lost them."""
        noted = [(one.first, one.end) for one in self._foreign.known(where) if one.fence]
        shown = self._probe.fences(where, max(first, reading.log_start), end)
        return [*noted, *shown]

    def _fences_only(self, where: TopicPartition, reading: TargetReading) -> int:
        """How many offsets a log has where nothing ever got through before the fences, if it has nothing else."""
        if not reading.has_records or not self._probe.was_fenced:
            return 0
        if not self._probe.fences_only(where, reading.log_start, reading.log_end_after):
            return 0
        whole = ForeignRecords(reading.log_start, reading.log_end_after)
        parts = self._told(where, reading, [whole])
        return whole.end - whole.first if all(part.fence for part in parts) else 0

    def _known_tail(self, where: TopicPartition, reading: TargetReading, claims: Sequence[Segment]) -> int | None:
        """Foreign offsets at the log's end, where it holds nothing of ours and its end alone tells the position.

        Behind a claim that says only where we begin nothing is ours: what is sent first there is claimed. But as long
        as the log shows records there they may be another mirror's, which nobody may pass over.
        """
        end = reading.log_end_after
        if reading.last_sequence is not None or reading.log_end_before != end:
            return 0
        if not claims:
            return self._fences_only(where, reading)
        newest = (reached(claims, reading) or claims[:1])[-1]  # what the target lost says nothing of its end
        if newest.is_start and reading.log_start == end:
            return max(end - newest.downstream, 0)
        known = self._foreign.known(where)
        if self._probe.was_fenced:
            known += [ForeignRecords(*fence) for fence in self._fences(where, reading, newest.downstream, end)]
        tail = foreign_tail(known, newest.downstream, end)
        unknown = (
            one.first >= reading.log_start and self._probe.foreign_throughout(where, one.first, one.end)
            for one in tail.unknown
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
        where: readings[where]
        for where, one in settled.items()
        if isinstance(one.position, Doubt) and one.position.unreplicated
    }
    if lagging and (replicated := reader.replicated(lagging, leader)):
        settled |= settler.settle(replicated, topic_ids, settler.evidence(replicated, topic_ids))
    return settled
