"""Verdicts on a partition's unmatched records.

A record is missing, duplicate, reordered, changed, extra, or compacted away. Pure. A record is never excused by
guesswork:

- The same content unmatched on both sides is one record, `reordered`.
- A target record whose content the source has elsewhere is a `duplicate`. But a compacted source may have had the
  content twice, and a cleaner may have taken the first record: so content that the source has further on does not
  count.
- Two records with one key in the same gap are one record, `changed`.
- If the opposite side's topic is compacted, a record counts as compacted away if that side has a later record with the
  key: a record at or after the lowest place that the missing record can have had there (`stream_comparison`). At most
  as many records count as that side's offsets have holes there. A tombstone older than the opposite side's
  delete.retention.ms may be gone too, and with it, on that side, all records that it deleted: then no older record with
  the key is left there either.
- The records left in the same gap are paired as `changed`; the rest is `missing` or `extra`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sparkmirror.frames.report import SOURCE, TARGET, Kind, Side, Unmatched


@dataclass(frozen=True, slots=True)
class Cleaning:
    """Compaction of one side's topic."""

    compacted: bool
    tombstones_before_ms: int
    """Time before which tombstones may be gone."""


@dataclass(slots=True)
class KeysSeen:
    """Keys and contents from a search that one side's log holds."""

    newest: dict[int, int] = field(default_factory=dict)
    """Key digest to the last record's offset."""
    tombstones: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Key digest to the last tombstone's offset and timestamp."""
    contents: dict[str, int] = field(default_factory=dict)
    """Content digest to the first record's offset."""

    def add(self, other: KeysSeen) -> None:
        """Add the findings in a further part of the log."""
        for key, offset in other.newest.items():
            self.newest[key] = max(offset, self.newest.get(key, offset))
        for key, tombstone in other.tombstones.items():
            self.tombstones[key] = max(tombstone, self.tombstones.get(key, tombstone))
        for content, offset in other.contents.items():
            self.contents[content] = min(offset, self.contents.get(content, offset))


class Placed(NamedTuple):
    """An unmatched record with its range's number."""

    range: int
    record: Unmatched


class Judged(NamedTuple):
    """A difference, without its topic."""

    kind: Kind
    upstream: int | None
    downstream: int | None
    what: str = ""


@dataclass(slots=True)
class Judgement:
    """Judgement on a partition's unmatched records."""

    differences: list[Judged]
    compacted: int


def judge(
    unmatched: Sequence[Placed],
    cleaning: Mapping[Side, Cleaning],
    seen: Mapping[Side, KeysSeen],
    *,
    timestamps: bool = True,
) -> Judgement:
    """Judge one partition's unmatched records.

    `seen` must have the findings on their keys and contents.
    """
    differences: list[Judged] = []
    left = _paired(
        unmatched, _content, differences, lambda ours, theirs: Judged("reordered", ours.offset, theirs.offset)
    )
    left = list(_without_duplicates(left, seen[SOURCE], cleaning[SOURCE], differences))

    def changed(ours: Unmatched, theirs: Unmatched) -> Judged:
        return Judged("changed", ours.offset, theirs.offset, _what(ours, theirs, timestamps))

    left = _paired(left, _gap_and_key, differences, changed)
    kept: list[Placed] = []
    taken: Counter[object] = Counter()
    for placed in left:
        place = placed.range, placed.record.gap, placed.record.side
        fits = placed.record.room < 0 or taken[place] < placed.record.room
        if fits and _is_compacted(placed.record, cleaning, seen):
            taken[place] += placed.record.room >= 0
        else:
            kept.append(placed)
    compacted = len(left) - len(kept)
    for _, record in _paired(kept, _gap, differences, changed):
        if record.side == SOURCE:
            differences.append(Judged("missing", record.offset, None))
        else:
            differences.append(Judged("extra", None, record.offset))
    return Judgement(differences, compacted)


def _content(placed: Placed) -> object:
    return placed.record.content


def _gap(placed: Placed) -> object:
    return placed.range, placed.record.gap


def _gap_and_key(placed: Placed) -> object:
    return None if placed.record.key < 0 else (placed.range, placed.record.gap, placed.record.key)


def _paired(
    unmatched: Iterable[Placed],
    group_of: Callable[[Placed], object],
    judged: list[Judged],
    verdict: Callable[[Unmatched, Unmatched], Judged],
) -> list[Placed]:
    """Pair the nth source record with the nth target record in each group.

    Returns the records without a partner.
    """
    groups: dict[object, tuple[list[Placed], list[Placed]]] = defaultdict(lambda: ([], []))
    left: list[Placed] = []
    for placed in unmatched:
        group = group_of(placed)
        if group is None:
            left.append(placed)
        else:
            groups[group][placed.record.side == TARGET].append(placed)
    for ours, theirs in groups.values():
        paired = min(len(ours), len(theirs))
        judged += [verdict(our.record, their.record) for our, their in zip(ours, theirs, strict=False)]
        left += ours[paired:] + theirs[paired:]
    return sorted(left)


def _without_duplicates(
    unmatched: Iterable[Placed], source: KeysSeen, cleaning: Cleaning, judged: list[Judged]
) -> Iterator[Placed]:
    for placed in unmatched:
        original = source.contents.get(placed.record.content) if placed.record.side == TARGET else None
        written_again = cleaning.compacted and original is not None and original >= placed.record.across
        if original is None or written_again:
            yield placed
        else:
            judged.append(Judged("duplicate", original, placed.record.offset))


def _is_compacted(record: Unmatched, cleaning: Mapping[Side, Cleaning], seen: Mapping[Side, KeysSeen]) -> bool:
    """Tell whether the opposite side once had the record, and its cleaner took it."""
    here = record.side
    across: Side = TARGET if here == SOURCE else SOURCE
    if not cleaning[across].compacted or record.key < 0:
        return False
    if seen[across].newest.get(record.key, -1) >= record.across:
        return True
    if record.key in seen[across].newest:  # a cleaner takes a record's predecessors first
        return False
    expired_before = cleaning[across].tombstones_before_ms
    if record.tombstone:
        return record.timestamp < expired_before
    offset, timestamp = seen[here].tombstones.get(record.key, (-1, 0))
    return offset > record.offset and timestamp < expired_before


def _what(ours: Unmatched, theirs: Unmatched, timestamps: bool) -> str:
    if timestamps and ours.timestamp != theirs.timestamp:
        same = "timestamp" if ours.key == theirs.key else "timestamp, key"
        return f"{same} {ours.timestamp} -> {theirs.timestamp}"
    return "key" if ours.key != theirs.key else "value or headers"
