"""Where the logs of many partitions begin and end, on both sides of a flow.

Blocking; for the driver. Each leader is asked for all of its partitions at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from sparkmirror.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.cluster.list_offsets import CONSUMER, DEBUG_CONSUMER, EARLIEST, LATEST, list_offsets
from sparkmirror.position.route import PartitionPair
from sparkmirror.position.target_reading import Unserved, by_topic, listed_offset
from sparkmirror.wire.topic_partition import TopicPartition

_READ_COMMITTED = 1

_START = EARLIEST, CONSUMER, 0
_HIGH_WATERMARK = LATEST, CONSUMER, 0
_LOG_END = LATEST, DEBUG_CONSUMER, 0
_LAST_STABLE = LATEST, CONSUMER, _READ_COMMITTED


class BothLogs(NamedTuple):
    """A partition, and its topic on both sides; both have a leader."""

    route: PartitionPair
    source: TopicLeaders
    target: TopicLeaders

    @property
    def source_leader(self) -> int:
        return self.source.partitions[self.route.partition].leader

    @property
    def target_leader(self) -> int:
        return self.target.partitions[self.route.partition].leader


class Bounds(NamedTuple):
    """Offsets of one partition, as its leaders said just now."""

    source_start: int
    source_end: int
    """The high watermark."""
    target_start: int
    target_end: int
    """The leader's own log end."""
    target_stable: int
    """The last stable offset, asked after the end."""


def by_target_leader(
    source: ClusterClient,
    target: ClusterClient,
    routes: Sequence[PartitionPair],
    lacking: Callable[[PartitionPair, str], None],
) -> dict[int, list[BothLogs]]:
    """The partitions with a leader on both sides, by the target's; `lacking` is told of each other one, and why."""
    sources = source.metadata(route.source_topic for route in routes)
    targets = target.metadata(route.target_topic for route in routes)
    found: dict[int, list[BothLogs]] = defaultdict(list)
    for route in routes:
        both = BothLogs(route, sources[route.source_topic], targets[route.target_topic])
        unled = next((topic.name for topic in both[1:] if not _is_led(topic, route.partition)), None)
        if unled is None:
            found[both.target_leader].append(both)
        else:
            lacking(route, f"{unled}-{route.partition} has no leader now")
    return found


def _is_led(topic: TopicLeaders, partition: int) -> bool:
    leader = topic.partitions.get(partition)
    return not topic.error and leader is not None and leader.leader >= 0


def read_bounds(
    source: ClusterClient, target: ClusterClient, partitions: Iterable[BothLogs]
) -> dict[PartitionPair, Bounds | Unserved]:
    """Those of each partition, or why there are none."""
    both = list(partitions)
    at_source = _listed(source, {one.route.source: one.source_leader for one in both}, _START, _HIGH_WATERMARK)
    at_target = _listed(target, {one.route.target: one.target_leader for one in both}, _START, _LOG_END, _LAST_STABLE)
    found: dict[PartitionPair, Bounds | Unserved] = {}
    for one in both:
        there, here = at_source[one.route.source], at_target[one.route.target]
        if isinstance(there, Unserved):
            found[one.route] = there
        elif isinstance(here, Unserved):
            found[one.route] = here
        else:
            found[one.route] = Bounds(*there, *here)
    return found


def read_target_ends(target: ClusterClient, partitions: Iterable[BothLogs]) -> dict[PartitionPair, int | Unserved]:
    """The leaders' own log ends."""
    both = list(partitions)
    listed = _listed(target, {one.route.target: one.target_leader for one in both}, _LOG_END)
    found: dict[PartitionPair, int | Unserved] = {}
    for one in both:
        end = listed[one.route.target]
        found[one.route] = end if isinstance(end, Unserved) else end[0]
    return found


def _listed(
    client: ClusterClient, leaders: Mapping[TopicPartition, int], *asked: tuple[int, int, int]
) -> dict[TopicPartition, Sequence[int] | Unserved]:
    """For each partition the offsets asked for: timestamp, replica id and isolation level."""
    by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
    for where, leader in leaders.items():
        by_leader[leader].append(where)
    found: dict[TopicPartition, Sequence[int] | Unserved] = {}
    for leader, led in by_leader.items():
        topics = by_topic(led)
        try:
            answers = [
                list_offsets(client, leader, topics, timestamp, replica_id=replica, isolation_level=level)
                for timestamp, replica, level in asked
            ]
        except ConnectionError as error:
            found |= dict.fromkeys(led, Unserved(str(error)))
            continue
        for where in led:
            try:
                found[where] = [listed_offset(answer[where], where) for answer in answers]
            except Unserved as unserved:
                found[where] = unserved
    return found
