"""What the unmatched records of a partition mean: missing, duplicate, reordered, changed, extra, or compacted away.

Pure. A record is never excused by guesswork:

- the same content unmatched on both sides is one record, `reordered`;
- one at the target whose content the source has elsewhere is a `duplicate`; but what a compacted source has further on
  may have been written twice there, and the first one cleaned away;
- two of one key in the same gap are one record, `changed`;
- where the other side's topic is compacted, a record counts as compacted away if that side has a later record of
  its key: one at or behind the lowest place that it can have had there (`compare`), and no more of them than that
  side's offsets have holes there. A tombstone that is older than
  the other side's delete.retention.ms may be gone too, and with it, on that side, all that it deleted:
  then nothing older of its key is left there either;
- what is left in the same gap is paired as `changed`; the rest is `missing` or `extra`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sparkmirror.frames.report import SOURCE, TARGET, Kind, Side, Unmatched


@dataclass(frozen=True, slots=True)
class Cleaning:
    """How one side's topic is compacted."""

    compacted: bool
    tombstones_before_ms: int
    """Older tombstones may be gone."""


@dataclass(slots=True)
class KeysSeen:
    """What one side's log holds of the keys and contents that were looked for."""

    newest: dict[int, int] = field(default_factory=dict)
    """Key digest -> offset of its last record."""
    tombstones: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Key digest -> offset and timestamp of its last tombstone."""
    contents: dict[str, int] = field(default_factory=dict)
    """Content digest -> offset of its first record."""

    def add(self, other: KeysSeen) -> None:
        """Take in what another part of the log holds."""
        for key, offset in other.newest.items():
            self.newest[key] = max(offset, self.newest.get(key, offset))
        for key, tombstone in other.tombstones.items():
            self.tombstones[key] = max(tombstone, self.tombstones.get(key, tombstone))
        for content, offset in other.contents.items():
            self.contents[content] = min(offset, self.contents.get(content, offset))


class Placed(NamedTuple):
    """An unmatched record and the range that it is in."""

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
    """A partition's unmatched records, judged."""

    differences: list[Judged]
    compacted: int


def judge(
    unmatched: Sequence[Placed],
    cleaning: Mapping[Side, Cleaning],
    seen: Mapping[Side, KeysSeen],
    *,
    timestamps: bool = True,
) -> Judgement:
    """Judge all of one partition. `seen` must have been looked for with their keys and contents."""
    found: list[Judged] = []
    left = _paired(unmatched, _content, found, lambda ours, theirs: Judged("reordered", ours.offset, theirs.offset))
    left = list(_without_duplicates(left, seen[SOURCE], cleaning[SOURCE], found))

    def changed(ours: Unmatched, theirs: Unmatched) -> Judged:
        return Judged("changed", ours.offset, theirs.offset, _what(ours, theirs, timestamps))

    left = _paired(left, _gap_and_key, found, changed)
    kept: list[Placed] = []
    taken: Counter[object] = Counter()
    for one in left:
        where = one.range, one.record.gap, one.record.side
        fits = one.record.room < 0 or taken[where] < one.record.room
        if fits and _is_compacted(one.record, cleaning, seen):
            taken[where] += one.record.room >= 0
        else:
            kept.append(one)
    compacted = len(left) - len(kept)
    for _, record in _paired(kept, _gap, found, changed):
        if record.side == SOURCE:
            found.append(Judged("missing", record.offset, None))
        else:
            found.append(Judged("extra", None, record.offset))
    return Judgement(found, compacted)


def _content(one: Placed) -> object:
    return one.record.content


def _gap(one: Placed) -> object:
    return one.range, one.record.gap


def _gap_and_key(one: Placed) -> object:
    return None if one.record.key < 0 else (one.range, one.record.gap, one.record.key)


def _paired(
    unmatched: Iterable[Placed],
    group_of: Callable[[Placed], object],
    found: list[Judged],
    verdict: Callable[[Unmatched, Unmatched], Judged],
) -> list[Placed]:
    """Pair the nth of the source with the nth of the target in each group; what has no partner is given back."""
    groups: dict[object, tuple[list[Placed], list[Placed]]] = defaultdict(lambda: ([], []))
    left: list[Placed] = []
    for one in unmatched:
        group = group_of(one)
        if group is None:
            left.append(one)
        else:
            groups[group][one.record.side == TARGET].append(one)
    for ours, theirs in groups.values():
        both = min(len(ours), len(theirs))
        found += [verdict(our.record, their.record) for our, their in zip(ours, theirs, strict=False)]
        left += ours[both:] + theirs[both:]
    return sorted(left)


def _without_duplicates(
    unmatched: Iterable[Placed], source: KeysSeen, cleaning: Cleaning, found: list[Judged]
) -> Iterator[Placed]:
    for one in unmatched:
        original = source.contents.get(one.record.content) if one.record.side == TARGET else None
        written_again = cleaning.compacted and original is not None and original >= one.record.across
        if original is None or written_again:
            yield one
        else:
            found.append(Judged("duplicate", original, one.record.offset))


def _is_compacted(record: Unmatched, cleaning: Mapping[Side, Cleaning], seen: Mapping[Side, KeysSeen]) -> bool:
    """Whether the other side once had it, and its cleaner took it away."""
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
