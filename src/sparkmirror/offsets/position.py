"""The position of a flow in one target partition, decided from what the target says (R9).

A pure function over readings: which sequence comes next, which upstream offset that is, and at which
downstream offset it will land.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sparkmirror.offsets.segments import Segment
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


@dataclass(frozen=True, slots=True)
class Position:
    """Where the flow goes on in one partition."""

    sequence: int
    """Of the next record; not wrapped."""
    upstream: int | None
    """Offset of the next record at the source; None: no record was ever copied, the source's start decides."""
    downstream: int
    """Offset that the next record will get."""
    segment: Segment | None
    """The claim that covers the position; None: one is due before anything is sent."""
    newest_timestamp_ms: int | None
    """Of the producer state; None: there is no state."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """The readings don't settle it. `wait`: something was moving, read again; else it is damage."""

    reason: str
    wait: bool = False


def decide(reading: TargetReading, segments: Sequence[Segment]) -> Position | Doubt:
    """The position of a partition, or why it can't be told.

    `segments` are the true claims of this flow's producer id for this target topic id and partition.
    """
    if not segments:
        return _first(reading)
    newest = max(segments, key=lambda segment: segment.sequence)
    lowest = newest.sequence + reading.log_end_before - newest.downstream
    highest = newest.sequence + reading.log_end_after - newest.downstream
    if reading.state is not None:
        sequence = _unwrap(reading.state.last_sequence + 1, near=lowest)
        source = "its producer state"
    elif reading.tail is not None:
        sequence = _unwrap(reading.tail.last_sequence + 1, near=lowest)
        source = "the tail of its log"
    elif reading.log_end_before != reading.log_end_after:
        return Doubt("the log is growing without a producer state of ours", wait=True)
    elif reading.has_records:
        return Doubt("the target partition holds records, but none that this flow wrote: somebody else writes to it")
    else:
        sequence = lowest
        source = "the log end"
    if not lowest <= sequence <= highest:
        return Doubt(_disagreement(source, sequence, lowest, highest))
    covering = [segment for segment in segments if segment.sequence <= sequence]
    if not covering:
        return Doubt(f"no segment covers sequence {sequence}: the target lost records that were acknowledged")
    segment = max(covering, key=lambda one: one.sequence)
    ahead = sequence - segment.sequence
    return Position(
        sequence,
        segment.upstream + ahead,
        segment.downstream + ahead,
        segment,
        reading.state.last_timestamp_ms if reading.state else None,
    )


def _first(reading: TargetReading) -> Position | Doubt:
    if reading.state is not None or reading.tail is not None:
        return Doubt("records of this flow are at the target, but the segments topic does not know them")
    if reading.has_records:
        return Doubt(
            f"the target partition already holds offsets {reading.log_start} to {reading.log_end_after - 1}, "
            "which this flow did not write; delete them, or exclude the topic"
        )
    return Position(0, None, reading.log_end_after, None, None)


def _unwrap(wrapped: int, near: int) -> int:
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


def true_claims(segments: Sequence[Segment]) -> list[Segment] | None:
    """The claims where at most one stands for each sequence, or equal ones; None if the log must decide (R14)."""
    chosen: dict[int, Segment] = {}
    for segment in segments:
        other = chosen.setdefault(segment.sequence, segment)
        if (other.upstream, other.downstream, other.source_topic_id) != (
            segment.upstream,
            segment.downstream,
            segment.source_topic_id,
        ):
            return None
    return list(chosen.values())
