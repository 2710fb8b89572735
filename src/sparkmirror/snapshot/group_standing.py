"""A consumer group's state at the target, for status and metrics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class GroupState(StrEnum):
    """Outcome of a group's translation."""

    SYNCED = "synced"
    """Every offset is translated exactly.

    Offsets from before this mirror's begin are translated by MirrorMaker 2's syncs.

    Where offsets are set, the target's group has these offsets, or its own later offsets.
    """
    MOVED = "moved"
    """The flow leaves the group alone: it lives at the target, or did so (M5).

    Its topics have moved to the target (`topics done`), and there it has members, or is at or behind the copies' end;
    or it reads at the source what the opposite flow has copied.
    """
    CATCHING_UP = "catching up"
    """The group has read records that are not copied yet.

    Meanwhile the group stands at the copy's end.
    """
    BEYOND_END = "beyond the end"
    """The group's offset is past the source's log end.

    No record will come there. The group's offset at the target is left alone.
    """
    NOT_SYNCED = "can't be synced"
    """The reason is in `GroupStanding.reason`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStanding:
    """One group's standing at the last turn."""

    group: str
    state: GroupState
    reason: str = ""
    """One line; if several partitions have reasons, the first reason."""
    partitions: int = 0
    """Number of copied partitions where the group has a committed offset."""
    synced_ms: int | None = None
    """Time when the group's offsets were last at the target.

    The oldest of all partitions (`GroupMoments`); `None`: never, in some partition.
    """


def standing(
    group: str,
    partitions: int,
    *,
    missing: Iterable[str] = (),
    beyond: Iterable[str] = (),
    ahead: Iterable[str] = (),
    moved: Iterable[str] = (),
    synced_ms: int | None = None,
) -> GroupStanding:
    """Return a group's standing.

    `missing` has the reasons for partitions without an offset at the target, `beyond` for partitions in which the group
    is beyond the source's end, `ahead` for partitions where the copy has not caught up, `moved` for partitions in which
    the flow leaves the group alone.
    """
    for state, given in (
        (GroupState.NOT_SYNCED, missing),
        (GroupState.BEYOND_END, beyond),
        (GroupState.CATCHING_UP, ahead),
        (GroupState.MOVED, moved),
    ):
        if reasons := list(given):
            more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
            return GroupStanding(
                group=group, state=state, reason=reasons[0] + more, partitions=partitions, synced_ms=synced_ms
            )
    return GroupStanding(group=group, state=GroupState.SYNCED, partitions=partitions, synced_ms=synced_ms)
