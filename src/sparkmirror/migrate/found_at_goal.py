"""Topics and groups that a run finds at the goal, where the undo leaves them."""

from __future__ import annotations

from dataclasses import dataclass

from sparkmirror.migrate import phase, switch_plan
from sparkmirror.migrate.actions import Action, Open
from sparkmirror.migrate.file import MigrationFile, Set
from sparkmirror.migrate.observation import Observation
from sparkmirror.migrate.switch_plan import SwitchGoal, Who


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundAtGoal:
    """Facts of a run's first look."""

    began: Observation
    """The look itself."""
    set: Set
    """Topics and groups to move: the undo leaves the others."""
    settled: tuple[str, ...]
    """Topics whose producers were at the goal before."""
    stay: bool
    """True if the undo takes no producers back: all were at the goal's side."""
    opened: bool
    """True if an earlier run may have let the set's producers in at the goal's side."""


def found_at_goal(file: MigrationFile, seen: Observation, moving: Set, goal: SwitchGoal) -> FoundAtGoal:
    """Compare a set with the goal when a run begins."""
    consumers = SwitchGoal(Who.CONSUMERS, goal.at)
    groups = tuple(
        name
        for name in moving.groups
        if switch_plan.plan(file, seen, moving.model_copy(update={"groups": (name,)}), consumers)
    )
    settled = tuple(name for name in moving.topics if _is_settled(file, seen, moving, name, goal))
    topics = tuple(name for name in moving.topics if name not in settled)
    live = [name for name in topics if phase.live_side(seen, name) is goal.at]
    let_in = live or [name for name in topics if phase.stopped_at(seen, name) is goal.at]
    return FoundAtGoal(
        began=seen,
        set=moving.model_copy(update={"topics": topics, "groups": groups}),
        settled=settled,
        stay=len(live) == len(topics) and all(_never_leaves(seen, name) for name in live),
        opened=goal.who is not Who.CONSUMERS and bool(let_in),
    )


def producers_left(file: MigrationFile, seen: Observation, moving: Set, goal: SwitchGoal) -> tuple[Action, ...]:
    """Return what is left to do for the goal's producers."""
    return switch_plan.plan(file, seen, moving, SwitchGoal(Who.PRODUCERS, goal.at))


def _is_settled(file: MigrationFile, seen: Observation, moving: Set, topic: str, goal: SwitchGoal) -> bool:
    """True if a topic's producers have come to the goal, or never left it.

    Those who got a right to write at the other side since don't count.
    """
    left = producers_left(file, seen, moving.model_copy(update={"topics": (topic,)}), goal)
    return all(isinstance(action, Open) and action.lacks_newcomers_alone(seen) for action in left)


def _never_leaves(seen: Observation, topic: str) -> bool:
    """True if no undo takes a topic from its live side: it never came, or for good."""
    return not phase.has_come(seen, topic) or phase.topic_phase(seen, topic).phase is phase.Phase.COMPLETED
