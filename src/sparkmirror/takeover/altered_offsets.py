"""An operator's word on where the copy goes on: what altering a source connector's offsets means here.

A position is read from the target, never remembered, so that a stored offset alone would change nothing. What the
operator says is claimed, as a takeover is: from the next sequence on, the records are those from that upstream offset
on. The claims before it stay true, so that every offset translates exactly before and after. What is skipped, or
copied again, stands in the ledger.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import NamedTuple

from sparkmirror.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.cluster.list_offsets import EARLIEST, LATEST, ListedOffset, list_offsets
from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.config import FlowConfig
from sparkmirror.durable.claim_log import SegmentLog
from sparkmirror.durable.claims import segments_topic, start_claim
from sparkmirror.durable.identity import Identity
from sparkmirror.durable.known_topics import TopicMemory
from sparkmirror.durable.losses import LossLedger, halted_at_target, losses_topic
from sparkmirror.durable.progress import StandingLog, TopicStanding
from sparkmirror.errors import SparkMirrorError
from sparkmirror.events import Event
from sparkmirror.policy import ReplicationPolicy
from sparkmirror.position.decision import Doubt
from sparkmirror.position.foreign_notes import ForeignNotes
from sparkmirror.position.log_probe import LogProbe
from sparkmirror.position.loss_detection import LedgerPosition, altered
from sparkmirror.position.route import PartitionPair
from sparkmirror.position.settling import Settler, settle_replicated
from sparkmirror.position.target_reading import TargetReader, Unserved, listed_offset
from sparkmirror.wire.topic_partition import TopicPartition

QUIET_S = 6.0
"""After pumps that did not end in order a partition must not move for so long (R5)."""

log = logging.getLogger(__name__)


class NotAltered(SparkMirrorError):
    """An offset can't be set, and the message says why."""


class _Partition(NamedTuple):
    """One to be set, and both its topics."""

    route: PartitionPair
    source: TopicLeaders
    target: TopicLeaders


class _Reached(NamedTuple):
    """Where the copy of a partition is."""

    sequence: int
    upstream: int | None
    """None: nothing was ever copied."""
    downstream: int
    unproven: bool = False
    """Pumps don't believe it before somebody says that it is so."""


class AlteredOffsets:
    """For one flow whose lease is held and of which no pump is at work. A context manager; blocking."""

    def __init__(self, flow: FlowConfig, policy: ReplicationPolicy, identity: Identity) -> None:
        self._flow = flow
        self._policy = policy
        self._identity = identity
        self._stack = ExitStack()
        self._source = ClusterClient(flow.source, f"{flow.name}|sparkmirror-altered-offsets")
        self._target = ClusterClient(flow.target, f"{flow.name}|sparkmirror-altered-offsets")
        self._stack.callback(self._source.close)
        self._stack.callback(self._target.close)
        alias = flow.source.alias
        self._segments = SegmentLog(TopicLog(self._target, segments_topic(alias)))
        ledger = TopicLog(self._target, losses_topic(alias))
        self._ledger, self._memory, self._standing = LossLedger(ledger), TopicMemory(ledger), StandingLog(ledger)

    def __enter__(self) -> AlteredOffsets:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stack.close()

    def go_on_at(self, wanted: Mapping[TopicPartition, int | None], *, unclean: bool) -> None:
        """Have the copy of each source partition go on at this upstream offset.

        None: where a partition begins that was never copied, as `auto.offset.reset` says now. `unclean`: pumps may
        still be alive. All or none is set, but for a broker that fails meanwhile. Raises `NotAltered` and
        `ConnectionError`s.
        """
        partitions = self._located(wanted)
        due = []
        reached = {one.route: self._reached(one) for one in partitions}
        if unclean and partitions:
            time.sleep(QUIET_S)
            again = {one.route: self._reached(one) for one in partitions}
            if again != reached:
                raise NotAltered(f"flow {self._flow.name}: a pump is still writing; try again in a few seconds")
        for one in partitions:
            so_far, asked = reached[one.route], wanted[one.route.source]
            upstream = self._upstream(one, asked)
            never_copied = so_far.upstream is None and asked is None
            if (so_far.upstream != upstream or so_far.unproven) and not never_copied:
                due.append((one, so_far, upstream))
        for one, so_far, upstream in due:
            self._claim(one, so_far, upstream)

    def _located(self, wanted: Mapping[TopicPartition, int | None]) -> list[_Partition]:
        """The partitions that are there on both sides; what was never copied needs no reset."""
        remote = {topic: self._policy.format_remote_topic(self._flow.source.alias, topic) for topic, _ in wanted}
        sources, targets = self._source.metadata(remote), self._target.metadata(remote.values())
        found = []
        for (topic, index), offset in sorted(wanted.items()):
            route = PartitionPair(topic, remote[topic], index)
            sides = sources[topic], targets[remote[topic]]
            missing = next((side for side in sides if side.error or index not in side.partitions), None)
            if missing is None:
                found.append(_Partition(route, *sides))
            elif offset is not None:
                raise NotAltered(f"{topic}-{index}: {missing.name}-{index} is not there yet: start the connector once")
        return found

    def _upstream(self, one: _Partition, wanted: int | None) -> int:
        """The offset that is to be copied next."""
        (topic, index), source = one.route.source, one.source
        leader = source.partitions[index].leader
        start, end = (
            self._listed(list_offsets(self._source, leader, {topic: [index]}, when)[topic, index], one)
            for when in (EARLIEST, LATEST)
        )
        if wanted is None:
            return start if self._flow.fetch.auto_offset_reset == "earliest" else end
        if wanted > end:
            raise NotAltered(f"{topic}-{index}: the source ends at offset {end}, and has no offset {wanted - 1} yet")
        return wanted

    def _reached(self, one: _Partition) -> _Reached:
        where, topic_id = one.route.target, one.target.topic_id
        topics, leader = {one.target.name: one.target}, one.target.partitions[one.route.partition].leader
        reader = TargetReader(self._target, self._identity)
        floors = reader.floors([where], topics, leader, self._segments)
        reading = reader.read([where], topics, leader, floors)[where]
        if isinstance(reading, Unserved):
            raise NotAltered(str(reading))
        if not self._identity.own(self._segments.claims(topic_id, where[1])) and reading.last_sequence is None:
            return _Reached(0, None, reading.log_end_after)
        ids = {one.target.name: topic_id}
        probe = LogProbe(self._target, leader, ids, self._identity)
        foreign = ForeignNotes(self._ledger, {where: one.route}, ids)
        settler = Settler(self._segments, probe, self._identity, foreign)
        read = {where: reading}
        settled = settle_replicated(settler, reader, leader, read, ids, settler.evidence(read, ids))
        position = settled[where].position
        if isinstance(position, Doubt):
            raise NotAltered(f"{where[0]}-{where[1]}: {position.reason}")
        unproven = position.supposed or (position.unseen and self._is_halted(one))
        return _Reached(position.sequence, position.upstream, position.downstream, unproven)

    def _is_halted(self, one: _Partition) -> bool:
        where = one.target.topic_id.hex(), one.route.partition
        losses = [loss for loss in self._ledger.read() if (loss.target_topic_id, loss.partition) == where]
        return bool(halted_at_target(losses))

    def _claim(self, one: _Partition, so_far: _Reached, upstream: int) -> None:
        """Durable before the connector can be started again; what was claimed ahead of it is taken back."""
        target_topic_id, index = one.target.topic_id, one.route.partition
        ahead = [
            claim
            for claim in self._identity.own(self._segments.whole(target_topic_id, index))
            if claim.sequence >= so_far.sequence
        ]
        claim = start_claim(
            self._identity,
            (target_topic_id, index),
            one.source.topic_id,
            sequence=so_far.sequence,
            upstream=upstream,
            downstream=so_far.downstream,
            altered=True,
        )
        self._forget_standing(one, so_far.downstream)
        self._segments.settle([claim], ahead)
        if so_far.upstream is not None:
            loss = altered(one.route, LedgerPosition(target_topic_id, so_far.downstream), so_far.upstream, upstream)
            self._ledger.record(loss)
            log.warning("flow %s: %s", self._flow.name, loss.words, extra=Event.LOSS.extra)

    def _forget_standing(self, one: _Partition, downstream: int) -> None:
        """That nothing was left below where the copy ended says nothing of what is to be copied again.

        Nor does what the target once acknowledged: all below `downstream` is accounted for now.
        """
        known = self._standing.of(one.route.target)
        if known is not None:
            stood = {one.route.partition: known[1]._replace(upstream=-1, appended=downstream)}
            self._standing.learn([TopicStanding(target_topic=one.target.name, standing_of=known[0], partitions=stood)])

    def copied(self) -> set[TopicPartition]:
        """The source partitions of which anything was copied."""
        sources = {one.target_topic: one.source_topic for one in self._memory.known.values()}
        there = [one for one in self._target.metadata(sources).values() if not one.error]
        where = {(one.topic_id, index): (sources[one.name], index) for one in there for index in one.partitions}
        self._segments.refresh(where)
        return {source for target, source in where.items() if self._identity.own(self._segments.claims(*target))}

    def _listed(self, listed: ListedOffset, one: _Partition) -> int:
        try:
            return listed_offset(listed, one.route.source)
        except Unserved as unserved:
            raise NotAltered(str(unserved)) from unserved
