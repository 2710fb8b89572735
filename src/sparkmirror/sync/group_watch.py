"""Where consumer groups are just now, on both sides: what would a group read again, had it to go on at the target?

Only looked at, a few hundred groups a turn, and more often than checkpoints are written: since the last of them a group
may have read on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.groups import Groups
from sparkmirror.config import FlowConfig
from sparkmirror.mm2.records import Checkpoint
from sparkmirror.policy import ReplicationPolicy
from sparkmirror.sync.places import route_of
from sparkmirror.wire.topic_partition import TopicPartition

MOST_GROUPS = 500
"""In one turn; the others have their turns after it."""


class Whereabouts(NamedTuple):
    """Where a group is in one partition. Offsets are the next ones."""

    remote: TopicPartition
    source: int
    target: int | None
    """None: the group has none there."""
    reread: int | None
    """Offsets that it would read again at the target; None: not known."""


class GroupWatch:
    """Those of one flow. `run` is one turn; one thread."""

    def __init__(
        self,
        flow: FlowConfig,
        policy: ReplicationPolicy,
        wanted_topic: Callable[[str], bool],
        checkpoints: Callable[[], Mapping[str, Mapping[TopicPartition, Checkpoint]]],
    ) -> None:
        """`checkpoints`: the newest of every group, by target partition."""
        self._flow = flow
        self._policy = policy
        self._wanted_topic = wanted_topic
        self._checkpoints = checkpoints
        self._source = ClusterClient(flow.source, f"{flow.name}|sparkmirror-group-watch")
        self._target = ClusterClient(flow.target, f"{flow.name}|sparkmirror-group-watch")
        self._here, self._there = Groups(self._source), Groups(self._target)
        self._next = 0
        self.whereabouts: Mapping[str, Mapping[TopicPartition, Whereabouts]] = {}
        """By group and partition of the source, as of each group's last turn."""

    def run(self) -> None:
        """One turn. Raises `ConnectionError` and `ClusterUnreachable`."""
        checkpoints = self._checkpoints()
        every = sorted(checkpoints)
        first = self._next if self._next < len(every) else 0
        groups = every[first : first + MOST_GROUPS]
        self._next = first + len(groups)
        # The target first: what a group commits at the source meanwhile makes the figure larger, never too small.
        there, here = self._there.committed(groups).offsets, self._here.committed(groups).offsets
        found = {group: one for group, one in self.whereabouts.items() if group in checkpoints}
        for group in groups:
            places = {}
            for partition, committed in here.get(group, {}).items():
                if self._wanted_topic(partition[0]):
                    remote = route_of(partition, self._policy, self._flow).remote
                    at_target = there.get(group, {}).get(remote)
                    target = None if at_target is None else at_target.offset
                    again = reread(committed.offset, target, checkpoints[group].get(remote))
                    places[partition] = Whereabouts(remote, committed.offset, target, again)
            found[group] = places
        self.whereabouts = found

    def close(self) -> None:
        """Hang up."""
        self._source.close()
        self._target.close()


def reread(source: int, target: int | None, checkpoint: Checkpoint | None) -> int | None:
    """Offsets between where a group is at the target and where it is at the source; None: not known.

    The checkpoint tells that `upstream` is `downstream` there; from there on both sides grow alike.
    """
    if target is None or checkpoint is None:
        return None
    return max((source - checkpoint.upstream) + (checkpoint.downstream - target), 0)
