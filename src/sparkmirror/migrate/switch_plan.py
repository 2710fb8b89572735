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
from sparkmirror.migrate.phase import Blocker


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


def plan(
    file: MigrationFile, seen: Observation, moving: Set, goal: SwitchGoal, *, let_in: bool = True
) -> tuple[Action, ...]:
    """Return the actions that are left until the set is at its goal.

    Empty if the set is there. `let_in` is False if it is known that no producers were let in at the side to leave.
    """
    return tuple(action for action in whole_plan(file, seen, moving, goal, let_in=let_in) if not action.seen(seen))


def blockers(file: MigrationFile, seen: Observation, moving: Set, goal: SwitchGoal) -> list[Blocker]:
    """Return why a switch can't begin.

    States that the switch itself waits for are left out.
    """
    known = []
    if goal.who is not Who.CONSUMERS:
        known += phase.producers_blockers(seen, file, moving, goal.at)
    if goal.who is not Who.PRODUCERS:
        known += phase.consumers_blockers(seen, file, moving, goal.at)
    waited = {"leaking", "members", "not-copied"} | ({"consumers-first"} if goal.who is Who.ALL else set())
    return [each for each in known if each.id not in waited]


def too_late(began: Observation, seen: Observation, moving: Set, goal: SwitchGoal) -> Blocker | None:
    """Return why a begun switch can't come to its end where nothing flows back.

    Clients have used the side to leave since `began`, perhaps between a look and the act that followed.
    """
    blocker = None
    if goal.who is not Who.CONSUMERS:
        blocker = phase.written_for_good(seen, moving, goal.at.other, began)
    if goal.who is not Who.PRODUCERS:
        blocker = blocker or phase.read_for_good(seen, moving, goal.at.other, began)
    return blocker


def whole_plan(
    file: MigrationFile, seen: Observation, moving: Set, goal: SwitchGoal, *, let_in: bool = True
) -> tuple[Action, ...]:
    """Return all the goal's actions, done or still to do."""
    before, after = _consumers(file, moving, goal) if goal.who is not Who.PRODUCERS else ((), ())
    between = _producers(file, seen, moving, goal, let_in) if goal.who is not Who.CONSUMERS else ()
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


def _producers(
    file: MigrationFile, seen: Observation, moving: Set, goal: SwitchGoal, let_in: bool
) -> tuple[Action, ...]:
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
    deny = actions.Deny(leaving=leaving, names=to_go, fence=file.fence, still_s=file.policies.still)
    settle = actions.Settle(leaving=leaving, names=to_go)
    if leaving not in seen.flows:
        # Nothing copies from there. As long as nobody has written there, the topics come back with their ends.
        withdraw = actions.Withdraw(leaving=goal.at, names=topics)
        if not let_in:
            return withdraw, opening
        if phase.written_for_good(seen, moving, leaving):
            return (opening,)
        return deny, settle, withdraw, opening
    return (
        stay,
        deny,
        settle,
        actions.Publish(leaving=leaving, names=to_go),
        actions.Drain(leaving=leaving, names=to_go),
        *((actions.Arm(leaving=leaving, names=to_go),) if goal.at in seen.flows else ()),
        opening,
    )
