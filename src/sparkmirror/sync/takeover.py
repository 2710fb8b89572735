"""Taking partitions over from a MirrorMaker 2 that has stopped: where it ended we go on.

A partition is looked at before it is pumped, where Connect has a stored offset for it and its target log ends with
records that are not ours. What is found is claimed as this flow's start, so that every pump begins there; nothing was
sent by then. If MirrorMaker 2 had it back for a while, what we claimed before that is retracted.
"""

from __future__ import annotations

import logging
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sparkmirror.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.cluster.list_offsets import DEBUG_CONSUMER, LATEST, list_offsets
from sparkmirror.cluster.log_tail import is_ours
from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.config import FlowConfig
from sparkmirror.offsets.connect_offsets import offsets_topics
from sparkmirror.offsets.evidence import LogProbe
from sparkmirror.offsets.last_copied import LastCopied, LastCopiedReader, Untold
from sparkmirror.offsets.mirror_records import OffsetSync
from sparkmirror.offsets.position import Doubt
from sparkmirror.offsets.route import Route, TopicPartition
from sparkmirror.offsets.segment_log import SegmentLog
from sparkmirror.offsets.segments import Identity, Segment, segments_topic
from sparkmirror.offsets.settling import Settler
from sparkmirror.offsets.stored_offsets import StoredOffset, read_stored_offsets
from sparkmirror.offsets.target_reading import TargetReader, Unserved, by_topic, listed_offset
from sparkmirror.sync.stored_syncs import read_syncs, syncs_place
from sparkmirror.sync.topic_rules import topic_rules
from sparkmirror.wire.splice import Run

PROBED_AT_ONCE = 100
"""Partitions whose last batches are looked at in one request."""


log = logging.getLogger(__name__)


class Takeover:
    """For one flow, whose lease is held. Each partition is looked at until it is settled, then not again."""

    def __init__(self, flow: FlowConfig) -> None:
        self._flow = flow
        self._source = ClusterClient(flow.source, f"{flow.name}|sparkmirror-takeover")
        self._target = ClusterClient(flow.target, f"{flow.name}|sparkmirror-takeover")
        self._segments = SegmentLog(TopicLog(self._target, segments_topic(flow.source.alias)))
        read_committed = flow.fetch.isolation_level == "read_committed"
        self._last_copied = LastCopiedReader(self._source, self._target, read_committed=read_committed)
        self._settled: set[TopicPartition] = set()
        self.refused: dict[Route, str] = {}
        """What can't be taken over, and why: it must not be pumped."""
        self.waiting = False
        """Some of that may be told soon."""
        self.taken = 0
        """Partitions taken over since this process began."""

    def begin(self) -> None:
        """The lease was got: somebody else may have written since it was ours last."""
        self._settled.clear()

    def look(self, identity: Identity, routes: Iterable[Route]) -> None:
        """Take over what can be; `refused` says what can't. Raises `ConnectionError`s of a whole cluster."""
        todo = [route for route in routes if route.target not in self._settled]
        if not todo:
            return
        self.refused, self.waiting = {}, False
        topics = offsets_topics(self._flow.source.alias, self._flow.connect.offset_storage_topic)
        stored = read_stored_offsets(self._target, topics, self._flow.source.alias)
        self._settled |= {route.target for route in todo if route.source not in stored}
        todo = [route for route in todo if route.source in stored]
        if not todo:
            return
        source = self._source.metadata(route.source_topic for route in todo)
        target = self._target.metadata(route.target_topic for route in todo)
        by_leader: dict[int, list[Route]] = defaultdict(list)
        for route in todo:
            try:
                _leader(source[route.source_topic], route.partition)
                by_leader[_leader(target[route.target_topic], route.partition)].append(route)
            except Unserved as unserved:
                self._refuse(route, str(unserved), wait=True)
        syncs: Mapping[TopicPartition, OffsetSync] | None = None
        for leader, group in by_leader.items():
            try:
                suspects = self._suspects(identity, group, target, leader)
                if suspects and syncs is None:
                    syncs = self._offset_syncs()
                for route in suspects:
                    one = _Partition(route, source[route.source_topic], target[route.target_topic])
                    self._take(identity, one, stored[route.source][0], (syncs or {}).get(route.source))
            except ConnectionError as error:
                for route in group:
                    if route.target not in self._settled:
                        self._refuse(route, str(error), wait=True)

    def close(self) -> None:
        """Hang up."""
        self._source.close()
        self._target.close()

    def _refuse(self, route: Route, reason: str, *, wait: bool = False) -> None:
        self.refused[route] = reason
        self.waiting |= wait
        log.warning("flow %s: %s-%d is not taken over: %s", self._flow.name, *route.source, reason)

    def _suspects(
        self, identity: Identity, routes: Sequence[Route], topics: Mapping[str, TopicLeaders], leader: int
    ) -> list[Route]:
        """Those whose logs end with something that we did not write; the others are settled."""
        targets = by_topic(route.target for route in routes)
        ends = list_offsets(self._target, leader, targets, LATEST, replica_id=DEBUG_CONSUMER)
        probe = LogProbe(self._target, leader, {name: topics[name].topic_id for name in targets}, identity)
        suspects = []
        for start in range(0, len(routes), PROBED_AT_ONCE):
            some = [route for route in routes[start : start + PROBED_AT_ONCE] if ends[route.target].offset]
            headers = probe.headers({route.target: ends[route.target].offset - 1 for route in some}) if some else {}
            for route in some:
                last = headers.get(route.target, ([], -1))[0][-1:]
                if not last or not is_ours(last[0], identity.producer_id, identity.producer_epoch):
                    suspects.append(route)
        self._settled |= {route.target for route in routes} - {route.target for route in suspects}
        return suspects

    def _take(self, identity: Identity, one: _Partition, stored: StoredOffset, sync: OffsetSync | None) -> None:
        route = one.route
        so_far: _SoFar | None = None
        try:
            so_far = self._so_far(identity, one)
            if so_far is None or (so_far.upstream is not None and stored.upstream < so_far.upstream - 1):
                self._settled.add(route.target)
                return
            found = self._last_copied.find(route, one.source, one.target, stored.upstream, sync)
            if so_far.upstream is None or found.upstream >= so_far.upstream:
                self._claim(identity, one, so_far.sequence, found)
                log.info(
                    "flow %s: %s-%d is taken over from MirrorMaker 2 (%s): source offset %d is next, it had stored %d",
                    self._flow.name,
                    *route.source,
                    stored.of.connector,
                    found.upstream + 1,
                    stored.upstream,
                )
            self._settled.add(route.target)
        except Untold as untold:
            if so_far is not None and so_far.upstream is not None and stored.upstream < so_far.upstream:
                self._settled.add(route.target)  # MirrorMaker 2 has nothing that we have not: somebody else wrote
            else:
                self._refuse(route, str(untold), wait=untold.wait)
        except Unserved as unserved:
            self._refuse(route, str(unserved), wait=True)

    def _so_far(self, identity: Identity, one: _Partition) -> _SoFar | None:
        """What we have in the partition; None if it is not for us to begin there."""
        where, topics, leader = one.route.target, {one.target.name: one.target}, one.target_leader
        reader = TargetReader(self._target, identity)
        floors = reader.floors([where], topics, leader, self._segments)
        claims = self._claims(identity, one)
        if not claims:
            return _SoFar(0, None)
        reading = reader.read([where], topics, leader, floors)[where]
        if isinstance(reading, Unserved):
            raise reading
        ids = {one.target.name: one.target.topic_id}
        settler = Settler(self._segments, LogProbe(self._target, leader, ids, identity), identity)
        evidence = settler.evidence({where: reading}, ids).get(where, {})
        settled = settler.settle(where, one.target.topic_id, reading, evidence)
        position = settled.position
        if isinstance(position, Doubt):
            self._segments.refresh([(one.target.topic_id, one.route.partition)])
            claims = self._claims(identity, one)
            began = all(claim.is_start for claim in claims) and reading.last_sequence is None
            return _SoFar(claims[0].sequence, None) if claims and began else None
        theirs = bool(settled.foreign) and settled.foreign[-1].end == reading.log_end_after
        return _SoFar(position.sequence, position.upstream) if theirs else None

    def _claims(self, identity: Identity, one: _Partition) -> list[Segment]:
        """Ours, the lowest first."""
        claims = identity.own(self._segments.claims(one.target.topic_id, one.route.partition))
        return sorted(claims, key=_sequence)

    def _claim(self, identity: Identity, one: _Partition, sequence: int, found: LastCopied) -> None:
        """Durable before anything is sent: this flow goes on there. What we claimed before says nothing any more."""
        outdated = identity.own(self._segments.whole(one.target.topic_id, one.route.partition))
        claim = Segment(
            target_topic_id=one.target.topic_id,
            partition=one.route.partition,
            sequence=sequence,
            incarnation=random.getrandbits(62),
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            source_topic_id=one.source.topic_id,
            source_leader_epoch=-1,
            downstream=found.log_end,
            runs=(Run(found.upstream + 1, 0),),
        )
        self._segments.settle([claim], outdated)
        end = self._log_end(one)
        if end != found.log_end:
            raise Untold(
                f"somebody writes to {one.route.target_topic} still (offset {found.log_end} to {end - 1}): stop "
                "MirrorMaker 2",
                wait=True,
            )
        self.taken += 1

    def _log_end(self, one: _Partition) -> int:
        where = one.route.target
        listed = list_offsets(self._target, one.target_leader, by_topic([where]), LATEST, replica_id=DEBUG_CONSUMER)
        return listed_offset(listed[where], where)

    def _offset_syncs(self) -> dict[TopicPartition, OffsetSync]:
        """MirrorMaker 2's newest one for each source partition; none if there is no such topic."""
        place = syncs_place(self._flow, topic_rules(self._flow, self._flow.originals).policy)
        syncs = read_syncs(self._source if place.at_source else self._target, place.topic)
        return {(sync.topic, sync.partition): sync for sync in syncs}


class _Partition(NamedTuple):
    """One to look at, and both its topics."""

    route: Route
    source: TopicLeaders
    target: TopicLeaders

    @property
    def target_leader(self) -> int:
        return self.target.partitions[self.route.partition].leader


class _SoFar(NamedTuple):
    """What this flow has in a partition: so many records, and where it would go on; None: nowhere."""

    sequence: int
    upstream: int | None


def _leader(topic: TopicLeaders, partition: int) -> int:
    leader = topic.partitions.get(partition)
    if topic.error or leader is None or leader.leader < 0:
        raise Unserved(f"{topic.name}-{partition} has no leader now")
    return leader.leader


def _sequence(claim: Segment) -> int:
    return claim.sequence
