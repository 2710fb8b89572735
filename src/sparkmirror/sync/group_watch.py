"""Current positions of consumer groups on both sides, and their distance.

The distance is the number of offsets that a group would read again after a move to the target.

This module only reads, a few hundred groups a turn, and more often than checkpoints are written: since the last
checkpoint a group may have read on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.groups import Groups
from sparkmirror.config import FlowConfig
from sparkmirror.mm2.record_formats import Checkpoint
from sparkmirror.policy import ReplicationPolicy
from sparkmirror.sync.group_translator import route_of
from sparkmirror.wire.topic_partition import TopicPartition

MOST_GROUPS = 500
"""Most groups in one turn; the rest follow in later turns."""


class Whereabouts(NamedTuple):
    """Position of a group in one partition; offsets are the next to read."""

    remote: TopicPartition
    source: int
    target: int | None
    """Target offset; `None` if the group has no offset at the target."""
    reread: int | None
    """Number of offsets to read again at the target; `None` if unknown."""


class GroupWatch:
    """Positions of one flow's groups; `run` is one turn, for one thread."""

    def __init__(
        self,
        flow: FlowConfig,
        policy: ReplicationPolicy,
        wanted_topic: Callable[[str], bool],
        checkpoints: Callable[[], Mapping[str, Mapping[TopicPartition, Checkpoint]]],
    ) -> None:
        """Prepare the watch.

        `checkpoints` gives the newest checkpoints of every group, by target partition.
        """
        self._flow = flow
        self._policy = policy
        self._wanted_topic = wanted_topic
        self._checkpoints = checkpoints
        self._source = ClusterClient(flow.source, f"{flow.name}|sparkmirror-group-watch")
        self._target = ClusterClient(flow.target, f"{flow.name}|sparkmirror-group-watch")
        self._here, self._there = Groups(self._source), Groups(self._target)
        self._next = 0
        self.whereabouts: Mapping[str, Mapping[TopicPartition, Whereabouts]] = {}
        """Positions by group and source partition, as of each group's last turn."""

    def run(self) -> None:
        """Do one turn. Raises `ConnectionError` and `ClusterUnreachable`."""
        checkpoints = self._checkpoints()
        every = sorted(checkpoints)
        first = self._next if self._next < len(every) else 0
        groups = every[first : first + MOST_GROUPS]
        self._next = first + len(groups)
        # Target first: commits at the source in between make the figure larger, never too small.
        there, here = self._there.committed(groups).offsets, self._here.committed(groups).offsets
        whereabouts = {group: partitions for group, partitions in self.whereabouts.items() if group in checkpoints}
        for group in groups:
            places = {}
            for partition, committed in here.get(group, {}).items():
                if self._wanted_topic(partition[0]):
                    remote = route_of(partition, self._policy, self._flow).remote
                    at_target = there.get(group, {}).get(remote)
                    target = None if at_target is None else at_target.offset
                    again = reread(committed.offset, target, checkpoints[group].get(remote))
                    places[partition] = Whereabouts(remote, committed.offset, target, again)
            whereabouts[group] = places
        self.whereabouts = whereabouts

    def close(self) -> None:
        """Close the connections."""
        self._source.close()
        self._target.close()


def reread(source: int, target: int | None, checkpoint: Checkpoint | None) -> int | None:
    """Return the number of offsets between a group's target and source positions.

    Return `None` if unknown. The checkpoint states that `upstream` equals `downstream`; from there on both sides grow
    alike.
    """
    if target is None or checkpoint is None:
        return None
    return max((source - checkpoint.upstream) + (checkpoint.downstream - target), 0)
