"""Writes and commits that go past a switch, at the side that a set has left.

Brokers don't tell who wrote a record, nor whom they have refused. So only what was written or committed is named: a
straggler's record once the loss ledger has it, which takes a copy behind it; a commit if the mirror can't have made it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from sparkmirror.errors import SparkMirrorError
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.migrate import phase
from sparkmirror.migrate.file import Set
from sparkmirror.migrate.observation import Observation
from sparkmirror.migrate.switch_plan import SwitchGoal, Who

LOOK_S = 1.0
"""Seconds between two looks."""


class _Commit(NamedTuple):
    group: str
    topic: str
    partition: int


class Bypasses:
    """Tell what goes past one set's switch, by one look after the other, once."""

    def __init__(self, moving: Set, goal: SwitchGoal, *, sets_groups: bool) -> None:
        """Take the set.

        With `sets_groups` the mirror sets groups' offsets at the side that was left.
        """
        self._moving, self._goal, self._sets_groups = moving, goal, sets_groups
        self._ends: dict[TopicPartition, int] = {}
        """End of each partition as last seen; before, the published or accepted one."""
        self._foreign: dict[str, set[str]] = {}
        """Entries of the ledger that are known, by topic."""
        self._members: set[str] = set()
        """Groups whose members are told."""
        self._offsets: dict[_Commit, int] | None = None
        """Commits as last seen; None before the first look."""
        self._new: dict[_Commit, int] = {}
        """Commits of the last look. The next one tells how far the mirror can have been."""
        self._commits: set[_Commit] = set()
        """Partitions whose commits are told."""

    def look(self, seen: Observation) -> list[str]:
        """Return what is new, in words; the first look's entries and offsets are not."""
        writes = self._writes(seen) if self._goal.who is not Who.CONSUMERS else ()
        commits = self._readers(seen) if self._goal.who is not Who.PRODUCERS else ()
        return [*writes, *commits]

    def _writes(self, seen: Observation) -> Iterator[str]:
        left = self._goal.at.other
        here = seen.clusters[left].alias
        for topic in self._moving.topics:
            words = phase.word(seen, self._goal.at, topic).foreign
            yield from (f"{topic}: {each}" for each in words if each not in self._foreign.get(topic, words))
            self._foreign.setdefault(topic, set()).update(words)
            if phase.keeps_names(seen, topic):
                continue  # its log at the side that was left grows by copies
            said = phase.word(seen, left, topic)
            for partition, end in phase.topic_at(seen, left, topic).ends.items():
                accepted = max(said.ends.get(partition, end), said.accepted.get(partition, 0))
                count = end - self._ends.get((topic, partition), accepted)
                self._ends[topic, partition] = end
                if count > 0:
                    came = "1 offset" if count == 1 else f"{count:,} offsets"
                    yield f"{topic}-{partition}: {came} came to {here} that no flow copies"

    def _readers(self, seen: Observation) -> Iterator[str]:
        left = self._goal.at.other
        here = seen.clusters[left].alias
        for group in self._moving.groups:
            there = phase.group_at(seen, left, group)
            if not there.empty and group not in self._members:
                self._members.add(group)
                who = ", ".join(f"{each.client_id}@{each.host}" for each in there.members) or "unknown"
                yield f"{group} has members at {here}: {who}"
        now = {
            _Commit(group, *place): offset
            for group in self._moving.groups
            for place, offset in phase.group_at(seen, left, group).offsets.items()
        }
        for commit, offset in self._clients(seen, now):
            if commit not in self._commits:
                self._commits.add(commit)
                yield f"{commit.group} has committed offset {offset:,} of {commit.topic}-{commit.partition} at {here}"
        self._offsets = now

    def _clients(self, seen: Observation, now: dict[_Commit, int]) -> Iterator[tuple[_Commit, int]]:
        """Yield commits that the mirror can't have made.

        It sets no group back, nor beyond the group's place at the other side.
        """
        positions = seen.flows[self._goal.at].positions if self._goal.at in seen.flows else {}
        for commit, offset in self._new.items():
            position = positions.get(commit.group, {}).get((commit.topic, commit.partition), -1)
            if not self._sets_groups or (position is not None and offset > position):
                yield commit, offset
        self._new = {}
        known = now if self._offsets is None else self._offsets
        for commit, offset in now.items():
            before = known.get(commit)
            if before is not None and offset < before:
                yield commit, offset
            elif offset != before:
                self._new[commit] = offset


def watch(
    look: Callable[[], Observation],
    watched: Sequence[tuple[str, Bypasses]],
    seconds: float,
    trouble: Callable[[str], None],
) -> Iterator[tuple[str, str]]:
    """Look for a while; yield what goes past a switch, with the set's name.

    Why a cluster can't be looked at goes to `trouble`, once.
    """
    end, told = time.monotonic() + seconds, ""
    while True:
        try:
            seen = look()
        except (SparkMirrorError, ConnectionError) as error:
            why = str(error) or type(error).__name__
            if why != told:
                trouble(why)
            told = why
        else:
            told = ""
            for name, bypasses in watched:
                yield from ((name, words) for words in bypasses.look(seen))
        if time.monotonic() >= end:
            return
        time.sleep(LOOK_S)
