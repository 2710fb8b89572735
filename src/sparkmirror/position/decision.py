"""The position of a flow in one target partition, decided from what the target says (R9).

A pure function over readings: which sequence comes next, which upstream offset that is, and at which
downstream offset it will land.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from sparkmirror.durable.claims import Segment
from sparkmirror.wire.batches import SEQUENCE_MODULUS


@dataclass(frozen=True, slots=True)
class ProducerState:
    """The leader's entry for our producer id and epoch (DescribeProducers)."""

    last_sequence: int
    last_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class LogTail:
    """The last batch of our producer id in the log; only foreign batches follow it."""

    last_sequence: int
    next_offset: int
    max_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class TargetReading:
    """What the target's leader said about one partition, in this order: log end, state, tail, log end."""

    log_start: int
    log_end_before: int
    """The leader's own log end, above the high watermark too."""
    state: ProducerState | None
    tail: LogTail | None
    """Only read where there is no state."""
    log_end_after: int
    has_records: bool
    high_watermark: int
    """Read last."""

    @property
    def last_sequence(self) -> int | None:
        """Of our records, as far as it is known; wrapped."""
        known = self.state or self.tail
        return known.last_sequence if known else None


@dataclass(frozen=True, slots=True)
class Position:
    """Where the flow goes on in one partition."""

    sequence: int
    """Of the next record; not wrapped."""
    upstream: int | None
    """Offset of the next record at the source; None: no record was ever copied, the source's start decides."""
    downstream: int
    """Offset that the next record will get."""
    claim_due: bool
    """What is sent next must be claimed first, also if it goes on without a gap."""
    leader_epoch: int
    """Of the last record copied, as the source has it (KIP-320); -1: not known."""
    source_topic_id: bytes | None
    """Of what was copied last; None: nothing ever was."""
    newest_timestamp_ms: int | None
    """Of the producer state; None: there is no state."""
    end: int = -1
    """Downstream: where our records end; somebody else's may follow. -1: there never were any."""
    ours_from: int = -1
    """Downstream: from there to `end` all is ours, by what the leader or the log says; -1: they say nothing."""
    supposed: bool = False
    """That is so only if all that lay behind the newest claim was ours: the log shows none of it any more."""
    lost: int = 0
    """So many records that confirmed claims say were appended are not there any more: the target lost them."""
    lost_to: int = -1
    """Downstream: where the last of these ended; -1: none is known to be lost."""
    unseen: bool = False
    """Only the log's end tells how much was appended behind the newest claim that the log has come to."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """The readings don't settle it. `wait`: something was moving, read again; else it is damage."""

    reason: str
    wait: bool = False
    surplus: int = 0
    """How many records the log holds more than this flow wrote."""
    uncovered: bool = False
    """An older segment is needed than the ones given."""
    unreplicated: bool = False
    """It settles once the high watermark has come to the log's end."""


def decide(
    reading: TargetReading, segments: Sequence[Segment], foreign_tail: int = 0, *, whole: bool = False
) -> Position | Doubt:
    """The position of a partition, or why it can't be told.

    `segments` are the true claims of this flow's producer id for this target topic id and partition (`arbitration`).
    `foreign_tail`: so many offsets at the log's end are known to be somebody else's. `whole`: all segments.
    """
    if not segments:
        return _first(reading, foreign_tail)
    reading = dataclasses.replace(
        reading,
        log_end_before=reading.log_end_before - foreign_tail,
        log_end_after=reading.log_end_after - foreign_tail,
        has_records=reading.has_records and reading.log_start < reading.log_end_after - foreign_tail,
    )
    there = reached(segments, reading)
    first = min(segments, key=_sequence)

    def begins(segment: Segment) -> bool:
        """Whether all that is below it at the target was there before us."""
        return segment.is_start or segment.sequence == (first.sequence if whole else 0)

    newest = max(there, key=_sequence, default=first)
    lowest = newest.sequence + reading.log_end_before - newest.downstream
    highest = newest.sequence + reading.log_end_after - newest.downstream
    supposed = unseen = False
    if reading.state is not None:
        sequence = unwrap(reading.state.last_sequence + 1, near=lowest)
        source = "its producer state"
    elif reading.tail is not None:
        sequence = unwrap(reading.tail.last_sequence + 1, near=lowest)
        source = "the tail of its log"
    elif reading.log_end_before != reading.log_end_after:
        return Doubt("the log is growing without a producer state of ours", wait=True)
    elif reading.has_records and not (reading.log_end_after == newest.downstream and begins(newest)):
        reason = "the target partition holds records, but none that this flow wrote: somebody else writes to it"
        return Doubt(reason, uncovered=reading.log_end_after == newest.downstream and not whole)
    else:
        # Below none: somebody else's records were among what the log has lost altogether.
        sequence = lowest = highest = max(lowest, 0)
        source = "the log end"
        supposed = reading.log_end_after > newest.downstream + newest.announced * newest.confirmed
        all_before = reading.log_end_after == newest.downstream and begins(newest)
        unseen = bool(there) and not (newest.altered or all_before)
    if not lowest <= sequence <= highest:
        return Doubt(_disagreement(source, sequence, lowest, highest), surplus=max(lowest - sequence, 0))
    # What an operator set counts from its own sequence on; of another claim nothing was appended yet there.
    covering = [segment for segment in segments if segment.sequence < sequence + segment.altered]
    segment = max(covering, key=_sequence) if covering else first
    gone = [one for one in segments if one.confirmed and one.sequence + one.announced > sequence]
    lost = max((one.sequence + one.announced - sequence for one in gone), default=0)
    lost_to = max((one.downstream + one.announced for one in gone), default=-1)
    if whole and sequence == 0 < segment.sequence:  # nothing is left, not even what the first claim announced
        return Position(0, None, reading.log_end_after + foreign_tail, True, -1, None, None, lost=lost, lost_to=lost_to)
    if segment.sequence > sequence:
        reason = f"no segment covers sequence {sequence}: the target lost records that were acknowledged"
        return Doubt(reason, uncovered=True)
    # By the newest claim, of which nothing need be there: behind a stretch that is somebody else's it says where.
    downstream = newest.downstream + sequence - newest.sequence + foreign_tail
    end = segment.downstream + sequence - segment.sequence
    return Position(
        sequence,
        segment.next_upstream(sequence),
        downstream,
        foreign_tail > 0 or lost > 0 or sequence - segment.sequence < max(segment.announced, 1),
        segment.source_leader_epoch if covering else -1,
        segment.source_topic_id,
        reading.state.last_timestamp_ms if reading.state else None,
        end,
        -1 if reading.last_sequence is None else segment.downstream,
        supposed,
        lost,
        lost_to,
        unseen,
    )


def reached(claims: Sequence[Segment], reading: TargetReading) -> list[Segment]:
    """Those that the log has come to. Where it lost records, somebody else may have written as far as they once led."""
    sequence = appended(reading.last_sequence, reading.log_end_after, claims)
    return [
        claim
        for claim in claims
        if claim.downstream <= reading.log_end_after and (sequence is None or claim.sequence <= sequence)
    ]


def appended(last_sequence: int | None, log_end: int, claims: Sequence[Segment]) -> int | None:
    """The sequence after our last record, if the leader or the log knows of any; near what any claim leads to."""
    if last_sequence is None:
        return None
    newest = max(claims, key=_sequence, default=None)
    return unwrap(last_sequence + 1, near=newest.sequence + log_end - newest.downstream if newest else 0)


def _sequence(segment: Segment) -> int:
    return segment.sequence


def _first(reading: TargetReading, fences: int) -> Position | Doubt:
    if reading.state is not None or reading.tail is not None:
        return Doubt("records of this flow are at the target, but the segments topic does not know them")
    if reading.log_end_after - reading.log_start > fences:
        return Doubt(
            f"the target partition already holds offsets {reading.log_start} to {reading.log_end_after - 1}, "
            "which this flow did not write; exclude the topic, or delete them if nobody needs them"
        )
    return Position(0, None, reading.log_end_after, True, -1, None, None)


def unwrap(wrapped: int, near: int) -> int:
    """The count whose wrapped form is given and that is nearest to `near`."""
    ahead = (wrapped - near) % SEQUENCE_MODULUS
    return near + (ahead if ahead < SEQUENCE_MODULUS // 2 else ahead - SEQUENCE_MODULUS)


def _disagreement(source: str, sequence: int, lowest: int, highest: int) -> str:
    if sequence < lowest:
        return (
            f"the target holds {lowest - sequence} record(s) more than this flow wrote "
            f"({source}: {sequence}, log end: {lowest}): somebody else writes to it, or a record is there twice"
        )
    return (
        f"the target holds {sequence - highest} record(s) fewer than this flow wrote "
        f"({source}: {sequence}, log end: {highest}): records are missing"
    )
