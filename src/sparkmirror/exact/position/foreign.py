"""Search for foreign records in a target partition, and claims behind them.

Between two foreign records the flow's batches lie one after the other, so downstream minus sequence never falls.
Bisection finds the places where downstream minus sequence rises.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.position.arbitration import Ruling
from sparkmirror.exact.position.log_probe import LogProbe
from sparkmirror.exact.position.matching import StoredBatch
from sparkmirror.kafka.wire.topic_partition import TopicPartition


class ForeignRecords(NamedTuple):
    """Stretch of target offsets without the flow's records."""

    first: int
    end: int
    fence: bool = False
    """True for release 0.1's marker fences (`durable.identity`).

    A stretch with fences has no foreign producer's records.
    """


def told_apart(stretch: ForeignRecords, fences: Iterable[tuple[int, int]]) -> list[ForeignRecords]:
    """Split a stretch into fences and foreign producers' records, in order."""
    parts, at = [], stretch.first
    for first, end in sorted((max(first, stretch.first), min(end, stretch.end)) for first, end in fences):
        first = max(first, at)
        if first < end:
            parts += [ForeignRecords(at, first)] if at < first else []
            parts.append(ForeignRecords(first, end, fence=True))
            at = end
    return [*parts, ForeignRecords(at, stretch.end)] if at < stretch.end else parts


class Explained(NamedTuple):
    """Explains the target's offsets beyond the flow's records."""

    claims: tuple[Claim, ...]
    """Confirmed claims on the flow's records after each stretch.

    The log shows these records.
    """
    stretches: tuple[ForeignRecords, ...]
    tail: int
    """Foreign offset count at the log's end."""


def explain(
    probe: LogProbe,
    partition: TopicPartition,
    true: tuple[Claim, ...],
    sequence: int,
    log_start: int,
    log_end: int,
    *,
    shown_to: int | None = None,
) -> Explained | None:
    """Account for every offset between the newest claim's start and the log's end.

    Return None if the flow's records are there twice, so that no account is possible. `true` are the true claims, in
    order; all before the newest is decided. `sequence` is the flow's next sequence. `shown_to` is where the flow's last
    batch ends, as far as the log shows; records that compaction took behind may have been the flow's.
    """
    newest = true[-1]
    claims: list[Claim] = []
    stretches: list[ForeignRecords] = []
    at, shift = max(newest.downstream, log_start), newest.downstream - newest.sequence
    surplus = (log_end - sequence) - shift
    while surplus:
        dense = shown_to is not None and shown_to - sequence == shift  # so the flow's records lie without a gap
        jump = None if dense else _first_jump(probe, partition, at, log_end, shift, sequence)
        batch = jump or StoredBatch(sequence, log_end, 0, 0, 0, 0, 0, 0, 0)
        before = batch.sequence + shift
        foreign = probe.foreign_only if shown_to is None or jump is not None else probe.foreign_throughout
        if before > batch.offset or not foreign(partition, before, batch.offset):
            return None
        stretches.append(ForeignRecords(before, batch.offset))
        if jump is None:
            return Explained(tuple(claims), tuple(stretches), batch.offset - before)
        claim = newest.between(batch.sequence, sequence, batch.offset)
        claims.append(claim)
        at, shift = batch.offset, batch.offset - batch.sequence
        surplus = (log_end - sequence) - shift
    return Explained(tuple(claims), tuple(stretches), 0)


class ForeignTail(NamedTuple):
    """Foreign offsets at a log's end, where the log has none of the flow's records."""

    offsets: int
    """Offset count in the tail, with the unknown parts."""
    unknown: tuple[ForeignRecords, ...]
    """Parts of the tail without a note in the ledger."""


def foreign_tail(known: Iterable[ForeignRecords], begin: int, log_end: int) -> ForeignTail:
    """Return the foreign tail, from the first `known` stretch to the log's end.

    Retention may have deleted any part. Offsets below `begin`, where the flow's newest claim starts, are accounted for.
    Behind a noted stretch the flow has no record: the record would have been claimed.
    """
    behind = [ForeignRecords(max(stretch.first, begin), min(stretch.end, log_end)) for stretch in known]
    behind = sorted(stretch for stretch in behind if stretch.first < stretch.end)
    if not behind:
        return ForeignTail(0, ())
    unknown = []
    at = behind[0].first
    for stretch in [*behind, ForeignRecords(log_end, log_end)]:
        if stretch.first > at:
            unknown.append(ForeignRecords(at, stretch.first))
        at = max(at, stretch.end)
    return ForeignTail(log_end - behind[0].first, tuple(unknown))


def foreign_between(
    probe: LogProbe, partition: TopicPartition, ruling: Ruling, claims: Iterable[Claim]
) -> tuple[ForeignRecords, ...]:
    """Return the foreign stretches right before claims that the log has just decided.

    The claims' records landed behind these stretches. `claims` are all of the flow's: offsets below the start of
    a turn that begins with such a claim are of the opposite flow's turn, and not foreign.
    """
    begun: dict[int, int] = {}
    for start in claims:
        if start.turn:
            begun[start.sequence] = max(begun.get(start.sequence, 0), start.downstream)
    stretches = []
    for before, claim in zip((None, *ruling.true), ruling.true, strict=False):
        begin = begun.get(claim.sequence, 0)
        if before is None and not begin:
            continue
        first = begin if before is None else max(before.downstream + claim.sequence - before.sequence, begin)
        if (
            first < claim.downstream
            and claim.batches
            and (not claim.confirmed or claim in ruling.confirmed)
            and probe.foreign_only(partition, first, claim.downstream)
        ):
            stretches.append(ForeignRecords(first, claim.downstream))
    return tuple(stretches)


def _first_jump(
    probe: LogProbe, partition: TopicPartition, low: int, high: int, shift: int, near: int
) -> StoredBatch | None:
    """Return the flow's first batch whose offset less sequence exceeds `shift`.

    The search covers the offsets from `low` to before `high`.
    """
    jump: StoredBatch | None = None
    while low < high:
        middle = (low + high) // 2
        batch = probe.next_of_ours(partition, middle, near)
        if batch is None or batch.offset >= high:
            high = middle
        elif batch.offset - batch.sequence > shift:
            jump = batch
            high = middle
        else:
            low = batch.offset + batch.span
    return jump
