"""The offset maps of a flow's partitions, always at hand: each refresh takes in only what is new.

Claims are read from the segments topic as they come. Those that can't change any more go into a map for good, the
newest stay with the keeper and are judged anew. So a refresh of a partition without gaps costs nothing but a look at
its log's bounds, which many partitions share a request for; and one with a transaction marker every hundred records
costs what was copied since, not what was ever copied.

Only read, below the high watermark, and nothing is written back: a pump may be at work beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from sparkmirror.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.cluster.list_offsets import EARLIEST, LATEST, list_offsets
from sparkmirror.cluster.log_tail import LastBatch, last_batches
from sparkmirror.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.durable.claim_log import KEPT_CLAIMS, SegmentLog, TargetPartition
from sparkmirror.durable.claims import ClaimKey, Retracted, Segment, home_partition, read_record, segments_topic
from sparkmirror.durable.identity import Identity
from sparkmirror.position.arbitration import Evidence, arbitrate, unsettled
from sparkmirror.position.cause import Cause
from sparkmirror.position.decision import appended, unwrap
from sparkmirror.position.log_probe import LogProbe
from sparkmirror.position.matching import TargetLog
from sparkmirror.position.target_reading import Unserved, by_topic, listed_offset, unserved
from sparkmirror.translation.offset_map import Copied, OffsetMap
from sparkmirror.wire.topic_ids import NO_ID
from sparkmirror.wire.topic_partition import TopicPartition

MEMORY_RUNS = 20_000
"""Of one partition's map, 24 bytes each; those of a longer one are in a file."""
PARTITIONS_PER_REQUEST = 2000
_UNKNOWN_TOPIC = 3


class Reached(NamedTuple):
    """What a pump said of a partition, at one moment: so far it is copied. Both are the next offsets."""

    upstream: int
    downstream: int
    target_topic_id: str = ""
    """As hexadecimal digits, if the pump has appended anything."""


class Unmapped(NamedTuple):
    """A partition has no map now."""

    reason: str


NOTHING_YET = Unmapped("nothing was copied yet")


class LogBounds(NamedTuple):
    """Where a target partition's log starts, and its high watermark."""

    start: int
    end: int


class ByOthers(NamedTuple):
    """Target offsets [first, end), which another mirror has written; behind it we began at source offset `upstream`."""

    upstream: int
    first: int
    end: int

    @property
    def reason(self) -> str:
        """Why nothing is known of an offset there."""
        return (
            f"this flow began at offset {self.upstream} of the source and {self.end} of the target; where another "
            "mirror has copied earlier records to is not known"
        )


class PartitionMap:
    """One target partition's map, as of the last refresh.

    `at_once`: nothing is taken in for good before all claims were read, for some of the newest lie below older ones.
    """

    def __init__(self, *, at_once: bool = False) -> None:
        self.offsets = OffsetMap(MEMORY_RUNS)
        self.log = LogBounds(0, 0)
        self._claims: dict[ClaimKey, Segment] = {}
        self._settle_above = 2 * KEPT_CLAIMS
        self._floor = 0
        """Sequence: what is below it is in the map for good."""
        self._due = True
        """There are new claims, or there is no map yet."""
        self._late: list[Segment] = []
        """Claims that came below the floor; they must say what is known already."""
        self._at_once = at_once
        self._broken = False
        self._starts: dict[ClaimKey, Segment] = {}
        """Where this flow began behind what others had written."""
        self.source_topic_id = NO_ID
        """Of what was copied last, once a map is made."""

    def downstream(self, upstream: int) -> int | None:
        """Where a consumer that would read `upstream` next goes on at the target; None: not copied so far yet.

        Never outside the target's log: what its retention has removed is passed over.
        """
        found = self.offsets.downstream(upstream)
        return None if found is None else max(found, self.log.start)

    def upstream(self, downstream: int) -> int | None:
        """As `OffsetMap.upstream`."""
        return self.offsets.upstream(downstream)

    def by_others(self, *, upstream: int | None = None, downstream: int | None = None) -> ByOthers | None:
        """Where an offset may have been copied by somebody else, before us; None: what the map says is all there is."""
        for start in self._starts.values():
            first = self.offsets.end_below(start.downstream)
            if first == start.downstream or start.downstream <= self.log.start:
                continue
            if upstream is not None and upstream < start.upstream:
                found = self.offsets.downstream(upstream)
                passes_over = found is None or found >= start.downstream
                passes_over = passes_over and not self.offsets.began_anew(upstream, start.downstream)
            else:
                passes_over = downstream is not None and first <= downstream < start.downstream
            if passes_over:
                return ByOthers(start.upstream, first, start.downstream)
        return None

    @property
    def others(self) -> tuple[ByOthers, ...]:
        """What somebody else copied between ours, in order."""
        between = [
            ByOthers(start.upstream, self.offsets.end_below(start.downstream), start.downstream)
            for start in self._starts.values()
        ]
        return tuple(sorted(one for one in between if 0 < one.first < one.end))

    @property
    def begins(self) -> int:
        """Downstream: what we have appended since we began there last is not below it."""
        return max((start.downstream for start in self._starts.values()), default=0)

    @property
    def taken_over(self) -> bool:
        """Whether we went on behind somebody else's copy when we began here first."""
        return any(start.downstream <= self.offsets.downstream_start for start in self._starts.values())

    @property
    def end(self) -> int:
        """Downstream: behind the last record that was copied."""
        return self.offsets.copied.downstream

    @property
    def broken(self) -> bool:
        """Whether what was taken in for good isn't so: the target has lost records."""
        return self._broken

    def take(self, one: Segment | Retracted) -> None:
        """What the segments topic says next of this partition."""
        if isinstance(one, Segment) and one.is_start:
            self._starts[one.key] = one
        elif isinstance(one, Segment) and one.heals:
            self._starts = {key: start for key, start in self._starts.items() if start.downstream <= one.downstream}
        if isinstance(one, Retracted):
            self._starts.pop(one.key, None)
            self._due |= self._claims.pop(one.key, None) is not None
        elif one.sequence >= self._floor:
            self._claims[one.key] = one
            self._due = True
            if len(self._claims) > self._settle_above and not self._at_once:
                self._settle()
                # Behind one that stays open none can be settled: trying again with each would be quadratic.
                self._settle_above = max(2 * len(self._claims), 2 * KEPT_CLAIMS)
        else:
            self._late.append(one)
            self._broken |= one.heals
            self._due = True

    def _settle(self) -> None:
        """Put the oldest claims into the map, up to a confirmed one before which nothing is open."""
        confirmed = sorted({claim.sequence for claim in self._claims.values() if claim.confirmed})
        first_open = min((claim.sequence for claim in unsettled(self._claims.values())), default=None)
        floors = confirmed[:-KEPT_CLAIMS]
        floor = max((one for one in floors if first_open is None or one <= first_open), default=0)
        if floor <= self._floor:
            return
        oldest = [key for key in self._claims if key[0] < floor]
        claims = [self._claims.pop(key) for key in oldest]
        self.offsets.settle(arbitrate(claims, {}, TargetLog(0, 0, None)).true, floor)
        self._floor = floor

    def open_claims(self) -> list[Segment]:
        """Those that the log must decide."""
        return unsettled(self._claims.values())

    def bound(self, log: LogBounds) -> None:
        """Take in where the log is now."""
        self._due |= log.end != self.log.end
        self._broken |= log.end < self.offsets.copied.downstream
        self.log = log

    def stands(self, reached: Reached | None) -> bool:
        """Whether there is nothing to be done, or what a pump says is enough: then the map is up to date."""
        if self.open_claims() or self._broken:
            return False
        if reached is not None and (copied := self._at(reached)) is not None:
            if self._due or copied != self.offsets.copied:
                self._renew(arbitrate(self._claims.values(), {}, TargetLog(*self.log, None)).true, copied)
            return True
        return not self._due

    def _at(self, reached: Reached) -> Copied | None:
        """How far the copy was when a pump said so; None if that doesn't fit what the claims say."""
        if reached.downstream > self.log.end or reached.downstream < self.offsets.copied.downstream:
            return None
        claims = sorted(self._claims.values(), key=_sequence)
        started = [claim for claim in claims if claim.downstream <= reached.downstream]
        if not started:
            return None
        records = started[-1].sequence + reached.downstream - started[-1].downstream
        before = [claim for claim in started if claim.sequence < records + claim.altered]
        upstream = (before[-1] if before else claims[0]).next_upstream(records)
        return Copied(records, reached.upstream, reached.downstream) if upstream <= reached.upstream else None

    def judge(self, evidence: Evidence, tail: LastBatch | None, reached: Reached | None) -> Unmapped | None:
        """Have the log decide; returns why it can't, if it can't."""
        claims = list(self._claims.values())
        sequence = appended(tail.last_sequence if tail else None, self.log.end, claims)
        ruling = arbitrate(claims, evidence, TargetLog(*self.log, sequence))
        if ruling.undecided:
            return Unmapped(ruling.undecided)
        for claim in ruling.false:
            self._claims.pop(claim.key, None)
        for claim in ruling.confirmed:
            self._claims[claim.key] = claim
        if not ruling.true:
            return NOTHING_YET
        copied = copied_below(ruling.true, tail, self.log.end)
        if (
            tail is None
            and reached is not None
            and reached.downstream == self.log.end
            and ruling.true[-1].upstream <= reached.upstream < copied.upstream
        ):
            return Unmapped(
                "somebody else wrote to the target, which has deleted it all: known again when more is copied"
            )
        self._renew(ruling.true, copied)
        if reached is not None:
            self.offsets.pass_over(reached.upstream, reached.downstream)
        return None

    def _renew(self, claims: Sequence[Segment], copied: Copied) -> None:
        self.offsets.renew(claims, copied)
        if claims:
            self.source_topic_id = claims[-1].source_topic_id
        self._broken |= any(self.offsets.upstream(late.downstream) != late.upstream for late in self._late)
        self._late.clear()
        self._at_once = self._due = False

    @property
    def empty(self) -> bool:
        """Whether nothing was ever claimed."""
        return not self._claims

    def close(self) -> None:
        """Free the map's file, if it has one."""
        self.offsets.close()


class MapKeeper:
    """Maps of one flow's target partitions. For one thread; it keeps its client to itself."""

    def __init__(self, target: ClusterClient, source_alias: str) -> None:
        self._target = target
        self._source_alias = source_alias
        self._log = TopicLog(target, segments_topic(source_alias))
        self._identity: Identity | None = None
        self._strangers: set[tuple[int, int]] = set()
        """Producers who have claimed something, and are not this flow."""
        self._maps: dict[TargetPartition, PartitionMap] = {}
        self._read_to: dict[int, int] = {}
        self._unread: set[TargetPartition] = set()
        """Maps that have taken in nothing yet."""

    def refresh(
        self, partitions: Mapping[TopicPartition, Reached | None]
    ) -> dict[TopicPartition, PartitionMap | Unmapped]:
        """The maps of these target partitions, up to date; maps of others are dropped.

        Give what the pump said last of each partition, if one is at work: it alone knows that nothing but
        markers follows. Raises `ConnectionError` and `ClusterUnreachable`.
        """
        found: dict[TopicPartition, PartitionMap | Unmapped] = {}
        topics = self._target.metadata({topic for topic, _ in partitions})
        if not self._same_identity():
            nothing = Unmapped(f"no flow from {self._source_alias} has copied anything to {self._target.config.alias}")
            return dict.fromkeys(partitions, nothing)
        by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
        for where in partitions:
            try:
                by_leader[_leader(topics, where)].append(where)
            except Unserved as unserved:
                found[where] = Unmapped(str(unserved))
        ids = {topic: leaders.topic_id for topic, leaders in topics.items()}
        bounds = {leader: self._bounds(leader, some, found) for leader, some in by_leader.items()}
        # After the logs' ends: whatever is in a log was claimed before it was sent.
        self._drop_others({(ids[topic], index) for topic, index in partitions})
        self._read_claims()
        reached = {
            where: said_of_it
            for where, said_of_it in partitions.items()
            if said_of_it is not None and said_of_it.target_topic_id in ("", ids[where[0]].hex())
        }
        for leader, logs in bounds.items():
            try:
                found |= self._at_leader(leader, logs, ids, reached)
            except ConnectionError as error:
                found |= dict.fromkeys(logs, Unmapped(str(error)))
        return found

    def close(self) -> None:
        """Free what the maps hold."""
        for one in self._maps.values():
            one.close()
        self._maps.clear()

    def _same_identity(self) -> bool:
        """Learn who the flow is at the target; whether it is anybody."""
        if self._identity is not None and self._identity.cluster_id == self._target.cluster_id:
            return True
        self._drop_others(())
        self._read_to.clear()
        try:
            self._identity = SegmentLog(self._log).agree(self._target.cluster_id, None)
        except LogUnavailable as error:
            if error.code != _UNKNOWN_TOPIC:
                raise
        return self._identity is not None

    def _drop_others(self, wanted: Collection[TargetPartition]) -> None:
        for where in self._maps.keys() - set(wanted):
            self._maps.pop(where).close()
            self._unread.discard(where)
        for where in wanted:
            if where not in self._maps or self._maps[where].broken:
                broken = self._maps.pop(where, None)
                if broken is not None:
                    broken.close()
                self._maps[where] = PartitionMap(at_once=broken is not None)
                self._unread.add(where)

    def _bounds(
        self, leader: int, partitions: Sequence[TopicPartition], found: dict[TopicPartition, PartitionMap | Unmapped]
    ) -> dict[TopicPartition, LogBounds]:
        bounds = {}
        for start in range(0, len(partitions), PARTITIONS_PER_REQUEST):
            some = partitions[start : start + PARTITIONS_PER_REQUEST]
            starts = list_offsets(self._target, leader, by_topic(some), EARLIEST)
            ends = list_offsets(self._target, leader, by_topic(some), LATEST)
            for where in some:
                try:
                    bounds[where] = LogBounds(listed_offset(starts[where], where), listed_offset(ends[where], where))
                except Unserved as unserved:
                    found[where] = Unmapped(str(unserved))
        return bounds

    def _read_claims(self) -> None:
        """What was appended since the last time, and for new maps what was before."""
        count = self._log.partitions
        homes = {home_partition(topic_id, index, count) for topic_id, index in self._maps}
        unread = {home_partition(topic_id, index, count) for topic_id, index in self._unread}
        for home in homes:
            known = self._read_to.get(home, 0)
            offset, more = 0 if home in unread else known, True
            while more:
                entries, offset, more = self._log.read_some(home, offset)
                for entry in entries:
                    self._take(read_record(entry.key, entry.value), new_only=entry.offset < known)
            self._read_to[home] = offset
        self._unread.clear()

    def _take(self, one: Segment | Identity | Retracted | None, *, new_only: bool) -> None:
        if not isinstance(one, Segment | Retracted):
            return
        where = one.target_topic_id, one.partition
        if where not in self._maps or (new_only and where not in self._unread):
            return
        if isinstance(one, Segment) and not self._is_ours(one):
            return
        self._maps[where].take(one)

    def _is_ours(self, claim: Segment) -> bool:
        producer = claim.producer_id, claim.producer_epoch
        if self._identity is None:
            return False
        if not self._identity.wrote(*producer) and producer not in self._strangers:
            # Who the flow is now was agreed before anything was claimed.
            self._identity = SegmentLog(self._log).agree(self._identity.cluster_id, None) or self._identity
            if not self._identity.wrote(*producer):
                self._strangers.add(producer)
        return self._identity.wrote(*producer)

    def _at_leader(
        self,
        leader: int,
        logs: Mapping[TopicPartition, LogBounds],
        ids: Mapping[str, bytes],
        reached: Mapping[TopicPartition, Reached],
    ) -> dict[TopicPartition, PartitionMap | Unmapped]:
        assert self._identity is not None  # noqa: S101 - refresh has seen to it
        found: dict[TopicPartition, PartitionMap | Unmapped] = {}
        asked: list[TopicPartition] = []
        for where, log in logs.items():
            one = self._maps[ids[where[0]], where[1]]
            one.bound(log)
            found[where] = one
            if one.empty:
                found[where] = NOTHING_YET
            elif not one.stands(reached.get(where)):
                asked.append(where)
        maps = {where: self._maps[ids[where[0]], where[1]] for where in asked}
        claims = {where: some for where, one in maps.items() if (some := one.open_claims())}
        probe = LogProbe(self._target, leader, ids, self._identity)
        evidence = probe.evidence(claims, {where: logs[where].start for where in claims}) if claims else {}
        tails: Mapping[TopicPartition, LastBatch | None] = (
            last_batches(
                self._target,
                leader,
                {where: logs[where].end for where in asked},
                ids,
                self._identity.wrote,
                {where: one.begins for where, one in maps.items()},
            )
            if asked
            else {}
        )
        for where, one in maps.items():
            found[where] = one.judge(evidence.get(where, {}), tails[where], reached.get(where)) or one
        for where in logs:
            if self._maps[ids[where[0]], where[1]].broken:
                found[where] = Unmapped("the target has lost records that were copied; its map is made anew")
        return found


def copied_below(claims: Sequence[Segment], tail: LastBatch | None, high_watermark: int) -> Copied:
    """How far the copy is: by our last batch below the high watermark, else by the end of a log without one."""
    newest = claims[-1]
    expected = max(newest.sequence + high_watermark - newest.downstream, 0)
    if tail is not None:
        records = unwrap(tail.last_sequence + 1, near=expected)
        downstream = tail.next_offset
    elif newest.is_start:  # whatever is behind it is not ours
        records, downstream = newest.sequence, high_watermark
    else:
        records, downstream = expected, high_watermark
    covering = [claim for claim in claims if claim.sequence < records + claim.altered]
    upstream = (covering[-1] if covering else claims[0]).next_upstream(records)
    return Copied(records, upstream, downstream)


def _leader(topics: Mapping[str, TopicLeaders], where: TopicPartition) -> int:
    topic = topics[where[0]]
    if topic.error == _UNKNOWN_TOPIC:
        raise Unserved(f"the target has no topic {where[0]}", Cause.NO_TOPIC)
    if topic.error:
        raise unserved("target", where, topic.error)
    if where[1] not in topic.partitions:
        raise Unserved(f"the target's topic {where[0]} has no partition {where[1]}", Cause.NO_TOPIC)
    leader = topic.partitions[where[1]].leader
    if leader < 0:
        raise Unserved(f"{where[0]}-{where[1]} has no leader at the target now", Cause.NO_LEADER)
    return leader


def _sequence(claim: Segment) -> int:
    return claim.sequence
