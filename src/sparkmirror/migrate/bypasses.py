"""Writes and commits that go past a switch, at the side that a set has left.

Brokers don't tell who wrote a record, nor whom they have refused. So only what was written or committed is named: a
straggler's record once the loss ledger has it, which takes a copy behind it; a commit if the mirror can't have made it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from sparkmirror.errors import SparkMirrorError
from sparkmirror.migrate import phase
from sparkmirror.migrate.file import Set
from sparkmirror.migrate.observation import Observation
from sparkmirror.migrate.switch_plan import SwitchGoal, Who

LOOK_S = 1.0
"""Seconds between two looks."""


def bypasses(before: Observation, now: Observation, moving: Set, goal: SwitchGoal) -> list[str]:
    """Return in words what went past a set's switch between two looks."""
    writes = _writes(before, now, moving, goal) if goal.who is not Who.CONSUMERS else ()
    commits = _commits(before, now, moving, goal) if goal.who is not Who.PRODUCERS else ()
    return [*writes, *commits]


def _writes(before: Observation, now: Observation, moving: Set, goal: SwitchGoal) -> Iterator[str]:
    left = goal.at.other
    here = now.clusters[left].alias
    for topic in moving.topics:
        if goal.at in now.flows:
            known = phase.word(before, goal.at, topic).foreign
            yield from (f"{topic}: {words}" for words in phase.word(now, goal.at, topic).foreign if words not in known)
        if phase.keeps_names(now, topic):
            continue  # its log at the side that was left grows by copies
        ends = phase.topic_at(before, left, topic).ends
        for partition, end in phase.topic_at(now, left, topic).ends.items():
            if (count := end - ends.get(partition, 0)) > 0:
                came = "1 offset" if count == 1 else f"{count:,} offsets"
                yield f"{topic}-{partition}: {came} came to {here} that no flow copies"


def _commits(before: Observation, now: Observation, moving: Set, goal: SwitchGoal) -> Iterator[str]:
    left = goal.at.other
    here = now.clusters[left].alias
    for group in moving.groups:
        then, there = phase.group_at(before, left, group), phase.group_at(now, left, group)
        if there.members and not then.members:
            who = ", ".join(f"{each.client_id}@{each.host}" for each in there.members)
            yield f"{group} has members at {here} again: {who}"
        positions = now.flows[goal.at].positions.get(group, {}) if goal.at in now.flows else {}
        for (topic, partition), offset in there.offsets.items():
            # Up to where the group is at its new side the mirror sets offsets for the way back.
            is_new = then.offsets.get((topic, partition)) != offset
            if is_new and offset > (positions.get((topic, partition)) or 0):
                yield f"{group} has committed offset {offset:,} of {topic}-{partition} at {here}"


def watch(
    look: Callable[[], Observation], sets: Sequence[Set], goal: SwitchGoal, seconds: float
) -> Iterator[list[tuple[Set, str]]]:
    """Look for a while; yield after each look what is new, with its set.

    A cluster that can't be reached is told once, and looked at again. Raises the first look's errors.
    """
    end, before, trouble = time.monotonic() + seconds, look(), ""
    while time.monotonic() < end:
        time.sleep(LOOK_S)
        try:
            now = look()
        except (SparkMirrorError, ConnectionError) as error:
            told = str(error) or type(error).__name__
            yield [(each, f"can't be watched now: {told}") for each in sets] if told != trouble else []
            trouble = told
            continue
        yield [(each, words) for each in sets for words in bypasses(before, now, each, goal)]
        before, trouble = now, ""
