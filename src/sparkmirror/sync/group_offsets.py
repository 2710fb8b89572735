"""The group offset duty (`sync.group.offsets.enabled`): groups at the target are put where their checkpoints say.

Only where it is safe. A group must be absent, empty or dead at the target, by a complete list of its groups: one that
was not looked at is never taken for a new one (KAFKA-19794). An offset is never put back. And the coordinator has the
last word: it refuses what is committed for a group that has members, also if one has joined a moment ago.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.error_codes import error_name
from sparkmirror.cluster.groups import Committed, Groups, ListedGroup, Offsets
from sparkmirror.config import FlowConfig
from sparkmirror.mm2.records import Checkpoint
from sparkmirror.sync.checkpoints import PROTOCOLS, TYPES
from sparkmirror.sync.group_standing import GroupStanding, GroupState, standing
from sparkmirror.wire.topic_partition import TopicPartition

IDLE = frozenset({"Empty", "Dead"})
_MEMBERS = frozenset({22, 25, 27, 68, 82, 110, 113})
"""ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS, NON_EMPTY_GROUP, FENCED_INSTANCE_ID, FENCED_ and
STALE_MEMBER_EPOCH."""
_ADVICE = {
    3: "it has no such partition",
    29: "grant our principal READ on the topic",
    30: "grant our principal READ on the group",
}


class FoundCheckpoints(Protocol):
    """What the checkpoints duty has found."""

    @property
    def current(self) -> Mapping[str, Mapping[TopicPartition, Checkpoint]]:
        """The newest checkpoints of every group, by target partition."""

    @property
    def standings(self) -> Mapping[str, GroupStanding]:
        """How each group's translation stands."""


class GroupOffsetSync:
    """Sets target groups' offsets for one flow. `run` is one turn; in a thread of its own."""

    def __init__(self, flow: FlowConfig, checkpoints: FoundCheckpoints) -> None:
        self._checkpoints = checkpoints
        self._client = ClusterClient(flow.target, f"{flow.name}|sparkmirror-groups")
        self._groups = Groups(self._client)
        self.standings: Mapping[str, GroupStanding] = {}
        """Of every group that the filter wants, as of the last turn."""
        self.written = 0
        """Offsets that the last turn has set."""

    def run(self) -> None:
        """One turn. Raises `ConnectionError` and `ClusterUnreachable`."""
        standings = dict(self._checkpoints.standings)
        wanted = self._checkpoints.current
        listed = self._groups.listed() if wanted else {}
        idle = []
        for group in wanted:
            reason = self._why_not(listed.get(group))
            if reason:
                standings[group] = GroupStanding(group, GroupState.NOT_SYNCED, reason, len(wanted[group]))
            else:
                idle.append(group)
        there = self._groups.committed(idle)
        for group, reason in there.refused.items():
            standings[group] = self._refused(group, [reason], len(wanted[group]))
        due = {
            group: offsets for group, found in there.offsets.items() if (offsets := _due(wanted[group].values(), found))
        }
        self.written = 0
        for group, outcome in self._groups.commit(due).items():
            self.written += sum(not code for code in outcome.values())
            failed = [why_refused(self._groups.alias, where, code) for where, code in outcome.items() if code]
            if failed:
                standings[group] = self._refused(group, list(dict.fromkeys(failed)), len(wanted[group]))
        self.standings = standings

    def close(self) -> None:
        """Hang up."""
        self._client.close()

    def _why_not(self, group: ListedGroup | None) -> str:
        """Why nothing may be set, as the target lists the group; empty if it may."""
        if group is None:
            return ""
        if group.type not in TYPES:
            return f"it is a {group.type} group at {self._groups.alias}"
        if group.protocol not in PROTOCOLS:
            return f"it is a group of {group.protocol} at {self._groups.alias}"
        if group.state not in IDLE:
            return f"it has members at {self._groups.alias} ({group.state})"
        return ""

    def _refused(self, group: str, reasons: Iterable[str], partitions: int) -> GroupStanding:
        return standing(group, partitions, reasons, ())


def why_refused(alias: str, where: TopicPartition, code: int) -> str:
    """One line: why the target has not taken a group's offset."""
    if code in _MEMBERS:
        return f"a member has joined it at {alias}"
    advice = f"; {_ADVICE[code]}" if code in _ADVICE else ""
    return f"{alias}: {where[0]}-{where[1]}: {error_name(code)}{advice}"


def _due(checkpoints: Iterable[Checkpoint], there: Offsets) -> Offsets:
    """Where the target's group has no offset, or one before the checkpoint's."""
    found = {}
    for one in checkpoints:
        committed = there.get((one.topic, one.partition))
        if committed is None or committed.offset < one.downstream:
            found[one.topic, one.partition] = Committed(one.downstream, one.metadata)
    return found
