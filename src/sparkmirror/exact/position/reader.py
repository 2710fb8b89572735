"""Read positions from the clusters.

The reader asks the leaders, in few requests, for all that `decide` needs. Blocking; for a pump's reading thread, or the
driver. Metadata is read again each time (R11).
"""

from __future__ import annotations

import dataclasses
import functools
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from typing import NamedTuple

from sparkmirror.config import LossPolicy
from sparkmirror.exact.durable.claim_log import ClaimLog, HomesUnavailable
from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.durable.known_topics import TopicMemory
from sparkmirror.exact.durable.losses import Loss, LossLedger, losses_topic
from sparkmirror.exact.durable.noted_progress import ReportedProgress
from sparkmirror.exact.position.cause import Cause, cause_of_loss
from sparkmirror.exact.position.decision import Doubt, Position, TargetReading
from sparkmirror.exact.position.last_records import Likeness, LogSide
from sparkmirror.exact.position.led_positions import LedPositions
from sparkmirror.exact.position.loss_detection import Writers, cut_in, look_for_losses, shrunk_by_claim
from sparkmirror.exact.position.lost_claims import LostClaims, claims_gone
from sparkmirror.exact.position.resolving import Resolved, Superseded, assert_present
from sparkmirror.exact.position.route import PartitionPair, PartitionReading, Refusal
from sparkmirror.exact.position.target_reading import Unserved, by_topic, listed_offset, unserved
from sparkmirror.kafka.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.kafka.cluster.leader_epochs import EpochEnd, EpochStart, epoch_ends
from sparkmirror.kafka.cluster.list_offsets import DEBUG_CONSUMER, EARLIEST, LATEST, list_offsets
from sparkmirror.kafka.cluster.log_tail import TailUnread, each_readable
from sparkmirror.kafka.cluster.topic_configs import CLEANUP_POLICY, topic_configs
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire.topic_ids import NO_ID, same_topic
from sparkmirror.kafka.wire.topic_partition import TopicPartition

LONG_AGO_S = 1.0
"""Judging time in seconds after which the log's end is asked for once more.

A pump believes no position for more than 3 s (R6).
"""


class _LogBounds(NamedTuple):
    """A source partition's log bounds."""

    start: int
    end: int
    """High watermark."""
    readable_end: int
    """End for consumers at the flow's isolation level."""


class PositionReader:
    """Position reader for one flow's partitions."""

    def __init__(
        self,
        source: ClusterClient,
        target: ClusterClient,
        claim_log: ClaimLog,
        ledger: LossLedger,
        policy: LossPolicy,
        identity: Identity,
        clock: Callable[[], float],
        *,
        read_committed: bool = False,
        turns: bool = False,
    ) -> None:
        """Prepare the reader; with `turns` the flow takes turns with its opposite flow."""
        self._clock = clock
        self._turns = turns
        self._read_committed = read_committed
        self._source = source
        self._target = target
        self._claim_log = claim_log
        self._ledger = ledger
        self._policy = policy
        self._identity = identity
        self._reported: Mapping[PartitionPair, ReportedProgress] = {}
        self._last_ends: Mapping[TopicPartition, int] = {}
        self._moved: Set[str] = frozenset()
        """Source topics whose writers have moved to their copies."""
        self._policies: dict[str, str] = {}
        """Each source topic's `cleanup.policy`; an unreadable policy is `compact`."""
        self.lost_claims = LostClaims(claim_log)
        self._away: dict[int, ConnectionError] = {}
        """Home partitions whose claims the present reading could not read or write."""

    def read(
        self,
        routes: Mapping[PartitionPair, ReportedProgress],
        ready: Callable[[Mapping[PartitionPair, PartitionReading | Refusal]], None],
    ) -> None:
        """Hand each pair's reading to `ready`, a group of leaders at a time.

        `routes` has each pair's earlier progress. Raises `Superseded`, and connection errors to a whole cluster; a
        connection error to a single broker is a refusal.
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
        self._away = {}
        self._reported = routes
        results: dict[PartitionPair, PartitionReading | Refusal] = {}
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
            for part, answer in each_readable(group, read):
                if isinstance(answer, TailUnread):
                    # To a process with a former identity, a successor's records seem to have no end.
                    assert_present(self._claim_log, self._identity)
                    ready(_refused(part, answer))
                else:
                    ready(answer)

    def look_ahead(self, routes: Sequence[PartitionPair]) -> dict[PartitionPair, tuple[int, int]]:
        """Connect to the leaders of pairs to be read soon, and read their claims.

        Returns each pair's leaders, at the source and at the target. Decides and writes nothing: another pump is at
        work on these pairs.
        """
        source = self._source.metadata(route.source_topic for route in routes)
        target = self._target.metadata(route.target_topic for route in routes)
        self._learn_policies({route.source_topic for route in routes})
        leaders: dict[PartitionPair, tuple[int, int]] = {}
        for route in routes:
            with suppress(Unserved):
                leaders[route] = (
                    _leader(source, route.source, self._source.config.alias),
                    _leader(target, route.target, self._target.config.alias),
                )
        for leader in {source_leader for source_leader, _ in leaders.values()}:
            led = by_topic(route.source for route, (own, _) in leaders.items() if own == leader)
            list_offsets(self._source, leader, led, LATEST)
        for leader in {target_leader for _, target_leader in leaders.values()}:
            led = by_topic(route.target for route, (_, own) in leaders.items() if own == leader)
            list_offsets(self._target, leader, led, LATEST)
        for route in leaders:
            self._ledger.known(target[route.target_topic].topic_id.hex(), route.partition)
        self._claim_log.refresh((target[route.target_topic].topic_id, route.partition) for route in leaders)
        return leaders

    def came(self) -> None:
        """Take note that a pair comes from another pump; for any thread.

        That pump's losses are in the ledger.
        """
        self._ledger.outdate()

    def with_policy(self, told: PartitionReading, source_topic: str) -> PartitionReading:
        """Return a position that another pump has told, with the cleanup policy.

        The policy counts as it was read here; for any thread.
        """
        return dataclasses.replace(told, compacted=told.compacted or self._is_compacted(source_topic))

    def _is_compacted(self, source_topic: str) -> bool:
        return "compact" in self._policies.get(source_topic, "compact")

    def changed_policies(self) -> set[str]:
        """Read the source topics' cleanup policies again. Return the changed topics."""
        before, self._policies = self._policies, {}
        try:
            self._learn_policies(before.keys())
        finally:
            self._policies = before | self._policies
        return {topic for topic, policy in self._policies.items() if policy != before[topic]}

    def _learn_policies(self, topics: Set[str]) -> None:
        answers = topic_configs(self._source, topics - self._policies.keys(), (CLEANUP_POLICY,))
        self._policies |= {topic: configs.get(CLEANUP_POLICY, "compact") for topic, configs in answers.items()}

    def _read_or_refuse(
        self,
        source: Mapping[str, TopicLeaders],
        target: Mapping[str, TopicLeaders],
        source_leader: int,
        target_leader: int,
        routes: Sequence[PartitionPair],
    ) -> Mapping[PartitionPair, PartitionReading | Refusal]:
        """Read a group; a home partition that fails refuses only its own pairs."""
        refused: dict[PartitionPair, PartitionReading | Refusal] = {}
        for route in routes if self._away else ():
            home = self._claim_log.home((target[route.target_topic].topic_id, route.partition))
            if home in self._away:
                refused |= _refused([route], self._away[home])
        rest = [route for route in routes if route not in refused]
        if not rest:
            return refused
        try:
            return refused | self._read_group(source, target, source_leader, target_leader, rest)
        except (TailUnread, Superseded):
            raise
        except HomesUnavailable as error:
            self._away |= dict.fromkeys(error.homes, error)
            return self._read_or_refuse(source, target, source_leader, target_leader, routes)
        except ConnectionError as error:
            return refused | _refused(rest, error)

    def _read_group(
        self,
        source: Mapping[str, TopicLeaders],
        target: Mapping[str, TopicLeaders],
        source_leader: int,
        target_leader: int,
        routes: Sequence[PartitionPair],
    ) -> dict[PartitionPair, PartitionReading | Refusal]:
        sources = by_topic(route.source for route in routes)
        starts = list_offsets(self._source, source_leader, sources, EARLIEST)
        ends = list_offsets(self._source, source_leader, sources, LATEST)
        readable_ends = (
            list_offsets(self._source, source_leader, sources, LATEST, isolation_level=1)
            if self._read_committed
            else ends
        )
        read_at = self._clock()
        ids = {route.target_topic: target[route.target_topic].topic_id for route in routes}
        # The ledger is read before the target: a rival's later note, behind the log's end as read here, is no loss.
        known = {route: self._ledger.known(ids[route.target_topic].hex(), route.partition) for route in routes}
        positions = LedPositions(
            self._target,
            self._claim_log,
            self._ledger,
            self._identity,
            target_leader,
            routes,
            target,
            self._writers,
        )
        readings = positions.read([route.target for route in routes])
        read = positions.readings
        results: dict[PartitionPair, PartitionReading | Refusal] = {}
        bounds: dict[PartitionPair, _LogBounds] = {}
        for route in routes:
            try:
                reading = readings[route.target]
                if isinstance(reading, Unserved):
                    raise reading
                bound = _LogBounds(
                    *(listed_offset(listed[route.source], route.source) for listed in (starts, ends, readable_ends))
                )
            except Unserved as error:
                results[route] = Refusal(str(error), transient=True, cause=error.cause)
                continue
            if ids[route.target_topic] != NO_ID:
                bounds[route] = bound
            else:
                results[route] = Refusal(
                    f"cluster {self._target.config.alias} has no id for topic {route.target_topic}: "
                    "inter.broker.protocol.version must be 2.8 or newer on all of its brokers",
                    cause=Cause.REFUSED,
                )
        answers = positions.resolve(route.target for route in bounds)
        decided = {route: (answers[route.target], bound) for route, bound in bounds.items()}
        for route in self._moving(
            target, target_leader, {route: result for route, (result, _) in decided.items()}, read
        ):
            del decided[route]
            rival = Refusal("a rival writes to it: its position is read again", transient=True, cause=Cause.RIVAL)
            results[route] = rival
        epochs = self._epoch_ends(
            source_leader, source, {route: result.position for route, (result, _) in decided.items()}
        )
        likenesses = self.lost_claims.compare(
            LogSide(self._source, source_leader, {topic: leaders.topic_id for topic, leaders in source.items()}),
            LogSide(self._target, target_leader, ids),
            {route: result.position for route, (result, _) in decided.items()},
            read,
        )
        dated = self._dated(target_leader, {route.target: read[route.target] for route in decided}, read_at)
        for route, (resolved, bound) in decided.items():
            try:
                results[route] = self._partition_reading(
                    route,
                    resolved,
                    epochs.get(route.source),
                    source[route.source_topic],
                    bound,
                    ids[route.target_topic],
                    target_leader,
                    read[route.target],
                    dated[route.target],
                    known[route],
                    likenesses.get(route),
                )
            except Unserved as error:
                results[route] = Refusal(str(error), transient=True, cause=error.cause)
        return results

    def _writers(self, source_topic: str) -> Writers:
        if self._turns:
            return Writers.IN_TURNS
        return Writers.MOVED if source_topic in self._moved else Writers.UNSAID

    def writers_moved(self, ends: Mapping[TopicPartition, int]) -> None:
        """Take source partitions' published ends; their writers have moved to the copies."""
        self._last_ends, self._moved = ends, {topic for topic, _ in ends}

    def _turn_is_over(self, route: PartitionPair, upstream: int | None, passed: int) -> bool:
        """True if the flow takes turns, and has come to the published end of its turn."""
        end = self._last_ends.get(route.source) if self._turns else None
        return end is not None and max(passed, -1 if upstream is None else upstream) >= end

    def _dated(
        self, leader: int, read: Mapping[TopicPartition, TargetReading], read_at: float
    ) -> dict[TopicPartition, float]:
        """Return the time at which each position was true.

        The time is later than the reading if the reading is long ago and the log's end has not moved since.
        """
        dated = dict.fromkeys(read, read_at)
        asked_at = self._clock()
        if read and asked_at - read_at > LONG_AGO_S:
            ends = list_offsets(self._target, leader, by_topic(read), LATEST, replica_id=DEBUG_CONSUMER)
            for partition, reading in read.items():
                if (
                    not ends[partition].error
                    and ends[partition].offset == reading.log_end_before == reading.log_end_after
                ):
                    dated[partition] = asked_at
        return dated

    def _moving(
        self,
        target: Mapping[str, TopicLeaders],
        leader: int,
        resolved: Mapping[PartitionPair, Resolved],
        read: Mapping[TopicPartition, TargetReading],
    ) -> list[PartitionPair]:
        """Return the partitions with an apparent loss whose log has moved since.

        A rival pump confirmed more records there after the log was read.
        """
        lost = [
            route
            for route, result in resolved.items()
            if not isinstance(result.position, Doubt) and result.position.lost
        ]
        if not lost:
            return []
        again = list_offsets(
            self._target, leader, by_topic(route.target for route in lost), LATEST, replica_id=DEBUG_CONSUMER
        )
        return [route for route in lost if again[route.target].offset != read[route.target].log_end_before]

    def _epoch_ends(
        self, leader: int, source: Mapping[str, TopicLeaders], positions: Mapping[PartitionPair, Position | Doubt]
    ) -> dict[TopicPartition, EpochEnd]:
        """Return where the last copied record's leader epoch ends now, by partition.

        The ends are ends in the source's logs.
        """
        epochs = {
            route.source: position.leader_epoch
            for route, position in positions.items()
            if isinstance(position, Position)
            and position.leader_epoch >= 0
            and position.source_topic_id is not None
            and same_topic(position.source_topic_id, source[route.source_topic].topic_id)
        }
        return epoch_ends(self._source, leader, epochs) if epochs else {}

    def _partition_reading(
        self,
        route: PartitionPair,
        resolved: Resolved,
        epoch: EpochEnd | None,
        source: TopicLeaders,
        bounds: _LogBounds,
        target_topic_id: bytes,
        target_leader: int,
        target: TargetReading,
        read_at: float,
        known: Sequence[Loss],
        likeness: Likeness | None,
    ) -> PartitionReading | Refusal:
        position, reported = resolved.position, self._reported[route]
        if isinstance(position, Doubt):
            appended = reported.appended_to(target_topic_id)
            if position.unclaimed and appended > target.log_start:
                return Refusal(claims_gone(target, appended), cause=Cause.CLAIMS_LOST)
            if position.unclaimed and self._is_original(route):
                return Refusal(self._originals(route, target))
            cause = Cause.POSITION if position.wait else Cause.CLAIMS_LOST if position.claims_lost else Cause.OTHER
            return Refusal(position.reason, transient=position.wait, cause=cause)
        leader = source.partitions[route.partition]
        cut_at = None if epoch is None else self._cut_at(route, position, epoch, leader.leader, target_topic_id)
        if cut_at is None and position.upstream is not None and position.upstream > bounds.end:
            cut_at = self._log_end(route, leader.leader)
        if (lost := self.lost_claims.refusal(target_topic_id, route, position, likeness, cut_at)) is not None:
            return lost
        passed = (reported.upstream, reported.downstream) if reported.is_of(target_topic_id) else (-1, -1)
        history = look_for_losses(
            route,
            position,
            resolved.foreign,
            source.topic_id,
            bounds.start,
            self._policy,
            target_topic_id=target_topic_id,
            target_end=target.log_end_after,
            known=known,
            appended=reported.appended_to(target_topic_id),
            cut_at=cut_at,
            passed=passed,
            writers=self._writers(route.source_topic),
            turn_is_over=self._turn_is_over(route, position.upstream, passed[0]),
        )
        for loss in history.losses:
            self._ledger.record(loss)
        halted = next((loss for loss in history.losses if loss.action == "halted"), None)
        if halted is not None:
            return Refusal(halted.words, loss=halted.kind, cause=cause_of_loss(halted.kind))
        return PartitionReading(
            position=dataclasses.replace(
                position,
                claim_due=position.claim_due
                or history.resume_at != position.upstream
                or position.source_topic_id == NO_ID != source.topic_id,  # the next claim says what is known now
            ),
            resume_at=history.resume_at,
            source_topic_id=source.topic_id,
            source_leader=leader.leader,
            source_leader_epoch=leader.epoch,
            source_start=bounds.start,
            source_end=bounds.readable_end,
            target_topic_id=target_topic_id,
            target_leader=target_leader,
            read_at=read_at,
            replicated=target.is_replicated(position),
            compacted=self._is_compacted(route.source_topic),
        )

    def _is_original(self, route: PartitionPair) -> bool:
        """True if the opposite flow has copied the source topic from the target topic.

        Its own records at the source tell. If they can't be read the answer is False.
        """
        theirs = TopicMemory(TopicLog(self._source, losses_topic(self._target.config.alias)))
        try:
            copy = theirs.known.get(route.source_topic)
        except ConnectionError:
            return False
        return copy is not None and copy.source_topic == route.target_topic

    def _originals(self, route: PartitionPair, target: TargetReading) -> str:
        here, there = self._source.config.alias, self._target.config.alias
        return (
            f"the target partition holds offsets {target.log_start} to {target.log_end_after - 1}: they are the "
            f"originals that flow {there}->{here} has copied to {route.source_topic}, so delete nothing; to send back "
            "what is written to the copy from now on, let both flows take turns (sparkmirror.turn; docs/topics.md)"
        )

    def _cut_at(
        self, route: PartitionPair, position: Position, epoch: EpochEnd, leader: int, target_topic_id: bytes
    ) -> int | None:
        """Return the offset from which on the source's log is not the copied log.

        An offset at or beyond the position shows that the log is still the copied log. None: not known.
        """
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

        copied = [
            EpochStart(claim.source_leader_epoch, claim.upstream)
            for claim in self._copied(target_topic_id, route.partition, position)
        ]
        return cut_in(copied, position.upstream, ask)

    def _log_end(self, route: PartitionPair, leader: int) -> int:
        """Return where the source's log ends, possibly above the high watermark.

        A log that is shorter than the copied log has been cut. Where leader epochs aren't known, or brokers don't tell
        where leader epochs end (before Kafka 2.1), only the log's end shows the cut.
        """
        ends = list_offsets(self._source, leader, by_topic([route.source]), LATEST, replica_id=DEBUG_CONSUMER)
        return listed_offset(ends[route.source], route.source)

    def _copied(self, target_topic_id: bytes, partition: int, position: Position) -> list[Claim]:
        """Return the claims on this source topic's copied records, in order."""
        claims = [
            claim
            for claim in self._identity.own(self._claim_log.whole(target_topic_id, partition))
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
        """Return the refusal for a pair whose topic at one side lacks the partition.

        The refusal is a loss if the source topic lacks the partition, and the partition's records were copied.
        """
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
        self._claim_log.refresh([(target_topic_id, route.partition)])
        claims = self._claim_log.claims(target_topic_id, route.partition)
        newest = max(claims, key=lambda claim: claim.sequence, default=None)
        if newest is None or same_topic(newest.source_topic_id, source_topic_id):
            return None  # never copied, or an answer from before the topic had as many partitions
        return shrunk_by_claim(route, newest, listed_offset(end, route.target))


class _NoPartition(Unserved):
    """Error for a topic without the partition."""

    def __init__(self, words: str, topic_id: bytes) -> None:
        super().__init__(words, Cause.NO_TOPIC)
        self.topic_id = topic_id


def _refused(
    routes: Sequence[PartitionPair], error: ConnectionError
) -> dict[PartitionPair, PartitionReading | Refusal]:
    return {route: Refusal(str(error), transient=True, cause=Cause.UNREACHABLE) for route in routes}


def _leader(topics: Mapping[str, TopicLeaders], topic_partition: TopicPartition, alias: str) -> int:
    topic, partition = topic_partition
    described = topics.get(topic)
    if described is None or described.error:
        raise unserved(alias, topic_partition, described.error if described else 3)
    if partition not in described.partitions:
        raise _NoPartition(f"{alias}: {topic} has no partition {partition}", described.topic_id)
    leader = described.partitions[partition].leader
    if leader < 0:
        raise Unserved(f"{alias}: {topic}-{partition} has no leader now", Cause.NO_LEADER)
    return leader
