"""Starts and ends of many partitions' logs, on both sides of a flow.

Blocking; for the driver. Each leader is asked for all its partitions at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.exact.position.target_reading import Unserved, by_topic, listed_offset
from sparkmirror.kafka.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.kafka.cluster.list_offsets import CONSUMER, DEBUG_CONSUMER, EARLIEST, LATEST, list_offsets
from sparkmirror.kafka.wire.topic_partition import TopicPartition

_READ_COMMITTED = 1

_START = EARLIEST, CONSUMER, 0
_HIGH_WATERMARK = LATEST, CONSUMER, 0
_LOG_END = LATEST, DEBUG_CONSUMER, 0
_LAST_STABLE = LATEST, CONSUMER, _READ_COMMITTED


class BothLogs(NamedTuple):
    """A partition, and its topic on both sides, each with a leader."""

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
    """One partition's offsets, as its leaders said just now."""

    source_start: int
    source_end: int
    """High watermark."""
    target_start: int
    target_end: int
    """The leader's own log end, beyond the high watermark."""
    target_stable: int
    """Last stable offset, asked after the end."""


def by_target_leader(
    source: ClusterClient,
    target: ClusterClient,
    routes: Sequence[PartitionPair],
    lacking: Callable[[PartitionPair, str], None],
) -> dict[int, list[BothLogs]]:
    """Return the partitions with a leader on both sides, by the target's leader.

    `lacking` is called with each further partition and the reason.
    """
    sources = source.metadata(route.source_topic for route in routes)
    targets = target.metadata(route.target_topic for route in routes)
    by_leader: dict[int, list[BothLogs]] = defaultdict(list)
    for route in routes:
        pair = BothLogs(route, sources[route.source_topic], targets[route.target_topic])
        unled = next((topic.name for topic in pair[1:] if not _is_led(topic, route.partition)), None)
        if unled is None:
            by_leader[pair.target_leader].append(pair)
        else:
            lacking(route, f"{unled}-{route.partition} has no leader now")
    return by_leader


def _is_led(topic: TopicLeaders, partition: int) -> bool:
    leader = topic.partitions.get(partition)
    return not topic.error and leader is not None and leader.leader >= 0


def read_bounds(
    source: ClusterClient, target: ClusterClient, partitions: Iterable[BothLogs]
) -> dict[PartitionPair, Bounds | Unserved]:
    """Return each partition's bounds, or the reason why they are unknown."""
    pairs = list(partitions)
    at_source = _listed(source, {pair.route.source: pair.source_leader for pair in pairs}, _START, _HIGH_WATERMARK)
    at_target = _listed(
        target, {pair.route.target: pair.target_leader for pair in pairs}, _START, _LOG_END, _LAST_STABLE
    )
    bounds: dict[PartitionPair, Bounds | Unserved] = {}
    for pair in pairs:
        there, here = at_source[pair.route.source], at_target[pair.route.target]
        if isinstance(there, Unserved):
            bounds[pair.route] = there
        elif isinstance(here, Unserved):
            bounds[pair.route] = here
        else:
            bounds[pair.route] = Bounds(
                source_start=there[0],
                source_end=there[1],
                target_start=here[0],
                target_end=here[1],
                target_stable=here[2],
            )
    return bounds


def read_target_ends(target: ClusterClient, partitions: Iterable[BothLogs]) -> dict[PartitionPair, int | Unserved]:
    """Return the leaders' own log ends."""
    pairs = list(partitions)
    listed = _listed(target, {pair.route.target: pair.target_leader for pair in pairs}, _LOG_END)
    ends: dict[PartitionPair, int | Unserved] = {}
    for pair in pairs:
        end = listed[pair.route.target]
        ends[pair.route] = end if isinstance(end, Unserved) else end[0]
    return ends


def _listed(
    client: ClusterClient, leaders: Mapping[TopicPartition, int], *asked: tuple[int, int, int]
) -> dict[TopicPartition, Sequence[int] | Unserved]:
    """Return the offsets asked for, by partition.

    Each question has timestamp, replica id and isolation level.
    """
    by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
    for partition, leader in leaders.items():
        by_leader[leader].append(partition)
    offsets: dict[TopicPartition, Sequence[int] | Unserved] = {}
    for leader, led in by_leader.items():
        topics = by_topic(led)
        try:
            answers = [
                list_offsets(client, leader, topics, timestamp, replica_id=replica, isolation_level=level)
                for timestamp, replica, level in asked
            ]
        except ConnectionError as error:
            offsets |= dict.fromkeys(led, Unserved(str(error)))
            continue
        for partition in led:
            try:
                offsets[partition] = [listed_offset(answer[partition], partition) for answer in answers]
            except Unserved as unserved:
                offsets[partition] = unserved
    return offsets
