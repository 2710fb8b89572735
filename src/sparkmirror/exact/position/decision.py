"""A flow's position in a target partition, decided from readings (R9).

`decide` is a pure function over readings at the target. The position says the next sequence, the next record's upstream
offset, and the downstream offset that it will get.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field

from sparkmirror.exact.durable.claims import Claim
from sparkmirror.kafka.wire.batches import SEQUENCE_MODULUS

SEGMENTS_LOST = 'docs/losses.md, "A lost segments topic"'


@dataclass(frozen=True, slots=True)
class ProducerState:
    """The leader's entry for the flow's producer id and epoch (DescribeProducers)."""

    last_sequence: int
    last_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class LogTail:
    """The flow's last batch in the log; only foreign batches follow."""

    last_sequence: int
    next_offset: int
    max_timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetReading:
    """A partition, as the target's leader describes it.

    The order of reading is log end, state, tail, log end.
    """

    log_start: int
    log_end_before: int
    """The leader's log end, which may be above the high watermark."""
    state: ProducerState | None
    tail: LogTail | None
    """The log's tail; only read without a state."""
    log_end_after: int
    has_records: bool
    high_watermark: int
    """High watermark, read last."""

    @property
    def last_sequence(self) -> int | None:
        """The flow's last sequence, if known; wrapped."""
        known = self.state or self.tail
        return known.last_sequence if known else None

    def is_replicated(self, position: Position) -> bool:
        """True if all records before a position are below the high watermark (R10)."""
        return position.downstream <= self.high_watermark


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Position at which the flow continues in one partition."""

    sequence: int
    """The next record's sequence; not wrapped."""
    upstream: int | None
    """The next record's offset at the source.

    None: no record was ever copied, and the source's start decides.
    """
    downstream: int
    """Offset that the next record will get at the target."""
    claim_due: bool
    """True if the next batch needs a claim, even without a gap."""
    leader_epoch: int
    """Partition leader epoch of the last copied record; -1: not known.

    The epoch is the source's (KIP-320).
    """
    source_topic_id: bytes | None
    """The last copied record's source topic id; None: no record was ever copied."""
    newest_timestamp_ms: int | None
    """The producer state's timestamp; None: no state."""
    end: int = -1
    """Downstream offset at which the flow's records end.

    Foreign records may follow. -1: the flow never had a record here.
    """
    ours_from: int = -1
    """Downstream offset from which to `end` all records are the flow's.

    The leader or the log says so; -1: neither does.
    """
    supposed: bool = False
    """True if the position is derived from the log's end alone.

    The derivation assumes that every offset behind the newest claim was the flow's: the log shows none of these records
    any more.
    """
    lost: int = 0
    """Number of records that the target lost although confirmed claims have them."""
    lost_to: int = -1
    """Downstream offset where the lost records end; -1: no known loss."""
    unseen: bool = False
    """True if only the log's end tells how many records were appended.

    Counting starts at the newest claim that the log has come to.
    """
    last_claim: Claim | None = field(default=None, compare=False, repr=False)
    """True claim that tells about the last copied record; None: no record was copied."""

    @property
    def unannounced(self) -> int:
        """Number of records that only a claim's endless last run covers."""
        claim = self.last_claim
        return 0 if claim is None else max(self.sequence - claim.sequence - claim.announced, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """Reason for which the readings give no position.

    With `wait` something was moving, and the caller reads again. Without `wait` the doubt is damage.
    """

    reason: str
    wait: bool = False
    surplus: int = 0
    """Number of records in the log beyond those that this flow wrote."""
    uncovered: bool = False
    """True if the decision needs older claims than the given claims."""
    unreplicated: bool = False
    """True if the high watermark has yet to come to the log's end."""
    unclaimed: bool = False
    """True if the log holds records, and nothing shows the flow's writing.

    Neither a claim, nor a record from the flow's present producer.
    """
    claims_lost: bool = False
    """True if the segments topic has lost claims on the flow's records."""


def decide(
    reading: TargetReading, claims: Sequence[Claim], foreign_tail: int = 0, *, whole: bool = False
) -> Position | Doubt:
    """Decide a partition's position, or return the reason for a doubt.

    `claims` are the true claims of this flow's producer id for this target topic id and partition (`arbitration`).
    `foreign_tail` is how many offsets at the log's end are known to be foreign. `whole` says that `claims` has all
    claims, and not only the newest.
    """
    if not claims:
        return _first(reading, foreign_tail)
    reading = dataclasses.replace(
        reading,
        log_end_before=reading.log_end_before - foreign_tail,
        log_end_after=reading.log_end_after - foreign_tail,
        has_records=reading.has_records and reading.log_start < reading.log_end_after - foreign_tail,
    )
    there = reached(claims, reading)
    first = min(claims, key=_sequence)

    def begins(claim: Claim) -> bool:
        """Tell whether all target records below the claim were there before this flow."""
        return claim.is_start or claim.sequence == (first.sequence if whole else 0)

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
        return Doubt(reason="the log is growing without a producer state of this flow", wait=True)
    elif reading.has_records and not (reading.log_end_after == newest.downstream and begins(newest)):
        reason = "the target partition holds records, but none that this flow wrote: a foreign producer writes to it"
        return Doubt(reason=reason, uncovered=reading.log_end_after == newest.downstream and not whole)
    else:
        # A sequence below 0 shows that foreign records were among the records that the log has lost altogether.
        sequence = lowest = highest = max(lowest, 0)
        source = "the log end"
        supposed = reading.log_end_after > newest.downstream + newest.announced * newest.confirmed
        all_before = reading.log_end_after == newest.downstream and begins(newest)
        unseen = bool(there) and not (newest.altered or all_before)
    if not lowest <= sequence <= highest:
        return Doubt(reason=_disagreement(source, sequence, lowest, highest), surplus=max(lowest - sequence, 0))
    # A claim with an altered offset counts from its own sequence on. Of another claim at this sequence no record was
    # appended yet.
    covering = [claim for claim in claims if claim.sequence < sequence + claim.altered]
    last = max(covering, key=_sequence) if covering else first
    gone = [claim for claim in claims if claim.confirmed and claim.sequence + claim.announced > sequence]
    lost = max((claim.sequence + claim.announced - sequence for claim in gone), default=0)
    lost_to = max((claim.downstream + claim.announced for claim in gone), default=-1)
    if whole and sequence == 0 < last.sequence:  # no record is left, not even those of the first claim
        return Position(
            sequence=0,
            upstream=None,
            downstream=reading.log_end_after + foreign_tail,
            claim_due=True,
            leader_epoch=-1,
            source_topic_id=None,
            newest_timestamp_ms=None,
            lost=lost,
            lost_to=lost_to,
        )
    if last.sequence > sequence:
        reason = f"no claim covers sequence {sequence}: the target lost records that were acknowledged"
        return Doubt(reason=reason, uncovered=True)
    # The offset follows from the newest claim, even if no record of the claim is in the log: behind foreign records the
    # newest claim tells the offset.
    downstream = newest.downstream + sequence - newest.sequence + foreign_tail
    end = last.downstream + sequence - last.sequence
    return Position(
        sequence=sequence,
        upstream=last.next_upstream(sequence),
        downstream=downstream,
        claim_due=foreign_tail > 0 or lost > 0 or sequence - last.sequence < max(last.announced, 1),
        leader_epoch=last.source_leader_epoch if covering else -1,
        source_topic_id=last.source_topic_id,
        newest_timestamp_ms=reading.state.last_timestamp_ms if reading.state else None,
        end=end,
        ours_from=-1 if reading.last_sequence is None else last.downstream,
        supposed=supposed,
        lost=lost,
        lost_to=lost_to,
        unseen=unseen,
        last_claim=last if covering else None,
    )


def reached(claims: Sequence[Claim], reading: TargetReading) -> list[Claim]:
    """Return the claims that the log has come to.

    The sequences are compared, too: where the log lost records, a foreign producer may have written as far as the lost
    claims once led.
    """
    sequence = appended(reading.last_sequence, reading.log_end_after, claims)
    return [
        claim
        for claim in claims
        if claim.downstream <= reading.log_end_after and (sequence is None or claim.sequence <= sequence)
    ]


def appended(last_sequence: int | None, log_end: int, claims: Sequence[Claim]) -> int | None:
    """Return the sequence after the flow's last record, or None.

    None if neither the leader nor the log knows of a record. The wrapped sequence is taken near the sequence that the
    newest claim has at the log's end.
    """
    if last_sequence is None:
        return None
    newest = max(claims, key=_sequence, default=None)
    return unwrap(last_sequence + 1, near=newest.sequence + log_end - newest.downstream if newest else 0)


def _sequence(claim: Claim) -> int:
    return claim.sequence


def _first(reading: TargetReading, foreign_tail: int) -> Position | Doubt:
    if reading.state is not None or reading.tail is not None:
        return Doubt(
            reason="records of this flow are at the target, but the segments topic does not know them: it lost their "
            f"claims; delete the target topic to have it copied again ({SEGMENTS_LOST})",
            claims_lost=True,
        )
    if reading.log_end_after - reading.log_start > foreign_tail:
        return Doubt(
            reason=f"the target partition already holds offsets {reading.log_start} to {reading.log_end_after - 1}, "
            "which this flow has no record of writing; exclude the topic, or delete them if no consumer needs them",
            unclaimed=True,
        )
    return Position(
        sequence=0,
        upstream=None,
        downstream=reading.log_end_after,
        claim_due=True,
        leader_epoch=-1,
        source_topic_id=None,
        newest_timestamp_ms=None,
    )


def unwrap(wrapped: int, near: int) -> int:
    """Return the unwrapped sequence nearest to `near`."""
    ahead = (wrapped - near) % SEQUENCE_MODULUS
    return near + (ahead if ahead < SEQUENCE_MODULUS // 2 else ahead - SEQUENCE_MODULUS)


def _disagreement(source: str, sequence: int, lowest: int, highest: int) -> str:
    if sequence < lowest:
        return (
            f"the target holds {lowest - sequence} record(s) more than this flow wrote "
            f"({source}: {sequence}, log end: {lowest}): a foreign producer writes to it, or a record is there twice"
        )
    return (
        f"the target holds {sequence - highest} record(s) fewer than this flow wrote "
        f"({source}: {sequence}, log end: {highest}): records are missing"
    )
