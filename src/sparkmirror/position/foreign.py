"""Somebody else's records in a target partition: where they are, and the claims that step over them.

Between two foreign records our batches lie one after the other, so downstream minus sequence never falls; the
places where it rises are found by bisection.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from sparkmirror.durable.claims import Segment
from sparkmirror.position.arbitration import Ruling
from sparkmirror.position.log_probe import LogProbe
from sparkmirror.position.matching import StoredBatch
from sparkmirror.wire.topic_partition import TopicPartition


class ForeignRecords(NamedTuple):
    """A stretch of offsets that hold no records of ours."""

    first: int
    end: int
    fence: bool = False
    """Marker fences of release 0.1 (`durable.identity`), and no foreign producer's records."""


def told_apart(stretch: ForeignRecords, fences: Iterable[tuple[int, int]]) -> list[ForeignRecords]:
    """The parts of a stretch that are fences, and those that somebody else wrote, in order."""
    parts, at = [], stretch.first
    for first, end in sorted((max(first, stretch.first), min(end, stretch.end)) for first, end in fences):
        first = max(first, at)
        if first < end:
            parts += [ForeignRecords(at, first)] if at < first else []
            parts.append(ForeignRecords(first, end, fence=True))
            at = end
    return [*parts, ForeignRecords(at, stretch.end)] if at < stretch.end else parts


class Explained(NamedTuple):
    """What accounts for offsets that are more than we wrote."""

    claims: tuple[Segment, ...]
    """Where we go on after each stretch; confirmed, the log shows them."""
    stretches: tuple[ForeignRecords, ...]
    tail: int
    """Offsets at the log's end that are foreign."""


def explain(
    probe: LogProbe,
    where: TopicPartition,
    segments: tuple[Segment, ...],
    sequence: int,
    log_start: int,
    log_end: int,
    *,
    shown_to: int | None = None,
) -> Explained | None:
    """Account for every offset between the newest segment's start and the log's end.

    None if that can't be: records of ours are there twice. `sequence` is the next one of ours. `shown_to`: where our
    last batch ends, as far as the log shows; what compaction took behind that may have been ours. `segments` are the
    true claims, in order, and what is before the newest is settled.
    """
    newest = segments[-1]
    claims: list[Segment] = []
    stretches: list[ForeignRecords] = []
    at, shift = max(newest.downstream, log_start), newest.downstream - newest.sequence
    surplus = (log_end - sequence) - shift
    while surplus:
        dense = shown_to is not None and shown_to - sequence == shift  # so nothing lies between ours
        jump = None if dense else _first_jump(probe, where, at, log_end, shift, sequence)
        found = jump or StoredBatch(sequence, log_end, 0, 0, 0, 0, 0, 0, 0)
        before = found.sequence + shift
        foreign = probe.foreign_only if shown_to is None or jump is not None else probe.foreign_throughout
        if before > found.offset or not foreign(where, before, found.offset):
            return None
        stretches.append(ForeignRecords(before, found.offset))
        if jump is None:
            return Explained(tuple(claims), tuple(stretches), found.offset - before)
        segment = newest.between(found.sequence, sequence, found.offset)
        claims.append(segment)
        at, shift = found.offset, found.offset - found.sequence
        surplus = (log_end - sequence) - shift
    return Explained(tuple(claims), tuple(stretches), 0)


class ForeignTail(NamedTuple):
    """What is foreign at the end of a log that holds nothing of ours any more."""

    offsets: int
    unknown: tuple[ForeignRecords, ...]
    """Parts of it that nobody has noted."""


def foreign_tail(known: Iterable[ForeignRecords], begin: int, log_end: int) -> ForeignTail:
    """From the first of the stretches `known` on to a log's end, retention may have deleted any of it.

    What lies below `begin`, where our newest claim does, is accounted for. Behind a stretch that was noted nothing of
    ours can be: it would have been claimed.
    """
    behind = [ForeignRecords(max(one.first, begin), min(one.end, log_end)) for one in known]
    behind = sorted(one for one in behind if one.first < one.end)
    if not behind:
        return ForeignTail(0, ())
    unknown = []
    at = behind[0].first
    for one in [*behind, ForeignRecords(log_end, log_end)]:
        if one.first > at:
            unknown.append(ForeignRecords(at, one.first))
        at = max(at, one.end)
    return ForeignTail(log_end - behind[0].first, tuple(unknown))


def foreign_between(probe: LogProbe, where: TopicPartition, ruling: Ruling) -> tuple[ForeignRecords, ...]:
    """The stretches right before claims that the log has just decided: what those hold landed behind them."""
    found = []
    for before, claim in pairwise(ruling.true):
        first = before.downstream + claim.sequence - before.sequence
        if (
            first < claim.downstream
            and claim.batches
            and (not claim.confirmed or claim in ruling.confirmed)
            and probe.foreign_only(where, first, claim.downstream)
        ):
            found.append(ForeignRecords(first, claim.downstream))
    return tuple(found)


def _first_jump(
    probe: LogProbe, where: TopicPartition, low: int, high: int, shift: int, near: int
) -> StoredBatch | None:
    """The first batch of ours in a range of offsets that lies farther behind its sequence than `shift`."""
    found: StoredBatch | None = None
    while low < high:
        middle = (low + high) // 2
        batch = probe.next_of_ours(where, middle, near)
        if batch is None or batch.offset >= high:
            high = middle
        elif batch.offset - batch.sequence > shift:
            found = batch
            high = middle
        else:
            low = batch.offset + batch.span
    return found
