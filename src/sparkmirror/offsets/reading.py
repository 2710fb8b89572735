"""Reading positions from the clusters: what `decide` needs, asked of the leaders in few requests.

Blocking; for a pump's control thread. Metadata is read anew each time (R11).
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sparkmirror.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.cluster.error_codes import error_name
from sparkmirror.cluster.list_offsets import DEBUG_CONSUMER, EARLIEST, LATEST, ListedOffset, list_offsets
from sparkmirror.cluster.log_tail import last_batches
from sparkmirror.cluster.producers import DescribedPartition, describe_producers
from sparkmirror.offsets.position import (
    Doubt,
    LogTail,
    Position,
    ProducerState,
    TargetReading,
    decide,
    true_claims,
)
from sparkmirror.offsets.segment_log import SegmentLog
from sparkmirror.offsets.segments import Identity

TopicPartition = tuple[str, int]

_SETTLE_S = 1.0
"""How long to wait for the high watermark to reach the log end before the tail is read (R9b)."""
_SETTLE_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class Route:
    """One partition of a flow: its topic there and here; the partition number is the same."""

    source_topic: str
    target_topic: str
    partition: int

    @property
    def source(self) -> TopicPartition:
        return self.source_topic, self.partition

    @property
    def target(self) -> TopicPartition:
        return self.target_topic, self.partition


@dataclass(frozen=True, slots=True)
class Bearings:
    """Where a partition stands on both sides, as its leaders said just now."""

    position: Position
    source_topic_id: bytes
    source_leader: int
    source_leader_epoch: int
    source_start: int
    source_end: int
    """The high watermark."""
    target_topic_id: bytes
    target_leader: int
    read_at: float
    """When the target's leader was asked, by the reader's clock: the position is not younger."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a partition has no bearings now. `transient`: it may settle by itself, ask again soon."""

    reason: str
    transient: bool = False


class _Unserved(Exception):
    """A leader is missing or answered one partition with an error."""


class PositionReader:
    """Reads the bearings of one flow's partitions."""

    def __init__(
        self,
        source: ClusterClient,
        target: ClusterClient,
        segments: SegmentLog,
        identity: Identity,
        clock: Callable[[], float],
    ) -> None:
        self._clock = clock
        self._source = source
        self._target = target
        self._segments = segments
        self._identity = identity

    def read(self, routes: Sequence[Route], ready: Callable[[Mapping[Route, Bearings | Refusal]], None]) -> None:
        """Hand out the bearings of each route, a group of leaders at a time.

        Connection errors to a whole cluster are raised, those of a broker are refusals.
        """
        source = self._source.metadata(route.source_topic for route in routes)
        target = self._target.metadata(route.target_topic for route in routes)
        if self._target.cluster_id != self._identity.cluster_id:
            reason = (
                f"target cluster {self._target.config.alias} is now {self._target.cluster_id}, "
                f"not {self._identity.cluster_id}: start again to agree on a new identity"
            )
            ready({route: Refusal(reason) for route in routes})
            return
        results: dict[Route, Bearings | Refusal] = {}
        by_leaders: dict[tuple[int, int], list[Route]] = defaultdict(list)
        for route in routes:
            try:
                by_leaders[
                    _leader(source, route.source, self._source.config.alias),
                    _leader(target, route.target, self._target.config.alias),
                ].append(route)
            except _Unserved as unserved:
                results[route] = Refusal(str(unserved), transient=True)
        if results:
            ready(results)
        for (source_leader, target_leader), group in by_leaders.items():
            found: dict[Route, Bearings | Refusal]
            try:
                found = self._read_group(group, source, target, source_leader, target_leader)
            except ConnectionError as error:
                found = {route: Refusal(str(error), transient=True) for route in group}
            ready(found)

    def _read_group(
        self,
        routes: Sequence[Route],
        source: Mapping[str, TopicLeaders],
        target: Mapping[str, TopicLeaders],
        source_leader: int,
        target_leader: int,
    ) -> dict[Route, Bearings | Refusal]:
        sources = _by_topic(route.source for route in routes)
        starts = list_offsets(self._source, source_leader, sources, EARLIEST)
        ends = list_offsets(self._source, source_leader, sources, LATEST)
        read_at = self._clock()
        readings = self._read_target([route.target for route in routes], target, target_leader)
        # After the target: whatever is in its log was claimed before it was sent.
        self._segments.refresh((target[route.target_topic].topic_id, route.partition) for route in routes)
        results: dict[Route, Bearings | Refusal] = {}
        for route in routes:
            try:
                reading = readings[route.target]
                if isinstance(reading, Refusal):
                    results[route] = reading
                    continue
                start = _offset(starts[route.source], route.source)
                end = _offset(ends[route.source], route.source)
            except _Unserved as unserved:
                results[route] = Refusal(str(unserved), transient=True)
                continue
            topic = source[route.source_topic]
            results[route] = self._settle(
                reading,
                Bearings(
                    Position(0, None, 0, None, None),
                    topic.topic_id,
                    source_leader,
                    topic.partitions[route.partition].epoch,
                    start,
                    end,
                    target[route.target_topic].topic_id,
                    target_leader,
                    read_at,
                ),
                route,
            )
        return results

    def _settle(self, reading: TargetReading, bearings: Bearings, route: Route) -> Bearings | Refusal:
        claims = self._segments.claims(bearings.target_topic_id, route.partition)
        ours = [
            claim
            for claim in claims
            if (claim.producer_id, claim.producer_epoch) == (self._identity.producer_id, self._identity.producer_epoch)
        ]
        agreed = true_claims(ours)
        if agreed is None:
            return Refusal("rival pumps claimed different records for the same sequence")
        if not any(bearings.target_topic_id):
            return Refusal("the target cluster has no topic ids: Kafka 2.8 or newer is needed")
        verdict = decide(reading, agreed)
        if isinstance(verdict, Doubt):
            return Refusal(verdict.reason, transient=verdict.wait)
        if verdict.segment and verdict.segment.source_topic_id != bearings.source_topic_id:
            return Refusal(
                f"source topic {route.source_topic} was deleted and created again since it was copied "
                f"(up to offset {verdict.upstream})"
            )
        upstream = verdict.upstream
        if upstream is not None and upstream < bearings.source_start:
            return Refusal(
                f"offsets {upstream} to {bearings.source_start - 1} are gone at the source "
                f"({bearings.source_start - upstream} records): they expired before they were copied"
            )
        if upstream is not None and upstream > bearings.source_end:
            return Refusal(
                f"the source's log ends at {bearings.source_end}, but offsets up to {upstream - 1} were copied: "
                "it was truncated",
                transient=True,
            )
        return Bearings(
            verdict,
            bearings.source_topic_id,
            bearings.source_leader,
            bearings.source_leader_epoch,
            bearings.source_start,
            bearings.source_end,
            bearings.target_topic_id,
            bearings.target_leader,
            bearings.read_at,
        )

    def _read_target(
        self, partitions: Sequence[TopicPartition], topics: Mapping[str, TopicLeaders], leader: int
    ) -> dict[TopicPartition, TargetReading | Refusal]:
        asked = _by_topic(partitions)
        starts = list_offsets(self._target, leader, asked, EARLIEST)
        before = list_offsets(self._target, leader, asked, LATEST, replica_id=DEBUG_CONSUMER)
        described = describe_producers(self._target, leader, asked)
        stateless = [
            where for where in partitions if not described[where].error and self._state(described[where]) is None
        ]
        tails, unsettled = self._read_tails(stateless, topics, leader)
        after = list_offsets(self._target, leader, asked, LATEST, replica_id=DEBUG_CONSUMER)
        readings: dict[TopicPartition, TargetReading | Refusal] = {}
        for where in partitions:
            try:
                if described[where].error:
                    raise _Unserved(_said("target", where, described[where].error))
                if where in unsettled:
                    raise _Unserved(unsettled[where])
                start = _offset(starts[where], where)
                end = _offset(after[where], where)
                readings[where] = TargetReading(
                    log_start=start,
                    log_end_before=_offset(before[where], where),
                    state=self._state(described[where]),
                    tail=tails.get(where),
                    log_end_after=end,
                    has_records=end > start,
                )
            except _Unserved as unserved:
                readings[where] = Refusal(str(unserved), transient=True)
        return readings

    def _read_tails(
        self, partitions: Sequence[TopicPartition], topics: Mapping[str, TopicLeaders], leader: int
    ) -> tuple[dict[TopicPartition, LogTail], dict[TopicPartition, str]]:
        """Tails, and why others can't be read yet."""
        if not partitions:
            return {}, {}
        ends, unsettled = self._settled_ends(partitions, leader)
        found = last_batches(
            self._target,
            leader,
            ends,
            {topic: topics[topic].topic_id for topic, _ in partitions},
            self._identity.producer_id,
            self._identity.producer_epoch,
        )
        return {where: LogTail(*batch) for where, batch in found.items() if batch is not None}, unsettled

    def _settled_ends(
        self, partitions: Sequence[TopicPartition], leader: int
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, str]]:
        """Log ends, once the high watermarks have reached them, and what is said of those that don't get there."""
        asked = _by_topic(partitions)
        deadline = time.monotonic() + _SETTLE_S
        while True:
            ends = list_offsets(self._target, leader, asked, LATEST, replica_id=DEBUG_CONSUMER)
            marks = list_offsets(self._target, leader, asked, LATEST)
            lagging = {
                where: f"{where[0]}-{where[1]}: the high watermark is at {marks[where].offset}, the log end at "
                f"{ends[where].offset}; are replicas in sync?"
                for where in partitions
                if marks[where].offset < ends[where].offset
            }
            if not lagging or time.monotonic() > deadline:
                settled = {
                    where: ends[where].offset
                    for where in partitions
                    if where not in lagging and not ends[where].error and not marks[where].error
                }
                return settled, lagging
            time.sleep(_SETTLE_PAUSE_S)

    def _state(self, described: DescribedPartition) -> ProducerState | None:
        for entry in described.producers:
            if (
                entry.producer_id == self._identity.producer_id
                and entry.producer_epoch == self._identity.producer_epoch
                and entry.last_sequence >= 0
            ):
                return ProducerState(entry.last_sequence, entry.last_timestamp_ms)
        return None


def _leader(topics: Mapping[str, TopicLeaders], where: TopicPartition, alias: str) -> int:
    topic, partition = where
    found = topics.get(topic)
    if found is None or found.error:
        raise _Unserved(_said(alias, where, found.error if found else 3))
    if partition not in found.partitions:
        raise _Unserved(f"{alias}: {topic} has no partition {partition}")
    leader = found.partitions[partition].leader
    if leader < 0:
        raise _Unserved(f"{alias}: {topic}-{partition} has no leader now")
    return leader


def _offset(listed: ListedOffset, where: TopicPartition) -> int:
    if listed.error:
        raise _Unserved(_said("the leader", where, listed.error))
    return listed.offset


def _said(who: str, where: TopicPartition, code: int) -> str:
    return f"{who}: {where[0]}-{where[1]}: {error_name(code)}"


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = defaultdict(list)
    for topic, partition in partitions:
        grouped[topic].append(partition)
    return grouped
