"""How a consumer group stands at the target, for status and metrics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class GroupState(StrEnum):
    """What became of a group's offsets."""

    SYNCED = "synced"
    """Every offset is at the target, exactly."""
    CATCHING_UP = "catching up"
    """The group has read what is not copied yet: it stands at the end of the copy meanwhile."""
    NOT_SYNCED = "can't be synced"
    """The reason says why."""


@dataclass(frozen=True, slots=True)
class GroupStanding:
    """One group, as of the last turn."""

    group: str
    state: GroupState
    reason: str = ""
    """One line; of several partitions' reasons the first."""
    partitions: int = 0
    """That it has committed, of topics that are copied."""


def counted(standings: Iterable[GroupStanding]) -> tuple[str, ...]:
    """A few words on each state that groups are in; of those that can't be synced, one is named with its reason."""
    by_state: dict[GroupState, list[GroupStanding]] = {state: [] for state in GroupState}
    for one in standings:
        by_state[one.state].append(one)
    words = [f"{len(some):,} {state}" for state, some in by_state.items() if some]
    if stuck := by_state[GroupState.NOT_SYNCED]:
        first = min(stuck, key=lambda one: one.group)
        words[-1] += f", first: {first.group}: {first.reason}"
    return tuple(words)


def standing(group: str, partitions: int, missing: Iterable[str], ahead: Iterable[str]) -> GroupStanding:
    """By why partitions have no offset at the target, and which the copy has not reached."""
    for state, reasons in ((GroupState.NOT_SYNCED, list(missing)), (GroupState.CATCHING_UP, list(ahead))):
        if reasons:
            more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
            return GroupStanding(group, state, reasons[0] + more, partitions)
    return GroupStanding(group, GroupState.SYNCED, partitions=partitions)
