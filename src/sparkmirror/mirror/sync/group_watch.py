"""Consumer groups' current positions on both sides, and what a move costs.

This module only reads, a few hundred groups a turn, and more often than checkpoints are written: since the last
checkpoint a group may have read on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple, Protocol

from sparkmirror.config import FlowConfig
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.groups import Groups
from sparkmirror.kafka.cluster.list_offsets import LATEST, offsets_by_leader
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.sync.group_maps import PlacedGroup, route_of
from sparkmirror.mirror.sync.group_offsets import IDLE
from sparkmirror.policy import ReplicationPolicy

MOST_GROUPS = 500
"""Most groups in one turn; the rest follow in later turns."""


class Whereabouts(NamedTuple):
    """A group's position in one partition; offsets are the next to read."""

    remote: TopicPartition
    source: int
    target: int | None
    """Target offset; `None` if the group has no offset at the target."""
    skipped: int | None = None
    """Number of offsets that the group would skip if it moved; `None` if unknown."""
    reread: int | None = None
    """Number of offsets to read again at the target; `None` if unknown."""
    beyond_end: bool = False
    """True if `source` is past the end of the source's log."""


class TranslatedGroups(Protocol):
    """Groups with translated offsets, and the maps that translated them."""

    @property
    def watched(self) -> Collection[str]:
        """Groups to watch, by name."""

    def place(self, partition: TopicPartition, source: int, target: int | None) -> PlacedGroup:
        """Return a group's place in a source partition."""


class GroupWatch:
    """One flow's group positions; `run` is one turn, for one thread."""

    def __init__(
        self,
        flow: FlowConfig,
        policy: ReplicationPolicy,
        wanted_topic: Callable[[str], bool],
        translated: TranslatedGroups,
    ) -> None:
        self._flow = flow
        self._policy = policy
        self._wanted_topic = wanted_topic
        self._translated = translated
        self._source = ClusterClient(flow.source, f"{flow.name}|sparkmirror-group-watch")
        self._target = ClusterClient(flow.target, f"{flow.name}|sparkmirror-group-watch")
        self._here, self._there = Groups(self._source), Groups(self._target)
        self._next = 0
        self.whereabouts: Mapping[str, Mapping[TopicPartition, Whereabouts]] = {}
        """Positions by group and source partition, at each group's last turn."""

    def run(self) -> None:
        """Do one turn. Raises `ConnectionError` and `ClusterUnreachable`."""
        watched = frozenset(self._translated.watched)
        first = self._next if self._next < len(watched) else 0
        groups = sorted(watched)[first : first + MOST_GROUPS]
        self._next = first + len(groups)
        # Target first: commits at the source in between make `reread` larger, never too small.
        there, here = self._there.committed(groups).offsets, self._here.committed(groups).offsets
        looked: dict[str, dict[TopicPartition, Whereabouts]] = {group: {} for group in groups}
        ahead: list[tuple[str, TopicPartition]] = []
        for group in groups:
            for partition, committed in here.get(group, {}).items():
                if self._wanted_topic(partition[0]):
                    remote = route_of(partition, self._policy, self._flow).remote
                    at_target = there.get(group, {}).get(remote)
                    target = None if at_target is None else at_target.offset
                    cost, is_ahead = self._translated.place(partition, committed.offset, target)
                    skipped, reread = cost if cost is not None else (None, None)
                    looked[group][partition] = Whereabouts(
                        remote=remote, source=committed.offset, target=target, skipped=skipped, reread=reread
                    )
                    if is_ahead:
                        ahead.append((group, partition))
        self._mark_beyond_end(looked, ahead)
        self._mark_moved(looked)
        kept = {group: places for group, places in self.whereabouts.items() if group in watched}
        self.whereabouts = kept | looked

    def _mark_beyond_end(
        self, looked: dict[str, dict[TopicPartition, Whereabouts]], ahead: Iterable[tuple[str, TopicPartition]]
    ) -> None:
        """Mark the places past the source's end, where no record will come."""
        # After the groups' offsets: no offset is beyond an end that merely grew.
        ends = offsets_by_leader(self._source, {partition for _, partition in ahead}, LATEST)
        for group, partition in ahead:
            place = looked[group][partition]
            if place.source > ends.get(partition, place.source):
                looked[group][partition] = place._replace(skipped=None, reread=None, beyond_end=True)

    def _mark_moved(self, looked: dict[str, dict[TopicPartition, Whereabouts]]) -> None:
        """Let groups with members at the target skip nothing: they have moved."""
        further = [group for group, places in looked.items() if any(place.skipped for place in places.values())]
        listed = self._there.listed() if further else {}
        for group in further:
            if group in listed and listed[group].state not in IDLE:
                looked[group] = {
                    partition: place._replace(skipped=0 if place.skipped else place.skipped)
                    for partition, place in looked[group].items()
                }

    def close(self) -> None:
        self._source.close()
        self._target.close()
