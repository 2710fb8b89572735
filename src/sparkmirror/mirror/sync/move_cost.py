"""Cost of a consumer group's move to the target: records skipped or read again.

Both counts come from the exact offset map: the group's offset at the target is compared with the target offset that
stands for the group's offset at the source. A copied record counts by its offset at the target, so records that
compaction has removed there, and foreign producers' records, count too. A record that is not copied yet counts by its
offset at the source, so transaction markers and compacted records count too. No record is left out of a count.
"""

from __future__ import annotations

from typing import NamedTuple

from sparkmirror.exact.maps.offset_map import OffsetMap
from sparkmirror.exact.maps.partition_map import LogBounds


class MoveCost(NamedTuple):
    """Offsets that a group would skip and read again in a partition, if it moved now.

    At most one count is above 0.
    """

    skipped: int
    """Number of offsets unread at the source, and passed over at the target."""
    reread: int
    """Number of offsets read at the source, and read at the target too."""


class EndPair(NamedTuple):
    """A copy's end on both sides.

    Nothing is left to copy below `upstream`, and the next record lands at `downstream` or later.
    """

    upstream: int
    downstream: int


def cost_at_copy(source: int, target: int, offsets: OffsetMap | None, end: EndPair, log: LogBounds) -> MoveCost:
    """Return what a move to the flow's copy costs.

    `source` and `target` are the next offsets that the group reads. `offsets` is `None` if no record was copied. `log`
    has the target log's bounds.
    """
    due = offsets.downstream(source) if offsets is not None else None
    if due is None:
        due = end.downstream + max(source - end.upstream, 0)
    if target > log.end:
        # What is to come lands from the log's end on, with no gap: a group that waits there would pass over all of it.
        due = min(due, end.downstream)
    elif target > end.downstream:
        # Records between the copy's end and the log's end are foreign: the group has read none of them.
        target = end.downstream
    return cost_between(due, target, log)


def cost_at_original(source: int, target: int, offsets: OffsetMap) -> MoveCost:
    """Return the cost of a move to a copy's original, when the group reads the copy.

    `offsets` is the copy's map: the group's offset at the source is a downstream offset there.
    """
    due = offsets.present_upstream(source)
    if due is None:
        due = offsets.copied.upstream + source - offsets.copied.downstream
    return MoveCost(skipped=max(target - due, 0), reread=max(due - target, 0))


def cost_between(due: int, target: int, log: LogBounds) -> MoveCost:
    """Return the cost of a move to `target`, for a group that is due at `due`.

    Records that the target has deleted are neither skipped nor read again.
    """
    due, target = max(due, log.start), max(target, log.start)
    return MoveCost(skipped=max(target - due, 0), reread=max(due - target, 0))
