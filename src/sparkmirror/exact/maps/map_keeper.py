"""Current offset maps for a flow's partitions; each refresh reads only new data.

The keeper reads claims from the segments topic as they come. Final claims go into a map for good; the newest claims
stay with the keeper, which judges them again at each refresh. So refreshing a partition without gaps costs only a look
at its log's bounds, for which many partitions share a request. Refreshing a partition with a transaction marker every
hundred records costs as much as was copied since, instead of as much as was ever copied.

The keeper only reads, below the high watermark, and writes nothing: a pump may be at work at the same time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from sparkmirror.chunks import chunks
from sparkmirror.exact.durable.claim_log import KEPT_CLAIMS, ClaimLog
from sparkmirror.exact.durable.claims import (
    Claim,
    ClaimKey,
    OwnTopicRecord,
    Retracted,
    TargetPartition,
    home_partition,
    read_record,
    segments_topic,
)
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.durable.noted_progress import ReportedProgress
from sparkmirror.exact.maps.offset_map import Copied, OffsetMap
from sparkmirror.exact.maps.query_map_feed import QueryMapFeed
from sparkmirror.exact.position.arbitration import arbitrate
from sparkmirror.exact.position.cause import Cause
from sparkmirror.exact.position.decision import appended, unwrap
from sparkmirror.exact.position.log_probe import LogProbe
from sparkmirror.exact.position.matching import TargetLog
from sparkmirror.exact.position.questioned_claims import Evidence, questioned
from sparkmirror.exact.position.target_reading import Unserved, by_topic, listed_offset, unserved
from sparkmirror.kafka.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.kafka.cluster.list_offsets import EARLIEST, LATEST, list_offsets
from sparkmirror.kafka.cluster.log_tail import LastBatch, last_batches
from sparkmirror.kafka.cluster.topic_log import LogCut, LogPlace, LogUnavailable, TopicLog
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.topic_ids import NO_ID
from sparkmirror.kafka.wire.topic_partition import TopicPartition

MEMORY_RUNS = 20_000
"""Most runs of one map in memory, 24 bytes each; longer maps use a file."""
PARTITIONS_PER_REQUEST = 2000


class Unmapped(NamedTuple):
    """Reason why a partition has no map now."""

    reason: str


NOTHING_YET = Unmapped("nothing was copied yet")
NO_PLACES = Unmapped(
    "a query makes the rows: only one that selects and filters, and keeps topic, partition and offset, has places that "
    "translate, as long as no other producer writes there"
)
PLACES_UNKNOWN = Unmapped("where a query's records are is not known: the target's log is shorter than was told")
CLAIMS_LOST = Unmapped("the segments topic lost claims on copied records, so where they came from is not known")


class LogBounds(NamedTuple):
    """A target partition's log start, and its high watermark."""

    start: int
    end: int


class ForeignRange(NamedTuple):
    """Target offsets [first, end) that a foreign mirror wrote before this flow began.

    This flow began at source offset `upstream`, after these target offsets.
    """

    upstream: int
    first: int
    end: int

    @property
    def reason(self) -> str:
        """Reason why an offset in the range has no known translation."""
        return (
            f"this flow began at offset {self.upstream} of the source and {self.end} of the target; target "
            "offsets of records that another mirror copied earlier are not known"
        )


class PartitionMap:
    """One target partition's map, as the last refresh left it.

    With `at_once`, no claim is final before all claims were read, because some of the newest claims have lower
    sequences than older claims.
    """

    def __init__(self, *, at_once: bool = False) -> None:
        self.offsets = OffsetMap(MEMORY_RUNS)
        self.log = LogBounds(0, 0)
        self._claims: dict[ClaimKey, Claim] = {}
        self._fold_above = 2 * KEPT_CLAIMS
        self._floor = 0
        """Sequence below which the map is final."""
        self._due = True
        """True if claims are new, or no map exists yet."""
        self._late: list[Claim] = []
        """Claims that came below the floor; they must agree with the map."""
        self._at_once = at_once
        self._broken = False
        self._starts: dict[ClaimKey, Claim] = {}
        """Claims on this flow's starts after foreign records."""
        self._ended: dict[ClaimKey, Claim] = {}
        """Claims behind which other claims were lost."""
        self.source_topic_id = NO_ID
        """The last copied record's source topic id, once a map is made."""

    def downstream(self, upstream: int) -> int | None:
        """Translate a consumer's next offset to the target; `None` if not copied yet.

        The result is never outside the target's log: offsets removed by retention are passed over.
        """
        offset = self.offsets.downstream(upstream)
        return None if offset is None else max(offset, self.log.start)

    def upstream(self, downstream: int) -> int | None:
        """Translate a copy consumer's next offset back to the source.

        `None` if `downstream` is not written yet. See `OffsetMap.present_upstream`.
        """
        return self.offsets.present_upstream(downstream)

    def foreign_range(self, *, upstream: int | None = None, downstream: int | None = None) -> ForeignRange | None:
        """Return the foreign range that may hold an offset's copy.

        Return `None` if the map's answer is complete.
        """
        for start in self._starts.values():
            first = self.offsets.end_below(start.downstream)
            if first == start.downstream or start.downstream <= self.log.start:
                continue
            if upstream is not None and upstream < start.upstream:
                offset = self.offsets.downstream(upstream)
                passes_over = offset is None or offset >= start.downstream
                passes_over = passes_over and not self.offsets.began_anew(upstream, start.downstream)
            else:
                passes_over = downstream is not None and first <= downstream < start.downstream
            if passes_over:
                return ForeignRange(start.upstream, first, start.downstream)
        return None

    @property
    def others(self) -> tuple[ForeignRange, ...]:
        """Ranges that foreign mirrors copied between this flow's records, in order."""
        between = [
            ForeignRange(start.upstream, self.offsets.end_below(start.downstream), start.downstream)
            for start in self._starts.values()
        ]
        return tuple(sorted(stretch for stretch in between if 0 < stretch.first < stretch.end))

    def is_of_another_turn(self, upstream: int) -> bool:
        """True if a reader at a source offset reads the opposite flow's copies.

        Or it has just read them. Then the position at the target is not for this flow to set (M5).
        """
        turns = [start for start in self._starts.values() if start.turn]
        ended = any(
            start.upstream == upstream and self.offsets.end_below(start.downstream) != start.downstream
            for start in turns
        )
        return ended or (bool(turns) and self.foreign_range(upstream=upstream) is not None)

    def foreign_from(self, first: int) -> int | None:
        """Return how many target offsets from `first` on are not this flow's records.

        The flow's records there follow a start at or behind `first`; None if the claims do not tell.
        """
        copied = self.offsets.copied
        if copied.downstream <= first:
            return max(self.log.end - first, 0)
        starts = [start for start in self._starts.values() if start.downstream >= first]
        if not starts:
            return None
        begin = min(starts, key=_downstream)
        between = (copied.downstream - copied.records) - (begin.downstream - begin.sequence)
        return begin.downstream - first + between + self.log.end - copied.downstream

    @property
    def begins(self) -> int:
        """Downstream offset of this flow's last start; later records are at or after it."""
        return max((start.downstream for start in self._starts.values()), default=0)

    @property
    def taken_over(self) -> bool:
        """True if this flow's first start here continued a foreign mirror's copy."""
        return any(start.downstream <= self.offsets.downstream_start for start in self._starts.values())

    @property
    def end(self) -> int:
        """Downstream offset after the last copied record."""
        return self.offsets.copied.downstream

    @property
    def broken(self) -> bool:
        """True if final claims turned out false: the target has lost records."""
        return self._broken

    def take(self, record: Claim | Retracted) -> None:
        """Take in the segments topic's next record about this partition."""
        self._ended.pop(record.key, None)
        if isinstance(record, Claim) and record.ended:
            self._ended[record.key] = record
        if isinstance(record, Claim) and record.is_start:
            self._starts[record.key] = record
        elif isinstance(record, Claim) and record.heals:
            self._starts = {key: start for key, start in self._starts.items() if start.downstream <= record.downstream}
        if isinstance(record, Retracted):
            self._starts.pop(record.key, None)
            self._due |= self._claims.pop(record.key, None) is not None
        elif record.sequence >= self._floor:
            self._claims[record.key] = record
            self._due = True
            if len(self._claims) > self._fold_above and not self._at_once:
                self._fold_claims()
                # No claim after an open claim can become final: a new try with each claim would be quadratic.
                self._fold_above = max(2 * len(self._claims), 2 * KEPT_CLAIMS)
        else:
            self._late.append(record)
            self._broken |= record.heals
            self._due = True

    @property
    def _has_gap(self) -> bool:
        """True if the log has records that no claim covers: no offset in it is safe."""
        return any(claim.downstream + claim.announced >= self.log.start for claim in self._ended.values())

    def _fold_claims(self) -> None:
        """Make the oldest claims final, up to a confirmed claim without open ones before."""
        confirmed = sorted({claim.sequence for claim in self._claims.values() if claim.confirmed})
        first_open = min((claim.sequence for claim in questioned(self._claims.values())), default=None)
        floors = confirmed[:-KEPT_CLAIMS]
        floor = max((sequence for sequence in floors if first_open is None or sequence <= first_open), default=0)
        if floor <= self._floor:
            return
        oldest = [key for key in self._claims if key[0] < floor]
        claims = [self._claims.pop(key) for key in oldest]
        self.offsets.fold(arbitrate(claims, {}, TargetLog(0, 0, None)).true, floor)
        self._floor = floor

    def open_claims(self) -> list[Claim]:
        """Return the claims that only the log can decide."""
        return questioned(self._claims.values())

    def bound(self, log: LogBounds) -> None:
        """Take in the log's present bounds."""
        self._due |= log.end != self.log.end
        self._broken |= log.end < self.offsets.copied.downstream
        self.log = log

    def stands(self, reached: ReportedProgress | None) -> bool:
        """Return True if the map is up to date, if need be by a pump's report."""
        if self.open_claims() or self._broken or self._has_gap:
            return False
        if reached is not None and (copied := self._at(reached)) is not None:
            if self._due or copied != self.offsets.copied:
                self._renew(arbitrate(self._claims.values(), {}, TargetLog(*self.log, None)).true, copied)
            return True
        return not self._due

    def _at(self, reached: ReportedProgress) -> Copied | None:
        """Return the progress at the time of a pump's report.

        Return `None` if the report contradicts the claims.
        """
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

    def judge(self, evidence: Evidence, tail: LastBatch | None, reached: ReportedProgress | None) -> Unmapped | None:
        """Let the log decide the open claims; return the reason if undecidable."""
        claims = list(self._claims.values())
        sequence = appended(tail.last_sequence if tail else None, self.log.end, claims)
        ruling = arbitrate(claims, evidence, TargetLog(*self.log, sequence))
        if ruling.undecided:
            return Unmapped(ruling.undecided)
        if self._has_gap:
            return CLAIMS_LOST
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
                "a foreign producer wrote to the target, where all records are deleted: known again when more is copied"
            )
        self._renew(ruling.true, copied)
        if reached is not None:
            self.offsets.pass_over(reached.upstream, reached.downstream)
        return None

    def _renew(self, claims: Sequence[Claim], copied: Copied) -> None:
        self.offsets.renew(claims, copied)
        if claims:
            self.source_topic_id = claims[-1].source_topic_id
        self._broken |= any(self.offsets.upstream(late.downstream) != late.upstream for late in self._late)
        self._late.clear()
        self._at_once = self._due = False

    @property
    def empty(self) -> bool:
        """True if no claim was ever made."""
        return not self._claims

    def known_records(self) -> list[tuple[int, int]]:
        """Return records that a map made again must know: upstream and downstream offset.

        These are the newest claims' first records, and the last record.
        """
        end = self.offsets.copied.downstream
        known = [
            (claim.upstream, claim.downstream)
            for claim in self._claims.values()
            if claim.confirmed and claim.downstream < end
        ]
        upstream = self.offsets.upstream(end - 1) if end > self.offsets.downstream_start else None
        return known if upstream is None else [*known, (upstream, end - 1)]

    def close(self) -> None:
        """Free the map's file, if any."""
        self.offsets.close()


class MapKeeper:
    """Maps for one flow's target partitions.

    For one thread, which alone may use the client.
    """

    def __init__(self, target: ClusterClient, source_alias: str) -> None:
        self._target = target
        self._source_alias = source_alias
        self._log = TopicLog(target, segments_topic(source_alias))
        self._queries = QueryMapFeed(target, source_alias)
        self._identity: Identity | None = None
        self._homes = 0
        """Number of partitions among which claims are dealt, once known."""
        self._strangers: set[tuple[int, int]] = set()
        """Producers with claims that are not this flow's."""
        self._maps: dict[TargetPartition, PartitionMap] = {}
        self._read_to: dict[int, LogPlace] = {}
        self._unread: set[TargetPartition] = set()
        """Maps that have taken in no claim yet."""
        self._seen: dict[TargetPartition, list[tuple[int, int]]] = {}
        """Upstream and downstream offsets of records that a map had when claims were cut."""

    def refresh(
        self, partitions: Mapping[TopicPartition, ReportedProgress | None]
    ) -> dict[TopicPartition, PartitionMap | Unmapped]:
        """Return up-to-date maps for these target partitions, and drop all further maps.

        Give the pump's last report for each partition, if a pump is at work: only the pump knows that markers alone
        follow. Raises `ConnectionError` and `ClusterUnreachable`.
        """
        answers: dict[TopicPartition, PartitionMap | Unmapped] = {}
        topics = self._target.metadata({topic for topic, _ in partitions} | {self._queries.topic})
        if not self._same_identity():
            nothing = Unmapped(f"no flow from {self._source_alias} has copied anything to {self._target.config.alias}")
            return dict.fromkeys(partitions, nothing)
        by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
        for partition in partitions:
            try:
                by_leader[_leader(topics, partition)].append(partition)
            except Unserved as unserved:
                answers[partition] = Unmapped(str(unserved))
        ids = {topic: leaders.topic_id for topic, leaders in topics.items()}
        plans = topics.get(self._queries.topic)
        has_plans = plans is not None and not plans.error
        if has_plans:  # places are told behind their records: these are below the ends that are read now
            self._queries.read()
        bounds = {leader: self._bounds(leader, led, answers) for leader, led in by_leader.items()}
        # Claims are read after the logs' ends: every record in a log was claimed before it was sent.
        self._drop_others({(ids[topic], index) for topic, index in partitions})
        self._read_claims()
        reached = {
            partition: report
            for partition, report in partitions.items()
            if report is not None and report.is_of(ids[partition[0]])
        }
        if has_plans:
            reached |= {at: told for at in partitions if (told := self._feed((ids[at[0]], at[1]))) is not None}
        for leader, logs in bounds.items():
            try:
                answers |= self._at_leader(leader, logs, ids, reached)
            except ConnectionError as error:
                answers |= dict.fromkeys(logs, Unmapped(str(error)))
        return answers

    @property
    def has_flow(self) -> bool:
        """True if the flow has an identity at the target, as of the last `refresh`."""
        return self._identity is not None

    def close(self) -> None:
        """Free the maps' files."""
        for partition_map in self._maps.values():
            partition_map.close()
        self._maps.clear()

    def _same_identity(self) -> bool:
        """Learn the flow's identity at the target; return False if the flow has none."""
        if self._identity is not None and self._identity.cluster_id == self._target.cluster_id:
            return True
        self._drop_others(())
        self._read_to.clear()
        try:
            claim_log = ClaimLog(self._log)
            self._identity = claim_log.agree(self._target.cluster_id, None)
            self._homes = claim_log.homes
        except LogUnavailable as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
        return self._identity is not None

    def _drop_others(self, wanted: Collection[TargetPartition]) -> None:
        for partition in self._maps.keys() - set(wanted):
            self._maps.pop(partition).close()
            self._unread.discard(partition)
            self._seen.pop(partition, None)
        for partition in wanted:
            if partition not in self._maps or self._maps[partition].broken:
                self._begin(partition)
                self._seen.pop(partition, None)

    def _begin(self, partition: TargetPartition) -> None:
        before = self._maps.pop(partition, None)
        if before is not None:
            before.close()
        self._maps[partition] = PartitionMap(at_once=before is not None)
        self._queries.begin(partition)
        self._unread.add(partition)

    def _bounds(
        self, leader: int, partitions: Sequence[TopicPartition], answers: dict[TopicPartition, PartitionMap | Unmapped]
    ) -> dict[TopicPartition, LogBounds]:
        bounds = {}
        for batch in chunks(partitions, PARTITIONS_PER_REQUEST):
            starts = list_offsets(self._target, leader, by_topic(batch), EARLIEST)
            ends = list_offsets(self._target, leader, by_topic(batch), LATEST)
            for partition in batch:
                try:
                    bounds[partition] = LogBounds(
                        listed_offset(starts[partition], partition), listed_offset(ends[partition], partition)
                    )
                except Unserved as unserved:
                    answers[partition] = Unmapped(str(unserved))
        return bounds

    def _read_claims(self) -> None:
        """Read claims appended since the last time; for new maps, also earlier claims."""
        count = self._homes or self._log.partitions
        by_home: dict[int, list[TargetPartition]] = defaultdict(list)
        for partition in self._maps:
            by_home[home_partition(*partition, count)].append(partition)
        for home, partitions in by_home.items():
            try:
                self._read_home(home, partitions)
            except LogCut:
                for partition in partitions:
                    self._seen[partition] = self._maps[partition].known_records()
                    self._begin(partition)
                del self._read_to[home]
                self._read_home(home, partitions)
        self._unread.clear()

    def _read_home(self, home: int, partitions: Collection[TargetPartition]) -> None:
        known = self._read_to.get(home, LogPlace())
        place, more = LogPlace() if self._unread.intersection(partitions) else known, True
        is_anew = place != known
        while more:
            entries, place, more = self._log.read_on(home, place)
            for entry in entries:
                self._take(read_record(entry.key, entry.value), new_only=entry.offset < known.offset)
        if is_anew:
            self._log.see_whole(home, known)  # the leader is known by now
        self._read_to[home] = place

    def _feed(self, partition: TargetPartition) -> ReportedProgress | None:
        """Have a map take in the places of a query's records; return the progress."""
        if self._identity is None:
            return None
        for claim in self._queries.new_claims(partition, (self._identity.producer_id, self._identity.producer_epoch)):
            self._maps[partition].take(claim)
        return self._queries.progress(partition)

    def _lacks_claims(self, partition: TargetPartition) -> bool:
        """True if the map contradicts what was known before claims were cut."""
        partition_map = self._maps[partition]
        return any(
            partition_map.log.start <= downstream and partition_map.offsets.upstream(downstream) not in (upstream, None)
            for upstream, downstream in self._seen.get(partition, ())
        )

    def _take(self, record: OwnTopicRecord | None, *, new_only: bool) -> None:
        if not isinstance(record, Claim | Retracted):
            return
        partition = record.target_topic_id, record.partition
        if partition not in self._maps or (new_only and partition not in self._unread):
            return
        if isinstance(record, Claim) and not self._is_ours(record):
            return
        self._maps[partition].take(record)

    def _is_ours(self, claim: Claim) -> bool:
        producer = claim.producer_id, claim.producer_epoch
        if self._identity is None:
            return False
        if not self._identity.wrote(*producer) and producer not in self._strangers:
            # The flow agrees on its present identity before it claims anything.
            self._identity = ClaimLog(self._log).agree(self._identity.cluster_id, None) or self._identity
            if not self._identity.wrote(*producer):
                self._strangers.add(producer)
        return self._identity.wrote(*producer)

    def _at_leader(
        self,
        leader: int,
        logs: Mapping[TopicPartition, LogBounds],
        ids: Mapping[str, bytes],
        reached: Mapping[TopicPartition, ReportedProgress],
    ) -> dict[TopicPartition, PartitionMap | Unmapped]:
        assert self._identity is not None  # noqa: S101 - refresh has set it
        answers: dict[TopicPartition, PartitionMap | Unmapped] = {}
        asked: list[TopicPartition] = []
        for partition, log in logs.items():
            partition_map = self._maps[ids[partition[0]], partition[1]]
            partition_map.bound(log)
            answers[partition] = partition_map
            if partition_map.empty:
                answers[partition] = NOTHING_YET
            elif not partition_map.stands(reached.get(partition)):
                asked.append(partition)
            key = ids[partition[0]], partition[1]
            if self._queries.is_unplaced(key):
                answers[partition] = NO_PLACES
            elif self._queries.has_fed(key) and partition in asked:
                answers[partition] = PLACES_UNKNOWN
            else:
                continue
            asked = [each for each in asked if each != partition]
        maps = {partition: self._maps[ids[partition[0]], partition[1]] for partition in asked}
        claims = {
            partition: open_claims
            for partition, partition_map in maps.items()
            if (open_claims := partition_map.open_claims())
        }
        probe = LogProbe(self._target, leader, ids, self._identity)
        evidence = probe.evidence(claims, {partition: logs[partition].start for partition in claims}) if claims else {}
        tails: Mapping[TopicPartition, LastBatch | None] = (
            last_batches(
                self._target,
                leader,
                {partition: logs[partition].end for partition in asked},
                ids,
                self._identity.wrote,
                {partition: partition_map.begins for partition, partition_map in maps.items()},
            )
            if asked
            else {}
        )
        for partition, partition_map in maps.items():
            answers[partition] = (
                partition_map.judge(evidence.get(partition, {}), tails[partition], reached.get(partition))
                or partition_map
            )
        for partition in logs:
            key = ids[partition[0]], partition[1]
            if isinstance(answers[partition], PartitionMap) and self._lacks_claims(key):
                answers[partition] = CLAIMS_LOST
            if self._maps[key].broken:
                answers[partition] = Unmapped("the target has lost records that were copied; its map is made anew")
        return answers


def copied_below(claims: Sequence[Claim], tail: LastBatch | None, high_watermark: int) -> Copied:
    """Return the copy's progress.

    The flow's last batch below the high watermark tells the progress; without such a batch, the end of the log does.
    """
    newest = claims[-1]
    expected = max(newest.sequence + high_watermark - newest.downstream, 0)
    if tail is not None:
        records = unwrap(tail.last_sequence + 1, near=expected)
        downstream = tail.next_offset
    elif newest.is_start:  # all records after a start are foreign
        records, downstream = newest.sequence, high_watermark
    else:
        records, downstream = expected, high_watermark
    covering = [claim for claim in claims if claim.sequence < records + claim.altered]
    upstream = (covering[-1] if covering else claims[0]).next_upstream(records)
    return Copied(records, upstream, downstream)


def _leader(topics: Mapping[str, TopicLeaders], partition: TopicPartition) -> int:
    topic = topics[partition[0]]
    if topic.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise Unserved(f"the target has no topic {partition[0]}", Cause.NO_TOPIC)
    if topic.error:
        raise unserved("target", partition, topic.error)
    if partition[1] not in topic.partitions:
        raise Unserved(f"the target's topic {partition[0]} has no partition {partition[1]}", Cause.NO_TOPIC)
    leader = topic.partitions[partition[1]].leader
    if leader < 0:
        raise Unserved(f"{partition[0]}-{partition[1]} has no leader at the target now", Cause.NO_LEADER)
    return leader


def _sequence(claim: Claim) -> int:
    return claim.sequence


def _downstream(claim: Claim) -> int:
    return claim.downstream
