"""Which offsets of a partition are compared, cut into ranges for tasks. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from sparkmirror.frames.report import ReportModel
from sparkmirror.translation.map_keeper import ByOthers
from sparkmirror.translation.offset_map import OffsetMap, Twice

RANGE_BYTES = 64 << 20
"""What a task reads of the source, about."""


class RangePlan(ReportModel):
    """Source offsets [first_upstream, end_upstream) and the target's that hold their copies."""

    range: int
    """Its number in the whole plan."""
    first_upstream: int
    end_upstream: int
    first_downstream: int
    end_downstream: int


class LogPlan(ReportModel):
    """One side of a partition, as it was when the plan was made."""

    topic: str
    topic_id: str
    """Hexadecimal."""
    start: int
    end: int
    """The last offset that may be read, and one: high watermark or last stable offset."""
    compacted: bool = False
    tombstones_kept_ms: int = 86_400_000
    """`delete.retention.ms`: older tombstones may have been cleaned away."""


class PartitionPlan(ReportModel):
    """One partition: what is compared, and how much is not, and why."""

    flow: str
    partition: int
    source: LogPlan
    target: LogPlan
    isolation: Literal["read_uncommitted", "read_committed"]
    timestamps: bool
    """Whether they are compared: not where the target stamps records itself (LogAppendTime)."""
    bytes_per_offset: float
    ranges: tuple[RangePlan, ...]
    due: tuple[int, int] = (0, 0)
    """Source offsets [first, end) that were there when the verification began, and that the copy had not reached."""
    why_due: str = ""
    """Why, where more is known than that."""
    gone: int = 0
    """Offsets of the source whose copies went with the target topic, which was deleted."""
    twice: int = 0
    """Records of the source that were copied again, behind a copy that the target still has."""
    expired: int = 0
    notes: tuple[str, ...] = ()

    @property
    def at(self) -> tuple[str, str, int]:
        """Flow, source topic and partition."""
        return self.flow, self.source.topic, self.partition

    @property
    def is_due(self) -> bool:
        """Whether anything was not copied yet."""
        return self.due[0] < self.due[1]


@dataclass(frozen=True, slots=True)
class Window:
    """Source offsets that the user wants compared; None: no bound."""

    first: int | None = None
    end: int | None = None
    moved: bool = False
    """At `end` the topic's writers have moved to the target: behind the copy's end there is theirs."""
    theirs: tuple[tuple[int, int], ...] = ()
    """Target offsets [first, end), in order, that these writers wrote before the copy's end, by the loss ledger."""


class Gap(NamedTuple):
    """Target offsets [first, end) that are not compared; behind them lies the copy of `upstream` and what follows."""

    upstream: int
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Extent:
    """The offsets to compare, [first, end) on both sides, and what is left out."""

    upstream: tuple[int, int]
    downstream: tuple[int, int]
    due: tuple[int, int]
    """Offsets of the source that were there when the verification began, and that the copy had not reached."""
    expired: int
    """Offsets of either side whose counterparts are gone, or were before the copy's start."""
    former: int = 0
    """Offsets of the target that hold copies of a source topic, or log, that is no more."""
    others: int = 0
    """Offsets of the target where somebody else copied: before the copy's start, or over an end of what is compared."""
    theirs: tuple[Gap, ...] = ()
    """What the topic's own writers wrote at the target, once they had moved there."""

    @property
    def not_copied_yet(self) -> int:
        """How many offsets are due."""
        return self.due[1] - self.due[0]

    def behind(self, downstream: int) -> Extent:
        """The same without what was at the target below an offset: that was compared before."""
        first, end = self.downstream
        return dataclasses.replace(self, downstream=(max(first, downstream), max(end, downstream)))


def extent(
    source: LogPlan,
    target: LogPlan,
    offsets: OffsetMap | None,
    window: Window,
    *,
    began: int | None = None,
    taken_over: bool = False,
    others: Iterable[ByOthers] = (),
) -> Extent:
    """What can be compared of a partition. Without a map all of both logs is.

    `began`: where the source's log ended when the verification began; what came later need not be copied yet.

    Left out is what was not copied yet, what retention deleted on one side, and what was before the copy's start.
    `taken_over`: the copy goes on behind somebody else's; else nothing may lie before ours. `others`: what somebody
    else copied between ours is left out where an end of what is compared is in it: nothing tells where that is.
    """
    wanted_first = max(source.start, window.first or 0)
    wanted_end = max(min(source.end, source.end if window.end is None else window.end), wanted_first)
    if offsets is None:
        return Extent((wanted_first, wanted_end), (target.start, target.end), (wanted_end, wanted_end), 0)
    copied = offsets.copied.upstream
    due_first = max(copied, wanted_first)
    due_end = max(wanted_end if began is None else min(wanted_end, began), due_first)
    kept_first = _first_kept(offsets, target.start)
    first = wanted_first if wanted_first >= copied else max(wanted_first, kept_first)
    end = max(min(wanted_end, copied), first)
    former = offsets.downstream(0) if offsets.downstream_start < (offsets.downstream(0) or 0) else None
    begin = min(max(offsets.downstream_start, target.start), target.end) if taken_over else target.start
    first_downstream = begin  # foreign records before ours are seen, too
    if first > kept_first or former is not None:
        found = offsets.downstream(first)
        first_downstream = target.end if found is None else min(max(found, begin), target.end)
    end_downstream = target.end
    if window.end is not None and window.end < copied:
        found = offsets.downstream(end)
        end_downstream = target.end if found is None else min(max(found, first_downstream), target.end)
    elif window.moved:
        end_downstream = max(min(offsets.copied.downstream, target.end), first_downstream)
    left_out = 0
    for one in others:
        begins = (offsets.upstream(one.first - 1) or 0) + 1
        if begins <= first < one.upstream and not offsets.began_anew(first, one.end):
            left_out += max(one.end - max(one.first, target.start), 0)
            first, first_downstream = one.upstream, min(one.end, target.end)
        elif end == window.end and begins <= end < one.upstream and not offsets.began_anew(end, one.end):
            left_out += one.end - one.first if end > begins else 0
            end, end_downstream = begins, one.first
    end, end_downstream = max(end, first), max(end_downstream, first_downstream)
    theirs = _theirs(offsets, window.theirs, (first, end), (first_downstream, end_downstream))
    gaps = _disowned(offsets, (first, end), (first_downstream, end_downstream))
    disowned = sum(gap.end - max(gap.first, first_downstream) for gap in gaps)
    return Extent(
        (first, end),
        (first_downstream, end_downstream),
        due=(due_first, due_end),
        expired=max(min(first, wanted_end) - wanted_first, 0) + _expired_at_source(source, target, offsets),
        former=disowned + (max(former - max(offsets.downstream_start, target.start), 0) if former is not None else 0),
        others=begin - target.start + left_out,
        theirs=theirs,
    )


def copied_twice(target: LogPlan, offsets: OffsetMap, window: Window) -> list[Twice]:
    """What the target holds twice of the source's log, by the claims; the first copy is there still."""
    found: list[Twice] = []
    for some in offsets.twice():
        skipped = max(target.start - some.first, (window.first or 0) - some.upstream, 0)
        end = some.upstream + some.records if window.end is None else min(some.upstream + some.records, window.end)
        if some.upstream + skipped < end:
            upstream = some.upstream + skipped
            found.append(Twice(upstream, end - upstream, some.first + skipped, some.again + skipped))
    return found


def cut(
    extent: Extent,
    offsets: OffsetMap | None,
    bytes_per_offset: float,
    first_number: int,
    *,
    most_offsets: int | None = None,
) -> list[RangePlan]:
    """Ranges of about `RANGE_BYTES`; one only, where there is no map to cut the target with."""
    step = max(int(RANGE_BYTES / max(bytes_per_offset, 1e-3)), 1)
    step = min(step, most_offsets or step)
    pieces = [
        piece
        for (first, end), (first_downstream, end_downstream) in _compared(extent, offsets)
        for piece in _pieces(first, end, first_downstream, end_downstream, offsets, step)
    ]
    return [
        RangePlan(
            range=first_number + index,
            first_upstream=upstream[0],
            end_upstream=upstream[1],
            first_downstream=downstream[0],
            end_downstream=downstream[1],
        )
        for index, (upstream, downstream) in enumerate(pieces)
    ]


Stretch = tuple[tuple[int, int], tuple[int, int]]
"""Offsets [first, end) upstream, and the target's."""


def _compared(extent: Extent, offsets: OffsetMap | None) -> list[Stretch]:
    """All of an extent but what its writers wrote at the target, and copies of what the source had before a cut."""
    found: list[Stretch] = []
    (first, end), (first_downstream, end_downstream) = extent.upstream, extent.downstream
    gaps = [*extent.theirs, *_disowned(offsets, extent.upstream, extent.downstream)]
    for gap in sorted(gaps, key=lambda gap: gap.first):
        found.append(((first, gap.upstream), (first_downstream, max(gap.first, first_downstream))))
        first, first_downstream = gap.upstream, gap.end
    found.append(((first, end), (first_downstream, end_downstream)))
    return [one for one in found if one[0][0] < one[0][1] or one[1][0] < one[1][1]]


def _pieces(
    first: int, end: int, first_downstream: int, end_downstream: int, offsets: OffsetMap | None, step: int
) -> list[Stretch]:
    """Cut only where a record of ours is on both sides: of what lies between them nothing tells where it belongs."""
    wanted = range(first + step, end - step // 2, step) if offsets else ()
    across = dict.fromkeys(found for found in (offsets.downstream_each(wanted) if offsets else ()) if found is not None)
    begins = offsets.upstream_each(list(across)) if offsets else []
    cuts = [
        (upstream, downstream)
        for upstream, downstream in zip(begins, across, strict=True)
        if upstream is not None and first < upstream < end and first_downstream <= downstream <= end_downstream
    ]
    bounds = [(first, first_downstream), *cuts, (end, end_downstream)]
    return [((one, other), (begin, stop)) for (one, begin), (other, stop) in pairwise(bounds)]


def _theirs(
    offsets: OffsetMap, stretches: Iterable[tuple[int, int]], upstream: tuple[int, int], downstream: tuple[int, int]
) -> tuple[Gap, ...]:
    """Stretches between what is compared; one that the claims say holds a record of ours is compared with the rest."""
    found = []
    for first, end in stretches:
        begin, stop = max(first, downstream[0]), min(end, downstream[1])
        following = offsets.upstream(stop)
        if begin < stop and following == offsets.upstream(begin):
            behind = upstream[1] if following is None else min(max(following, upstream[0]), upstream[1])
            found.append(Gap(behind, begin, stop))
    return tuple(found)


def _disowned(offsets: OffsetMap | None, upstream: tuple[int, int], downstream: tuple[int, int]) -> list[Gap]:
    return [
        Gap(gap.upstream, gap.first, gap.end)
        for gap in (offsets.disowned() if offsets else [])
        if upstream[0] <= gap.upstream <= upstream[1] and downstream[0] < gap.end <= downstream[1]
    ]


def _first_kept(offsets: OffsetMap, target_start: int) -> int:
    """The lowest upstream offset whose copy the target's retention has not deleted; by bisection."""
    low, high = offsets.upstream_start, offsets.copied.upstream
    while low < high:
        middle = (low + high) // 2
        found = offsets.downstream(middle)
        if found is not None and found < target_start:
            low = middle + 1
        else:
            high = middle
    return low


def _expired_at_source(source: LogPlan, target: LogPlan, offsets: OffsetMap) -> int:
    """Records that the target still has and the source does not."""
    first = offsets.downstream(source.start)
    return max(first - max(offsets.downstream(0) or 0, target.start), 0) if first is not None else 0
