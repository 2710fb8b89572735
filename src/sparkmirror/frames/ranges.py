"""Select a partition's offsets to compare, cut into ranges for tasks.

Pure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from pydantic import Field

from sparkmirror.exact.maps.offset_map import OffsetMap, Twice
from sparkmirror.exact.maps.partition_map import ForeignRange
from sparkmirror.frames.report import ReportModel

RANGE_BYTES = 64 << 20
"""Approximate number of source bytes that a task reads."""


class RangePlan(ReportModel):
    """Source offsets [first_upstream, end_upstream), and target offsets of copies."""

    range: int
    """The range's number in the whole plan."""
    first_upstream: int
    end_upstream: int
    first_downstream: int
    end_downstream: int


class LogPlan(ReportModel):
    """One side of a partition, as the plan found it."""

    topic: str
    topic_id: str
    """Topic id in hexadecimal digits."""
    start: int
    end: int
    """Readable offsets' end: high watermark or last stable offset."""
    compacted: bool = False
    tombstones_kept_ms: int = 86_400_000
    """`delete.retention.ms`: older tombstones may have been cleaned away."""


class PartitionPlan(ReportModel):
    """Plan for one partition: ranges to compare, and left-out offsets with reasons."""

    flow: str
    partition: int
    source: LogPlan
    target: LogPlan
    isolation: Literal["read_uncommitted", "read_committed"]
    timestamps: bool
    """True if timestamps are compared.

    They are not compared if the target stamps records itself (LogAppendTime).
    """
    bytes_per_offset: float
    ranges: tuple[RangePlan, ...]
    due: tuple[int, int] = (0, 0)
    """Source offsets [first, end) at the verification's begin, not copied yet."""
    why_due: str = ""
    """Further reason for `due`, if known."""
    gone: int = 0
    """Number of source offsets whose copies went with a deleted target topic."""
    twice: int = 0
    """Number of source records copied again, after a copy that still exists."""
    expired: int = 0
    deleted: tuple[int, int] = (0, 0)
    """Source offsets [first, end) where kept records have deleted copies.

    `expired` counts them, too.
    """
    began: int | None = None
    """Source end at the verification's begin, if there is no map; else None.

    Source records behind the last equal record may be not copied yet, or later ones.
    """
    not_compared: dict[str, int] = Field(default_factory=dict)
    """Number of target offsets that are not compared, by reason."""
    notes: tuple[str, ...] = ()

    @property
    def at(self) -> tuple[str, str, int]:
        return self.flow, self.source.topic, self.partition

    def deleted_from(self, offset: int) -> PartitionPlan:
        """Return the plan without deletions below a source offset; -1: without any."""
        first, end = self.deleted
        return self.model_copy(update={"deleted": (end if offset < 0 else min(max(first, offset), end), end)})

    @property
    def is_due(self) -> bool:
        """True if some offsets were not copied yet."""
        return self.due[0] < self.due[1]


EARLIER = "copies of an earlier source topic or log"
ANOTHERS = "another mirror's"
MOVED = "written by the topic's writers, which have moved"
"""Reasons why target offsets are not compared."""


@dataclass(frozen=True, slots=True)
class Window:
    """Source offsets that the user wants compared; `None` for no bound."""

    first: int | None = None
    end: int | None = None
    moved: bool = False
    """True if the topic's writers have moved to the target at `end`.

    Behind the copy's end, the target then holds records from these writers.
    """
    theirs: tuple[tuple[int, int], ...] = ()
    """The moved writers' target offsets [first, end), before the copy's end.

    The offsets come in order, from the loss ledger.
    """


class Gap(NamedTuple):
    """Target offsets [first, end) that are not compared.

    Behind the gap are the copies from source offset `upstream` on.
    """

    upstream: int
    first: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """Offsets to compare, [first, end) on both sides, and numbers of left-out offsets."""

    upstream: tuple[int, int]
    downstream: tuple[int, int]
    due: tuple[int, int]
    """Source offsets at the verification's begin that the copy had not reached."""
    expired: int
    """Number of offsets whose counterparts are gone, or before the copy's start."""
    deleted: tuple[int, int] = (0, 0)
    """Source offsets [first, end) that were copied, and whose copies are gone."""
    former: int = 0
    """Number of target offsets with copies from a source topic or log that is gone."""
    others: int = 0
    """Number of target offsets that a foreign mirror copied.

    They are before the copy's start, or span an end of the compared offsets.
    """
    theirs: tuple[Gap, ...] = ()
    """Target offsets written by the topic's own writers after their move there."""

    @property
    def not_copied_yet(self) -> int:
        """Number of due offsets."""
        return self.due[1] - self.due[0]

    def behind(self, downstream: int) -> Extent:
        """Return the extent without target offsets below `downstream`, compared before."""
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
    others: Iterable[ForeignRange] = (),
) -> Extent:
    """Return the offsets of a partition that can be compared.

    Without a map, both logs are compared completely: nothing tells before the comparison which part was not copied yet.
    `began` is the source's log end when the verification began; later records need not be copied yet. Left out are
    offsets not copied yet, offsets that retention deleted on one side, and offsets before the copy's start.

    `taken_over` is True if the copy continues after a foreign mirror's copy; else no record may lie before this flow's
    records. `others` are ranges that foreign mirrors copied between this flow's records. Such a range is left out if an
    end of the compared offsets is inside, because the end's place in the range is unknown.
    """
    wanted_first = max(source.start, window.first or 0)
    wanted_end = max(min(source.end, source.end if window.end is None else window.end), wanted_first)
    if offsets is None:
        return Extent(
            upstream=(wanted_first, wanted_end),
            downstream=(target.start, target.end),
            due=(wanted_end, wanted_end),
            expired=0,
        )
    copied = offsets.copied.upstream
    due_first = max(copied, wanted_first)
    due_end = max(wanted_end if began is None else min(wanted_end, began), due_first)
    kept_first = _first_kept(offsets, target.start)
    first = wanted_first if wanted_first >= copied else max(wanted_first, kept_first)
    end = max(min(wanted_end, copied), first)
    former = offsets.downstream(0) if offsets.downstream_start < (offsets.downstream(0) or 0) else None
    begin = min(max(offsets.downstream_start, target.start), target.end) if taken_over else target.start
    first_downstream = begin  # foreign records before this flow's records are compared, too
    if first > kept_first or former is not None:
        mapped = offsets.downstream(first)
        first_downstream = target.end if mapped is None else min(max(mapped, begin), target.end)
    end_downstream = target.end
    if window.end is not None and window.end < copied:
        mapped = offsets.downstream(end)
        end_downstream = target.end if mapped is None else min(max(mapped, first_downstream), target.end)
    elif window.moved:
        end_downstream = max(min(offsets.copied.downstream, target.end), first_downstream)
    gone_first = max(wanted_first, offsets.upstream_start)
    gone_end = max(min(kept_first, wanted_end, copied), gone_first)
    left_out = 0
    for foreign in others:
        begins = (offsets.upstream(foreign.first - 1) or 0) + 1
        if begins <= first < foreign.upstream and not offsets.began_again(first, foreign.end):
            left_out += max(foreign.end - max(foreign.first, target.start), 0)
            first, first_downstream = foreign.upstream, min(foreign.end, target.end)
        elif end == window.end and begins <= end < foreign.upstream and not offsets.began_again(end, foreign.end):
            left_out += foreign.end - foreign.first if end > begins else 0
            end, end_downstream = begins, foreign.first
    end, end_downstream = max(end, first), max(end_downstream, first_downstream)
    theirs = _theirs(offsets, window.theirs, (first, end), (first_downstream, end_downstream))
    gaps = _disowned(offsets, (first, end), (first_downstream, end_downstream))
    disowned = sum(gap.end - max(gap.first, first_downstream) for gap in gaps)
    return Extent(
        upstream=(first, end),
        downstream=(first_downstream, end_downstream),
        due=(due_first, due_end),
        expired=max(min(first, wanted_end) - wanted_first, 0) + _expired_at_source(source, target, offsets),
        deleted=(gone_first, gone_end),
        former=disowned + (max(former - max(offsets.downstream_start, target.start), 0) if former is not None else 0),
        others=begin - target.start + left_out,
        theirs=theirs,
    )


def copied_twice(target: LogPlan, offsets: OffsetMap, window: Window) -> list[Twice]:
    """Return the source records that the target holds twice, by the claims.

    Only records whose first copy still exists are returned.
    """
    repeated: list[Twice] = []
    for repeat in offsets.twice():
        skipped = max(target.start - repeat.first, (window.first or 0) - repeat.upstream, 0)
        end = (
            repeat.upstream + repeat.records
            if window.end is None
            else min(repeat.upstream + repeat.records, window.end)
        )
        if repeat.upstream + skipped < end:
            upstream = repeat.upstream + skipped
            repeated.append(Twice(upstream, end - upstream, repeat.first + skipped, repeat.again + skipped))
    return repeated


def cut(
    extent: Extent,
    offsets: OffsetMap | None,
    bytes_per_offset: float,
    first_number: int,
    *,
    most_offsets: int | None = None,
) -> list[RangePlan]:
    """Cut an extent into ranges with about `RANGE_BYTES` each.

    Without a map there is only one range, because the target can't be cut.
    """
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
"""Source offsets and target offsets, each [first, end)."""


def _compared(extent: Extent, offsets: OffsetMap | None) -> list[Stretch]:
    """Return an extent's compared stretches.

    Left out are the moved writers' records at the target, and copies of records that the source had before a cut.
    """
    stretches: list[Stretch] = []
    (first, end), (first_downstream, end_downstream) = extent.upstream, extent.downstream
    gaps = [*extent.theirs, *_disowned(offsets, extent.upstream, extent.downstream)]
    for gap in sorted(gaps, key=lambda gap: gap.first):
        stretches.append(((first, gap.upstream), (first_downstream, max(gap.first, first_downstream))))
        first, first_downstream = gap.upstream, gap.end
    stretches.append(((first, end), (first_downstream, end_downstream)))
    return [stretch for stretch in stretches if stretch[0][0] < stretch[0][1] or stretch[1][0] < stretch[1][1]]


def _pieces(
    first: int, end: int, first_downstream: int, end_downstream: int, offsets: OffsetMap | None, step: int
) -> list[Stretch]:
    """Cut a stretch only at this flow's records that exist on both sides.

    The place of records between them is unknown.
    """
    wanted = range(first + step, end - step // 2, step) if offsets else ()
    across = dict.fromkeys(
        downstream for downstream in (offsets.downstream_each(wanted) if offsets else ()) if downstream is not None
    )
    begins = offsets.upstream_each(list(across)) if offsets else []
    cuts = [
        (upstream, downstream)
        for upstream, downstream in zip(begins, across, strict=True)
        if upstream is not None and first < upstream < end and first_downstream <= downstream <= end_downstream
    ]
    bounds = [(first, first_downstream), *cuts, (end, end_downstream)]
    return [((lower, upper), (begin, stop)) for (lower, begin), (upper, stop) in pairwise(bounds)]


def _theirs(
    offsets: OffsetMap, stretches: Iterable[tuple[int, int]], upstream: tuple[int, int], downstream: tuple[int, int]
) -> tuple[Gap, ...]:
    """Return the writers' stretches between compared records as gaps.

    A stretch with a record from this flow, by the claims, is compared with the rest.
    """
    gaps = []
    for first, end in stretches:
        begin, stop = max(first, downstream[0]), min(end, downstream[1])
        following = offsets.upstream(stop)
        if begin < stop and following == offsets.upstream(begin):
            behind = upstream[1] if following is None else min(max(following, upstream[0]), upstream[1])
            gaps.append(Gap(behind, begin, stop))
    return tuple(gaps)


def _disowned(offsets: OffsetMap | None, upstream: tuple[int, int], downstream: tuple[int, int]) -> list[Gap]:
    return [
        Gap(min(gap.upstream, upstream[1]), gap.first, gap.end)
        for gap in (offsets.disowned() if offsets else [])
        if upstream[0] <= gap.upstream and downstream[0] < gap.end <= downstream[1]
    ]


def _first_kept(offsets: OffsetMap, target_start: int) -> int:
    """Return the lowest upstream offset whose copy the target still has, by bisection."""
    low, high = offsets.upstream_start, offsets.copied.upstream
    while low < high:
        middle = (low + high) // 2
        downstream = offsets.downstream(middle)
        if downstream is not None and downstream < target_start:
            low = middle + 1
        else:
            high = middle
    return low


def _expired_at_source(source: LogPlan, target: LogPlan, offsets: OffsetMap) -> int:
    """Return the number of records that the target still has and the source lacks."""
    first = offsets.downstream(source.start)
    return max(first - max(offsets.downstream(0) or 0, target.start), 0) if first is not None else 0
