"""Current offset maps for a flow's partitions; each refresh reads only new data.

The keeper reads claims from the segments topic as they come, and each partition's map (`partition_map`) takes in its
own. Only the newest claims are judged again at each refresh. So refreshing a partition without gaps costs only a look
at its log's bounds, for which many partitions share a request. Refreshing a partition with a transaction marker every
hundred records costs as much as was copied since, instead of as much as was ever copied.

The keeper only reads, below the high watermark, and writes nothing: a pump may be at work at the same time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from sparkmirror.chunks import chunks
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import (
    Claim,
    OwnTopicRecord,
    Retracted,
    TargetPartition,
    home_partition,
    read_record,
    segments_topic,
)
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.durable.noted_progress import ReportedProgress
from sparkmirror.exact.maps.partition_map import (
    CLAIMS_LOST,
    NO_PLACES,
    NOTHING_YET,
    PLACES_UNKNOWN,
    LogBounds,
    PartitionMap,
    Unmapped,
)
from sparkmirror.exact.maps.query_map_feed import QueryMapFeed
from sparkmirror.exact.position.cause import Cause
from sparkmirror.exact.position.log_probe import LogProbe
from sparkmirror.exact.position.target_reading import Unserved, by_topic, listed_offset, unserved
from sparkmirror.kafka.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.kafka.cluster.list_offsets import EARLIEST, LATEST, list_offsets
from sparkmirror.kafka.cluster.log_tail import LastBatch, last_batches
from sparkmirror.kafka.cluster.topic_log import LogCut, LogPlace, LogUnavailable, TopicLog
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.topic_partition import TopicPartition

PARTITIONS_PER_REQUEST = 2000


class MapKeeper:
    """Maps for one flow's target partitions.

    For one thread, which alone may use the client.
    """

    def __init__(self, target: ClusterClient, source_alias: str) -> None:
        self._target = target
        self._source_alias = source_alias
        self._log = TopicLog(target, segments_topic(source_alias), may_be_absent=True)
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
                self._read_to.pop(home, None)
                self._read_home(home, partitions)
        self._unread.clear()

    def _read_home(self, home: int, partitions: Collection[TargetPartition]) -> None:
        known = self._read_to.get(home, LogPlace())
        place, more = LogPlace() if self._unread.intersection(partitions) else known, True
        from_start = place != known
        while more:
            entries, place, more = self._log.read_on(home, place)
            for entry in entries:
                self._take(read_record(entry.key, entry.value), new_only=entry.offset < known.offset)
        if from_start:
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
                answers[partition] = Unmapped("the target has lost records that were copied; its map is made again")
        return answers


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
