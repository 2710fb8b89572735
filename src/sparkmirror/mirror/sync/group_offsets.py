"""The group offset duty (`sync.group.offsets.enabled`): groups at the target.

The duty puts target groups where their checkpoints say, but only where safe. A complete list of the target's groups
must show a group as absent, empty or dead: a group missing from an incomplete list never counts as absent
(KAFKA-19794). The duty never sets an offset back. And the coordinator has the last word: the coordinator refuses
commits for a group with members, even if a member has joined a moment ago.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Protocol

from sparkmirror.config import FlowConfig
from sparkmirror.exact.mm2.record_formats import Checkpoint
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.groups import Committed, Groups, ListedGroup, Offsets
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.sync.checkpoints import PROTOCOLS, TYPES
from sparkmirror.snapshot.group_standing import GroupStanding, standing

IDLE = frozenset({"Empty", "Dead"})
_MEMBERS = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)
"""Error codes for a commit to a group that has members."""
_ADVICE: Mapping[int, str] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "it has no such partition",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "grant sparkmirror's principal READ on the topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "grant sparkmirror's principal READ on the group",
}


class FoundCheckpoints(Protocol):
    """Results of the checkpoints duty."""

    @property
    def current(self) -> Mapping[str, Mapping[TopicPartition, Checkpoint]]:
        """Every group's newest checkpoints, by target partition."""

    @property
    def standings(self) -> Mapping[str, GroupStanding]:
        """The state of each group's translation."""


class GroupOffsetSync:
    """The duty that sets target groups' offsets for one flow.

    `run` is one turn, in a thread of its own.
    """

    def __init__(
        self,
        flow: FlowConfig,
        checkpoints: FoundCheckpoints,
        ended: Callable[[], Mapping[TopicPartition, int]] = lambda: MappingProxyType({}),
    ) -> None:
        """Prepare the duty.

        `ended` has the end of the copy in each target partition whose topic has moved there (`topics done`).
        """
        self._checkpoints = checkpoints
        self._ended = ended
        self._client = ClusterClient(flow.target, f"{flow.name}|sparkmirror-groups")
        self._groups = Groups(self._client)
        self.standings: Mapping[str, GroupStanding] = {}
        """Every wanted group's standing at the last turn."""
        self.written = 0
        """Number of offsets set by the last turn."""

    def run(self) -> None:
        """Do one turn. Raises `ConnectionError` and `ClusterUnreachable`."""
        standings = dict(self._checkpoints.standings)
        wanted = self._checkpoints.current
        listed = self._groups.listed() if wanted else {}
        idle, ended = [], self._ended()
        moving = [group for group, checkpoints in wanted.items() if checkpoints and checkpoints.keys() <= ended.keys()]
        for group in wanted:
            reason = self._why_not(listed.get(group))
            if reason and group in moving and listed[group].state not in IDLE:
                standings[group] = standing(group, len(wanted[group]), moved=[reason])
            elif reason:
                standings[group] = standing(group, len(wanted[group]), missing=[reason])
            else:
                idle.append(group)
        there = self._groups.committed(idle)
        for group in there.offsets.keys() & moving:
            if _is_beyond(there.offsets[group], wanted[group], ended):
                words = f"its topics have moved to {self._groups.alias}, and there it is at the end of the copies"
                standings[group] = standing(group, len(wanted[group]), moved=[words])
        for group, reason in there.refused.items():
            standings[group] = standing(group, len(wanted[group]), missing=[reason])
        due = {
            group: offsets
            for group, present in there.offsets.items()
            if (offsets := _due(wanted[group].values(), present))
        }
        self.written = 0
        for group, outcome in self._groups.commit(due).items():
            self.written += sum(not code for code in outcome.values())
            failed = [why_refused(self._groups.alias, partition, code) for partition, code in outcome.items() if code]
            if failed:
                standings[group] = standing(group, len(wanted[group]), missing=dict.fromkeys(failed))
        self.standings = standings

    def close(self) -> None:
        self._client.close()

    def _why_not(self, group: ListedGroup | None) -> str:
        """Return why the target's group must stay as it is; empty if offsets may be set."""
        if group is None:
            return ""
        if group.type not in TYPES:
            return f"it is a {group.type} group at {self._groups.alias}"
        if group.protocol not in PROTOCOLS:
            return f"it is a group of {group.protocol} at {self._groups.alias}"
        if group.state not in IDLE:
            return f"it has members at {self._groups.alias} ({group.state})"
        return ""


def _is_beyond(there: Offsets, partitions: Iterable[TopicPartition], ended: Mapping[TopicPartition, int]) -> bool:
    """True if a group is at or behind the copy's end in each of its partitions."""
    return all(partition in there and there[partition].offset >= ended[partition] for partition in partitions)


def why_refused(alias: str, partition: TopicPartition, code: int) -> str:
    """Return one line with the reason why the target refused a group's offset."""
    if code in _MEMBERS:
        return f"a member has joined it at {alias}"
    advice = f"; {_ADVICE[code]}" if code in _ADVICE else ""
    return f"{alias}: {partition[0]}-{partition[1]}: {error_name(code)}{advice}"


def _due(checkpoints: Iterable[Checkpoint], there: Offsets) -> Offsets:
    """Return the offsets that the target's group lacks or has only further back."""
    due = {}
    for checkpoint in checkpoints:
        committed = there.get((checkpoint.topic, checkpoint.partition))
        if committed is None or committed.offset < checkpoint.downstream:
            due[checkpoint.topic, checkpoint.partition] = Committed(checkpoint.downstream, checkpoint.metadata)
    return due
