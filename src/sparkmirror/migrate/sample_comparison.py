"""Comparison of a group's next records at the source and at the target.

Pure. Records come in the same order on both sides. Compaction removes records on each side at another time; so in
compacted topics the offset map pairs the records, and a record on one side only is no difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class SampleRecord(NamedTuple):
    """Compared parts of one record."""

    offset: int
    body: bytes
    """Key, value and headers, encoded; a digest for a large record."""
    timestamp: int
    stamped: bool = False
    """True if the broker has set the timestamp (LogAppendTime)."""


class FirstDifference(NamedTuple):
    """First pair of records that differ."""

    source: int
    """Offset at the source; -1 if the source has no further record."""
    target: int
    """Offset at the target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleComparison:
    """Result for one group and partition."""

    equal: int = 0
    differs: FirstDifference | None = None
    lag: int = 0
    """Number of records in the source's sample that are not copied yet."""
    cleaned: int = 0
    """Number of records that compaction left on one side only."""
    read_again: int = 0
    """Number of records read twice, if that explains the difference."""
    skipped: int = 0
    """Number of records passed over, if that explains the difference."""


def compare(source: Sequence[SampleRecord], target: Sequence[SampleRecord]) -> SampleComparison:
    """Compare two samples record by record; the target's may be shorter, not longer."""
    for at, (ours, theirs) in enumerate(zip(source, target, strict=False)):
        if not _same(ours, theirs):
            return SampleComparison(
                equal=at,
                differs=FirstDifference(ours.offset, theirs.offset),
                read_again=_shift(source[at:], target[at:]),
                skipped=_shift(target[at:], source[at:]),
            )
    equal = min(len(source), len(target))
    return SampleComparison(equal=equal, lag=len(source) - equal)


def compare_compacted(
    source: Sequence[SampleRecord], places: Sequence[int | None], target: Sequence[SampleRecord]
) -> SampleComparison:
    """Compare two samples whose records are paired by the offset map.

    `places` has the target offset for each record at the source; None if not copied yet.
    """
    there = {record.offset: record for record in target}
    end = target[-1].offset + 1 if target else 0
    due = {place for place in places if place is not None}
    equal = lag = 0
    cleaned = sum(record.offset not in due and record.offset < max(due, default=0) for record in target)
    for record, place in zip(source, places, strict=True):
        if place is None:
            lag += 1
        elif place in there:
            if not _same(record, there[place]):
                return SampleComparison(equal=equal, differs=FirstDifference(record.offset, place), cleaned=cleaned)
            equal += 1
        elif place < end or not target:
            cleaned += 1
    return SampleComparison(equal=equal, lag=lag, cleaned=cleaned)


def _same(source: SampleRecord, target: SampleRecord) -> bool:
    return source.body == target.body and (target.stamped or source.timestamp == target.timestamp)


def _shift(short: Sequence[SampleRecord], long: Sequence[SampleRecord]) -> int:
    """Return the number of records in `long` before those in `short`; 0 for no match."""
    for shift in range(1, len(long)):
        if all(_equal_bodies(first, second) for first, second in zip(short, long[shift:], strict=False)):
            return shift
    return 0


def _equal_bodies(first: SampleRecord, second: SampleRecord) -> bool:
    return first.body == second.body and (first.stamped or second.stamped or first.timestamp == second.timestamp)
