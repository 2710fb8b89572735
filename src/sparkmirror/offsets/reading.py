"""Reading positions from the clusters: what `decide` needs, asked of the leaders in few requests.

Blocking; for a pump's control thread. Metadata is read anew each time (R11).
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from sparkmirror.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.cluster.list_offsets import EARLIEST, LATEST, list_offsets
from sparkmirror.cluster.stamping import stamping_topics
from sparkmirror.config import LossPolicy
from sparkmirror.offsets.evidence import LogProbe
from sparkmirror.offsets.losses import LossKind, LossLedger
from sparkmirror.offsets.position import Doubt, TargetReading
from sparkmirror.offsets.route import Bearings, Refusal, Route, TopicPartition
from sparkmirror.offsets.segment_log import SegmentLog
from sparkmirror.offsets.segments import Identity
from sparkmirror.offsets.sentinel import look_for_losses
from sparkmirror.offsets.settling import Settled, Settler
from sparkmirror.offsets.target_reading import TargetReader, Unserved, by_topic, listed_offset, said


class PositionReader:
    """Reads the bearings of one flow's partitions."""

    def __init__(
        self,
        source: ClusterClient,
        target: ClusterClient,
        segments: SegmentLog,
        ledger: LossLedger,
        policy: LossPolicy,
        identity: Identity,
        clock: Callable[[], float],
    ) -> None:
        self._clock = clock
        self._source = source
        self._target = target
        self._segments = segments
        self._ledger = ledger
        self._policy = policy
        self._identity = identity
        self._target_reader = TargetReader(target, identity)

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
        stamps = stamping_topics(self._target, {route.target_topic for route in routes})
        results: dict[Route, Bearings | Refusal] = {}
        by_leaders: dict[tuple[int, int], list[Route]] = defaultdict(list)
        for route in routes:
            try:
                by_leaders[
                    _leader(source, route.source, self._source.config.alias),
                    _leader(target, route.target, self._target.config.alias),
                ].append(route)
            except _Shrunk as shrunk:
                results[route] = Refusal(str(shrunk), loss=LossKind.SHRUNK)
            except Unserved as unserved:
                results[route] = Refusal(str(unserved), transient=True)
        if results:
            ready(results)
        for leaders, group in by_leaders.items():
            found: dict[Route, Bearings | Refusal]
            try:
                found = self._read_group(group, source, target, stamps, *leaders)
            except ConnectionError as error:
                found = {route: Refusal(str(error), transient=True) for route in group}
            ready(found)

    def _read_group(
        self,
        routes: Sequence[Route],
        source: Mapping[str, TopicLeaders],
        target: Mapping[str, TopicLeaders],
        stamps: Mapping[str, bool],
        source_leader: int,
        target_leader: int,
    ) -> dict[Route, Bearings | Refusal]:
        sources = by_topic(route.source for route in routes)
        starts = list_offsets(self._source, source_leader, sources, EARLIEST)
        ends = list_offsets(self._source, source_leader, sources, LATEST)
        read_at = self._clock()
        ids = {route.target_topic: target[route.target_topic].topic_id for route in routes}
        readings = self._target_reader.read([route.target for route in routes], target, target_leader)
        # After the target: whatever is in its log was claimed before it was sent.
        self._segments.refresh((ids[route.target_topic], route.partition) for route in routes)
        settler = Settler(self._segments, LogProbe(self._target, target_leader, ids, self._identity), self._identity)
        read = {where: found for where, found in readings.items() if isinstance(found, TargetReading)}
        evidence = settler.evidence(read, ids)
        results: dict[Route, Bearings | Refusal] = {}
        for route in routes:
            try:
                reading = readings[route.target]
                if isinstance(reading, Unserved):
                    raise reading
                start = listed_offset(starts[route.source], route.source)
                end = listed_offset(ends[route.source], route.source)
            except Unserved as unserved:
                results[route] = Refusal(str(unserved), transient=True)
                continue
            topic_id = ids[route.target_topic]
            if not any(topic_id):
                results[route] = Refusal("the target cluster has no topic ids: Kafka 2.8 or newer is needed")
                continue
            settled = settler.settle(route.target, topic_id, reading, evidence.get(route.target, {}))
            results[route] = self._bearings(
                route,
                settled,
                source[route.source_topic],
                start,
                end,
                topic_id,
                target_leader,
                stamps.get(route.target_topic),
                read_at,
            )
        return results

    def _bearings(
        self,
        route: Route,
        settled: Settled,
        source: TopicLeaders,
        start: int,
        end: int,
        target_topic_id: bytes,
        target_leader: int,
        target_stamps: bool | None,
        read_at: float,
    ) -> Bearings | Refusal:
        position = settled.position
        if isinstance(position, Doubt):
            return Refusal(position.reason, transient=position.wait)
        found = look_for_losses(route, position, settled.foreign, source.topic_id, start, self._policy)
        for loss in found.losses:
            self._ledger.record(loss)
        halted = next((loss for loss in found.losses if loss.action == "halted"), None)
        if halted is not None:
            return Refusal(halted.words, loss=halted.kind)
        leader = source.partitions[route.partition]
        return Bearings(
            dataclasses.replace(position, claim_due=position.claim_due or found.resume_at != position.upstream),
            found.resume_at,
            source.topic_id,
            leader.leader,
            leader.epoch,
            start,
            end,
            target_topic_id,
            target_leader,
            target_stamps,
            read_at,
            found.losses,
        )


class _Shrunk(Unserved):
    """A partition is not there any more."""


def _leader(topics: Mapping[str, TopicLeaders], where: TopicPartition, alias: str) -> int:
    topic, partition = where
    found = topics.get(topic)
    if found is None or found.error:
        raise Unserved(said(alias, where, found.error if found else 3))
    if partition not in found.partitions:
        raise _Shrunk(f"{alias}: {topic} has no partition {partition} any more: it was created again with fewer")
    leader = found.partitions[partition].leader
    if leader < 0:
        raise Unserved(f"{alias}: {topic}-{partition} has no leader now")
    return leader
