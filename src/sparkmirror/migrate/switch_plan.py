"""Plan a switch: a pure function of the file, an observation and a goal.

The way back from any place is the plan for the opposite goal, so undoing needs no plan of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sparkmirror.migrate import actions, phase
from sparkmirror.migrate.actions import Action
from sparkmirror.migrate.file import Fence, MigrationFile, Set
from sparkmirror.migrate.observation import Observation, Side


class Who(StrEnum):
    """The clients that a switch moves."""

    CONSUMERS = "consumers"
    PRODUCERS = "producers"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class SwitchGoal:
    """Clients and their goal, such as `SwitchGoal("consumers", "target")`.

    Raises `ValueError` for unknown words.
    """

    who: Who
    at: Side

    def __post_init__(self) -> None:
        object.__setattr__(self, "who", Who(self.who))
        object.__setattr__(self, "at", Side(self.at))

    @property
    def opposite(self) -> SwitchGoal:
        return SwitchGoal(self.who, self.at.other)


def plan(file: MigrationFile, seen: Observation, moving: Set, goal: SwitchGoal) -> tuple[Action, ...]:
    """Return the actions that are left until the set is at its goal.

    Empty if the set is there.
    """
    return tuple(action for action in whole_plan(file, seen, moving, goal) if not action.seen(seen))


def whole_plan(file: MigrationFile, seen: Observation, moving: Set, goal: SwitchGoal) -> tuple[Action, ...]:
    """Return all the goal's actions, done or still to do."""
    before, after = _consumers(file, moving, goal) if goal.who is not Who.PRODUCERS else ((), ())
    between = _producers(file, seen, moving, goal) if goal.who is not Who.CONSUMERS else ()
    if goal.who is Who.ALL:
        # Groups stop first; their positions are exact once everything is copied, and before producers are let in.
        *leaving, opening = between
        return (*before[:1], *leaving, *before[1:], opening, *after)
    return (*before, *between, *after)


def _consumers(file: MigrationFile, moving: Set, goal: SwitchGoal) -> tuple[tuple[Action, ...], tuple[Action, ...]]:
    if not moving.groups:
        return (), ()
    leaving, groups = goal.at.other, moving.groups
    before = (
        actions.WaitEmpty(leaving=leaving, names=groups),
        actions.WaitCopied(leaving=leaving, names=groups),
        actions.SetPositions(leaving=leaving, names=groups),
    )
    after = (actions.DenyReturn(leaving=leaving, names=groups),) if file.fence is Fence.ACL else ()
    return before, after


def _producers(file: MigrationFile, seen: Observation, moving: Set, goal: SwitchGoal) -> tuple[Action, ...]:
    leaving, topics = goal.at.other, moving.topics
    there = tuple(name for name in topics if phase.live_side(seen, name) is goal.at)
    to_go = tuple(name for name in topics if phase.live_side(seen, name) is leaving)
    # A switch away from the goal's side that was begun is taken back. With renamed copies, an earlier turn's ends at
    # the goal's side go, too: they would hold the flow back from there.
    stale = tuple(name for name in to_go if not phase.keeps_names(seen, name) and leaving is Side.SOURCE)
    stay = actions.Withdraw(leaving=goal.at, names=(*there, *stale))
    opening = actions.Open(leaving=leaving, names=topics, fence=file.fence)
    if not to_go:
        return stay, opening
    return (
        stay,
        actions.Deny(leaving=leaving, names=to_go, fence=file.fence, still_s=file.policies.still),
        actions.Settle(leaving=leaving, names=to_go),
        actions.Publish(leaving=leaving, names=to_go),
        actions.Drain(leaving=leaving, names=to_go),
        actions.Arm(leaving=leaving, names=to_go),
        opening,
    )
