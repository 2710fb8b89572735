"""State of a consumer group at the target, for status and metrics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class GroupState(StrEnum):
    """Outcome of a group's translation."""

    SYNCED = "synced"
    """Every offset is translated exactly.

    Where offsets are set, the target's group has these offsets, or later offsets of its own.
    """
    CATCHING_UP = "catching up"
    """The group has read records that are not copied yet.

    Meanwhile the group stands at the end of the copy.
    """
    BEYOND_END = "beyond the end"
    """The group's offset lies past the end of the source's log.

    No record will come there. The group's offset at the target is left alone.
    """
    NOT_SYNCED = "can't be synced"
    """The reason is in `GroupStanding.reason`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStanding:
    """Standing of one group, as of the last turn."""

    group: str
    state: GroupState
    reason: str = ""
    """One line; if several partitions have reasons, the first reason."""
    partitions: int = 0
    """Number of copied partitions with a committed offset of the group."""
    synced_ms: int | None = None
    """Time when the group's offsets were last at the target.

    The oldest of all partitions (`GroupMoments`); `None`: never, in some partition.
    """


def counted(standings: Iterable[GroupStanding]) -> tuple[str, ...]:
    """Return a few words on each state with groups.

    Of the groups that can't be synced, the first is named with the reason.
    """
    by_state: dict[GroupState, list[GroupStanding]] = {state: [] for state in GroupState}
    for entry in standings:
        by_state[entry.state].append(entry)
    words = [f"{len(entries):,} {state}" for state, entries in by_state.items() if entries]
    if stuck := by_state[GroupState.NOT_SYNCED]:
        first = min(stuck, key=lambda entry: entry.group)
        words[-1] += f", first: {first.group}: {first.reason}"
    return tuple(words)


def standing(
    group: str,
    partitions: int,
    *,
    missing: Iterable[str] = (),
    beyond: Iterable[str] = (),
    ahead: Iterable[str] = (),
    synced_ms: int | None = None,
) -> GroupStanding:
    """Return the standing of a group.

    `missing` has the reasons of partitions without an offset at the target, `beyond` of partitions in which the group
    is beyond the source's end, `ahead` of partitions where the copy has not caught up.
    """
    for state, given in (
        (GroupState.NOT_SYNCED, missing),
        (GroupState.BEYOND_END, beyond),
        (GroupState.CATCHING_UP, ahead),
    ):
        if reasons := list(given):
            more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
            return GroupStanding(
                group=group, state=state, reason=reasons[0] + more, partitions=partitions, synced_ms=synced_ms
            )
    return GroupStanding(group=group, state=GroupState.SYNCED, partitions=partitions, synced_ms=synced_ms)
