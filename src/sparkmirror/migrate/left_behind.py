"""Words for the rest of a switch that could not be undone, from an observation."""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.migrate import phase
from sparkmirror.migrate.actions import listed
from sparkmirror.migrate.file import Set
from sparkmirror.migrate.observation import Observation, Side
from sparkmirror.migrate.switch_plan import SwitchGoal, Who


def left_behind(seen: Observation, moving: Set, goal: SwitchGoal) -> list[str]:
    """Return a line for each kind of thing that still holds clients, or the topics."""
    return [*_at_clusters(seen, moving), *(_of_topics(seen, moving, goal) if goal.who is not Who.CONSUMERS else ())]


def _at_clusters(seen: Observation, moving: Set) -> Iterator[str]:
    for side, there in seen.clusters.items():
        for name in moving.topics:
            if who := phase.topic_at(seen, side, name).fence.added:
                yield f"WRITE on {name} at {there.alias} is denied to {listed(sorted(who))}"
        if groups := [name for name in moving.groups if phase.group_at(seen, side, name).read_denied]:
            yield f"{listed(groups)} can't read at {there.alias}"


def _of_topics(seen: Observation, moving: Set, goal: SwitchGoal) -> Iterator[str]:
    here, there = seen.clusters[goal.at.other].alias, seen.clusters[goal.at].alias
    came = [name for name in moving.topics if phase.live_side(seen, name) is goal.at and phase.has_come(seen, name)]
    if came:
        yield f"{listed(came)} came to {there}"
    published = [name for name in moving.topics if name not in came and phase.word(seen, goal.at.other, name).done]
    if published:
        yield f"the ends of {listed(published)} at {here} are published"
    if stopped := [name for name in moving.topics if phase.stopped(seen, name)]:
        yield f"the producers of {listed(stopped)} are stopped"


def command_back(goal: SwitchGoal, moving: Set) -> str:
    """Return the command that takes a switch back."""
    back = " --back" if goal.at is Side.TARGET else ""
    return f"sparkmirror migration switch {goal.who} FILE --set {moving.name}{back}"
