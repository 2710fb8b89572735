"""Reading positions from the clusters: what `decide` needs, asked of the leaders in few requests.

Blocking; for a pump's control thread. Metadata is read anew each time (R11).
"""

from __future__ import annotations

import dataclasses
import functools
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set

from sparkmirror.cluster.client import TOPICS_PER_REQUEST, ClusterClient, TopicLeaders
from sparkmirror.cluster.leader_epochs import EpochEnd, epoch_ends
from sparkmirror.cluster.list_offsets import DEBUG_CONSUMER, EARLIEST, LATEST, list_offsets
from sparkmirror.cluster.log_tail import TailUnread, each_readable
from sparkmirror.cluster.topic_configs import CLEANUP_POLICY, topic_configs
from sparkmirror.config import LossPolicy
from sparkmirror.durable.claim_log import SegmentLog
from sparkmirror.durable.claims import Segment
from sparkmirror.durable.identity import Identity
from sparkmirror.durable.losses import Loss, LossLedger
from sparkmirror.position.cause import Cause, cause_of_loss
from sparkmirror.position.decision import Doubt, Position, TargetReading
from sparkmirror.position.foreign_notes import ForeignNotes
from sparkmirror.position.log_probe import LogProbe
from sparkmirror.position.loss_detection import cut_in, look_for_losses, shrunk
from sparkmirror.position.route import Bearings, PartitionPair, Refusal, Remembered
from sparkmirror.position.settling import Settled, Settler, Superseded, assert_present, settle_replicated
from sparkmirror.position.target_reading import TargetReader, Unserved, by_topic, listed_offset, unserved
from sparkmirror.wire.topic_ids import NO_ID, same_topic
from sparkmirror.wire.topic_partition import TopicPartition

LONG_AGO_S = 1.0
"""Positions that took longer to judge are asked about once more: a pump believes none for more than 3 s (R6)."""


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
        self._remembered: Mapping[PartitionPair, Remembered] = {}
        self.moved: Set[str] = frozenset()
        """Source topics whose writers have moved to their copies."""
        self._policies: dict[str, str] = {}
        """`cleanup.policy` of source topics, as far as we may read it."""

    def read(
        self,
        routes: Mapping[PartitionPair, Remembered],
        ready: Callable[[Mapping[PartitionPair, Bearings | Refusal]], None],
    ) -> None:
        """Hand out the bearings of each route, a group of leaders at a time.

        With each route comes what is known of it from before. Connection errors to a whole cluster are raised, and
        `Superseded`; those of a broker are refusals.
        """
        source = self._source.metadata(route.source_topic for route in routes)
        target = self._target.metadata(route.target_topic for route in routes)
        if self._target.cluster_id != self._identity.cluster_id:
            reason = (
                f"target cluster {self._target.config.alias} is now {self._target.cluster_id}, "
                f"not {self._identity.cluster_id}: start again to agree on a new identity"
            )
            ready({route: Refusal(reason, cause=Cause.REFUSED) for route in routes})
            return
        self._learn_policies({route.source_topic for route in routes})
        self._remembered = routes
        results: dict[PartitionPair, Bearings | Refusal] = {}
        by_leaders: dict[tuple[int, int], list[PartitionPair]] = defaultdict(list)
        for route in routes:
            try:
                by_leaders[
                    _leader(source, route.source, self._source.config.alias),
                    _leader(target, route.target, self._target.config.alias),
                ].append(route)
            except _NoPartition as gone:
                results[route] = self._without_partition(route, gone, target.get(route.target_topic))
            except Unserved as error:
                results[route] = Refusal(str(error), transient=True, cause=error.cause)
        if results:
            ready(results)
        for leaders, group in by_leaders.items():
            read = functools.partial(self._read_or_refuse, source, target, *leaders)
            for some, found in each_readable(group, read):
                if isinstance(found, TailUnread):
                    assert_present(self._segments, self._identity)  # to others a successor's records have no end
                    ready(_refused(some, found))
                else:
                    ready(found)

    def changed_policies(self) -> set[str]:
        """Read the source topics' cleanup policies again; the topics whose policy is another one now."""
        before, self._policies = self._policies, {}
        try:
            self._learn_policies(before.keys())
        finally:
            self._policies = before | self._policies
        return {topic for topic, policy in self._policies.items() if policy != before[topic]}

    def _learn_policies(self, topics: Set[str]) -> None:
        unknown = sorted(topics - self._policies.keys())
        for start in range(0, len(unknown), TOPICS_PER_REQUEST):
            found = topic_configs(self._source, unknown[start : start + TOPICS_PER_REQUEST], (CLEANUP_POLICY,))
            self._policies |= {topic: configs.get(CLEANUP_POLICY, "compact") for topic, configs in found.items()}

    def _read_or_refuse(
        self,
        source: Mapping[str, TopicLeaders],
        target: Mapping[str, TopicLeaders],
        source_leader: int,
        target_leader: int,
        routes: Sequence[PartitionPair],
    ) -> Mapping[PartitionPair, Bearings | Refusal]:
        try:
            return self._read_group(source, target, source_leader, target_leader, routes)
        except (TailUnread, Superseded):
            raise
        except ConnectionError as error:
            return _refused(routes, error)

    def _read_group(
        self,
        source: Mapping[str, TopicLeaders],
        target: Mapping[str, TopicLeaders],
        source_leader: int,
        target_leader: int,
        routes: Sequence[PartitionPair],
    ) -> dict[PartitionPair, Bearings | Refusal]:
        sources = by_topic(route.source for route in routes)
        starts = list_offsets(self._source, source_leader, sources, EARLIEST)
        ends = list_offsets(self._source, source_leader, sources, LATEST)
        read_at = self._clock()
        ids = {route.target_topic: target[route.target_topic].topic_id for route in routes}
        # Before the target: what a rival notes meanwhile, behind the log's end as we read it, is not lost.
        known = {route: self._ledger.known(ids[route.target_topic].hex(), route.partition) for route in routes}
        targets = [route.target for route in routes]
        floors = self._target_reader.floors(targets, target, target_leader, self._segments)
        readings = self._target_reader.read(targets, target, target_leader, floors)
        # After the target: whatever is in its log was claimed before it was sent.
        self._segments.refresh((ids[route.target_topic], route.partition) for route in routes)
        by_target = {route.target: route for route in routes}
        foreign = ForeignNotes(self._ledger, by_target, ids, lambda topic: topic in self.moved)
        probe = LogProbe(self._target, target_leader, ids, self._identity)
        settler = Settler(self._segments, probe, self._identity, foreign)
        read = {where: found for where, found in readings.items() if isinstance(found, TargetReading)}
        evidence = settler.evidence(read, ids)
        results: dict[PartitionPair, Bearings | Refusal] = {}
        bounds: dict[PartitionPair, tuple[int, int]] = {}
        for route in routes:
            try:
                reading = readings[route.target]
                if isinstance(reading, Unserved):
                    raise reading
                start = listed_offset(starts[route.source], route.source)
                end = listed_offset(ends[route.source], route.source)
            except Unserved as error:
                results[route] = Refusal(str(error), transient=True, cause=error.cause)
                continue
            if ids[route.target_topic] != NO_ID:
                bounds[route] = start, end
            else:
                results[route] = Refusal(
                    f"cluster {self._target.config.alias} has no id for topic {route.target_topic}: "
                    "inter.broker.protocol.version must be 2.8 or newer on all of its brokers",
                    cause=Cause.REFUSED,
                )
        bounded = {route.target: read[route.target] for route in bounds}
        settled_ones = settle_replicated(settler, self._target_reader, target_leader, bounded, ids, evidence)
        found = {route: (settled_ones[route.target], *some) for route, some in bounds.items()}
        for route in self._moving(target, target_leader, {route: one for route, (one, _, _) in found.items()}, read):
            del found[route]
            rival = Refusal("a rival writes to it: its position is read again", transient=True, cause=Cause.RIVAL)
            results[route] = rival
        epochs = self._epoch_ends(source_leader, source, {route: one.position for route, (one, _, _) in found.items()})
        dated = self._dated(target_leader, {route.target: read[route.target] for route in found}, read_at)
        for route, (settled, start, end) in found.items():
            try:
                results[route] = self._bearings(
                    route,
                    settled,
                    epochs.get(route.source),
                    source[route.source_topic],
                    start,
                    end,
                    ids[route.target_topic],
                    target_leader,
                    read[route.target],
                    dated[route.target],
                    known[route],
                )
            except Unserved as error:
                results[route] = Refusal(str(error), transient=True, cause=error.cause)
        return results

    def _dated(
        self, leader: int, read: Mapping[TopicPartition, TargetReading], read_at: float
    ) -> dict[TopicPartition, float]:
        """When each position was so: later than it was read, if that is long ago and nothing was appended since."""
        dated = dict.fromkeys(read, read_at)
        asked_at = self._clock()
        if read and asked_at - read_at > LONG_AGO_S:
            ends = list_offsets(self._target, leader, by_topic(read), LATEST, replica_id=DEBUG_CONSUMER)
            for where, one in read.items():
                if not ends[where].error and ends[where].offset == one.log_end_before == one.log_end_after:
                    dated[where] = asked_at
        return dated

    def _moving(
        self,
        target: Mapping[str, TopicLeaders],
        leader: int,
        found: Mapping[PartitionPair, Settled],
        read: Mapping[TopicPartition, TargetReading],
    ) -> list[PartitionPair]:
        """Of those that seem to have lost records the ones where a rival confirmed more since the log was read."""
        lost = [route for route, one in found.items() if not isinstance(one.position, Doubt) and one.position.lost]
        if not lost:
            return []
        again = list_offsets(
            self._target, leader, by_topic(route.target for route in lost), LATEST, replica_id=DEBUG_CONSUMER
        )
        return [route for route in lost if again[route.target].offset != read[route.target].log_end_before]

    def _epoch_ends(
        self, leader: int, source: Mapping[str, TopicLeaders], positions: Mapping[PartitionPair, Position | Doubt]
    ) -> dict[TopicPartition, EpochEnd]:
        """Where the leader epochs of the records copied last end in the source's logs now."""
        epochs = {
            route.source: position.leader_epoch
            for route, position in positions.items()
            if isinstance(position, Position)
            and position.leader_epoch >= 0
            and position.source_topic_id is not None
            and same_topic(position.source_topic_id, source[route.source_topic].topic_id)
        }
        return epoch_ends(self._source, leader, epochs) if epochs else {}

    def _bearings(
        self,
        route: PartitionPair,
        settled: Settled,
        epoch: EpochEnd | None,
        source: TopicLeaders,
        start: int,
        end: int,
        target_topic_id: bytes,
        target_leader: int,
        target: TargetReading,
        read_at: float,
        known: Sequence[Loss],
    ) -> Bearings | Refusal:
        position = settled.position
        if isinstance(position, Doubt):
            cause = Cause.POSITION if position.wait else Cause.OTHER
            return Refusal(position.reason, transient=position.wait, cause=cause)
        passed, (topic_id, appended) = self._remembered[route]
        leader = source.partitions[route.partition]
        cut_at = None if epoch is None else self._cut_at(route, position, epoch, leader.leader, target_topic_id)
        if cut_at is None and position.upstream is not None and position.upstream > end:
            cut_at = self._log_end(route, leader.leader)
        found = look_for_losses(
            route,
            position,
            settled.foreign,
            source.topic_id,
            start,
            self._policy,
            target_topic_id=target_topic_id,
            target_end=target.log_end_after,
            known=known,
            appended=appended if topic_id == target_topic_id else -1,
            cut_at=cut_at,
            passed=passed,
            moved=route.source_topic in self.moved,
        )
        for loss in found.losses:
            self._ledger.record(loss)
        halted = next((loss for loss in found.losses if loss.action == "halted"), None)
        if halted is not None:
            return Refusal(halted.words, loss=halted.kind, cause=cause_of_loss(halted.kind))
        return Bearings(
            dataclasses.replace(
                position,
                claim_due=position.claim_due
                or found.resume_at != position.upstream
                or position.source_topic_id == NO_ID != source.topic_id,  # the next claim says what is known now
            ),
            found.resume_at,
            source.topic_id,
            leader.leader,
            leader.epoch,
            start,
            end,
            target_topic_id,
            target_leader,
            read_at,
            position.downstream <= target.high_watermark,
            "compact" in self._policies.get(route.source_topic, "compact"),
        )

    def _cut_at(
        self, route: PartitionPair, position: Position, epoch: EpochEnd, leader: int, target_topic_id: bytes
    ) -> int | None:
        """From where on the source's log is not the one that was copied; at or beyond the position: it still is."""
        if epoch.error:
            raise unserved(self._source.config.alias, route.source, epoch.error)
        if epoch.epoch < 0 or position.upstream is None:
            return None
        if epoch.epoch == position.leader_epoch:
            return epoch.end

        def ask(older: int) -> EpochEnd:
            answer = epoch_ends(self._source, leader, {route.source: older})[route.source]
            if answer.error:
                raise unserved(self._source.config.alias, route.source, answer.error)
            return answer

        return cut_in(self._copied(target_topic_id, route.partition, position), position.upstream, ask)

    def _log_end(self, route: PartitionPair, leader: int) -> int:
        """Of the source's log, also above its high watermark: a shorter log than was copied has been cut.

        Where leader epochs aren't known, or their ends aren't told (before Kafka 2.1), nothing else shows it.
        """
        ends = list_offsets(self._source, leader, by_topic([route.source]), LATEST, replica_id=DEBUG_CONSUMER)
        return listed_offset(ends[route.source], route.source)

    def _copied(self, target_topic_id: bytes, partition: int, position: Position) -> list[Segment]:
        """Every claim on what was copied of this source topic, in order."""
        claims = [
            claim
            for claim in self._identity.own(self._segments.whole(target_topic_id, partition))
            if claim.sequence < position.sequence
        ]
        claims.sort(key=lambda claim: claim.sequence)
        topic_id = position.source_topic_id or NO_ID
        for number in reversed(range(len(claims))):
            if not same_topic(claims[number].source_topic_id, topic_id):
                return claims[number + 1 :]
            topic_id = claims[number].source_topic_id
        return claims

    def _without_partition(self, route: PartitionPair, gone: _NoPartition, target: TopicLeaders | None) -> Refusal:
        """One side's topic is there without this partition: a loss, if it is the source's and any of it was copied."""
        leader = target.partitions.get(route.partition) if target is not None and not target.error else None
        if target is None or leader is None or leader.leader < 0:
            return Refusal(str(gone), transient=True, cause=Cause.NO_TOPIC)
        try:
            loss = self._shrunk(route, target.topic_id, leader.leader, gone.topic_id)
            if loss is None:
                return Refusal(str(gone), transient=True, cause=Cause.NO_TOPIC)
            self._ledger.record(loss)
        except (ConnectionError, Unserved) as error:
            return Refusal(str(error), transient=True, cause=Cause.UNREACHABLE)
        return Refusal(loss.words, loss=loss.kind, cause=cause_of_loss(loss.kind))

    def _shrunk(self, route: PartitionPair, target_topic_id: bytes, leader: int, source_topic_id: bytes) -> Loss | None:
        end = list_offsets(self._target, leader, by_topic([route.target]), LATEST)[route.target]
        self._segments.refresh([(target_topic_id, route.partition)])
        claims = self._segments.claims(target_topic_id, route.partition)
        newest = max(claims, key=lambda claim: claim.sequence, default=None)
        if newest is None or same_topic(newest.source_topic_id, source_topic_id):
            return None  # never copied; or an answer from before the topic had as many
        return shrunk(route, newest, listed_offset(end, route.target))


class _NoPartition(Unserved):
    """The topic has no such partition."""

    def __init__(self, words: str, topic_id: bytes) -> None:
        super().__init__(words, Cause.NO_TOPIC)
        self.topic_id = topic_id


def _refused(routes: Sequence[PartitionPair], error: ConnectionError) -> dict[PartitionPair, Bearings | Refusal]:
    return {route: Refusal(str(error), transient=True, cause=Cause.UNREACHABLE) for route in routes}


def _leader(topics: Mapping[str, TopicLeaders], where: TopicPartition, alias: str) -> int:
    topic, partition = where
    found = topics.get(topic)
    if found is None or found.error:
        raise unserved(alias, where, found.error if found else 3)
    if partition not in found.partitions:
        raise _NoPartition(f"{alias}: {topic} has no partition {partition}", found.topic_id)
    leader = found.partitions[partition].leader
    if leader < 0:
        raise Unserved(f"{alias}: {topic}-{partition} has no leader now", Cause.NO_LEADER)
    return leader
