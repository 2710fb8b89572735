"""The loss sentinel's look at whole topics, after each topic duty run.

A pump sees only the partitions in its order. This module notices the rest: partitions that the source no longer has,
target topics that were created again, source topics that are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import Claim, TargetPartition, start_claim
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.durable.known_topics import KnownTopic, TopicMemory
from sparkmirror.exact.durable.losses import LossLedger
from sparkmirror.exact.position.loss_detection import shrunk_by_claim, target_recreated
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.wire.topic_ids import NO_ID, same_topic
from sparkmirror.mirror.sync.topics import MirroredTopic, TopicSync


class TopicSentinel:
    """Loss sentinel for one flow's topics; each finding enters the ledger once.

    `from_start` is True if a partition without a copy begins at the source's start. If False, the sentinel must write
    down where the copy into a target topic that was created again begins.
    """

    def __init__(
        self,
        source: ClusterAdmin,
        target: ClusterAdmin,
        claim_log: ClaimLog,
        ledger: LossLedger,
        memory: TopicMemory,
        wanted: Callable[[str], bool],
        *,
        from_start: bool,
    ) -> None:
        self._source = source
        self._target = target
        self._claim_log = claim_log
        self._ledger = ledger
        self._memory = memory
        self._wanted = wanted
        self._from_start = from_start
        self._seen_to: set[tuple[bytes, bytes]] = set()
        """Pairs of source and target topic ids whose shrunk partitions are in the ledger."""

    def look(self, topics: TopicSync, identity: Identity) -> tuple[str, ...]:
        """Note new findings; return copied source topics that are gone but have copies.

        Raises `ClusterUnreachable` and other `ConnectionError`s; then the next look notes the findings again.
        """
        self._note_recreated(topics.mirrored, identity)
        for topic in topics.mirrored:
            self._note_shrunk(topic)
        self._memory.learn(_known(topic) for topic in topics.mirrored if topic.remote.topic_id != NO_ID)
        return self._gone(topics.at_source)

    def _note_recreated(self, topics: Iterable[MirroredTopic], identity: Identity) -> None:
        known = self._memory.known
        old_ids = {
            topic: bytes.fromhex(before.target_topic_id)
            for topic in topics
            if (before := known.get(topic.remote.name)) is not None
            and not same_topic(bytes.fromhex(before.target_topic_id), topic.remote.topic_id)
        }
        if not old_ids:
            return
        firsts, own_starts = self._first_claims(set(old_ids.values()))
        starts = self._source.start_offsets(
            (topic.source.name, index) for topic in old_ids for index in topic.partitions
        )
        for topic, old_id in old_ids.items():
            for index in topic.partitions:
                first = firsts.get((old_id, index))
                if first is not None:
                    same = same_topic(first.source_topic_id, topic.source.topic_id)
                    # Of another mirror's records before the first claim only the source's start tells what is left.
                    follows = first.begins_copy and first.downstream and (old_id, index) not in own_starts
                    lowest = 0 if follows else first.upstream
                    start = starts.get((topic.source.name, index))
                    # Without a leader: at most what came before the first claim is lost. A pump notes what is.
                    assumed = start if start is not None else first.upstream
                    self._ledger.record(
                        target_recreated(_route(topic, index), topic.remote.topic_id, lowest, assumed if same else None)
                    )
                    if not self._from_start:
                        self._begin_again(identity, topic, index, max(lowest if same else 0, start or 0))

    def _begin_again(self, identity: Identity, topic: MirroredTopic, index: int, upstream: int) -> None:
        """Claim a start at or below the first copy's.

        By now, the source's end or a group's committed offset is beyond the first start.
        """
        target_partition = topic.remote.topic_id, index
        self._claim_log.refresh([target_partition])
        if self._claim_log.claims(*target_partition):
            return
        source_id = topic.source.topic_id
        self._claim_log.claim(
            [start_claim(identity, target_partition, source_id, sequence=0, upstream=upstream, downstream=0)]
        )

    def _first_claims(
        self, topic_ids: set[bytes]
    ) -> tuple[Mapping[TargetPartition, Claim], Collection[TargetPartition]]:
        """Return each partition's first claim, and the partitions in which a pump began.

        A pump begins by itself at the source's end (`latest`), perhaps in a log that was emptied; all other starts are
        after another mirror's records. The claims of a pump's stay count up from its start.
        """
        firsts: dict[TargetPartition, Claim] = {}
        stays: set[tuple[TargetPartition, int]] = set()
        for home in range(self._claim_log.homes):
            for claim in self._claim_log.history(home):
                if isinstance(claim, Claim) and claim.target_topic_id in topic_ids:
                    key = claim.target_topic_id, claim.partition
                    if key not in firsts or claim.sequence < firsts[key].sequence:
                        firsts[key] = claim
                    stays.add((key, claim.incarnation))
        return firsts, {key for key, first in firsts.items() if (key, first.incarnation + 1) in stays}

    def _note_shrunk(self, topic: MirroredTopic) -> None:
        ids = topic.source.topic_id, topic.remote.topic_id
        if not topic.only_at_target or ids in self._seen_to:
            return
        remote = topic.remote.name
        self._claim_log.refresh((topic.remote.topic_id, index) for index in topic.only_at_target)
        ends = self._target.end_offsets((remote, index) for index in topic.only_at_target)
        for index in topic.only_at_target:
            claims = self._claim_log.claims(topic.remote.topic_id, index)
            newest = max(claims, key=lambda claim: claim.sequence, default=None)
            # A claim of the same source topic means that the description is older than the partition.
            if newest is None or (remote, index) not in ends:
                continue
            if not same_topic(newest.source_topic_id, topic.source.topic_id):
                self._ledger.record(shrunk_by_claim(_route(topic, index), newest, ends[remote, index]))
        if len(ends) == len(topic.only_at_target):
            self._seen_to.add(ids)

    def _gone(self, at_source: frozenset[str]) -> tuple[str, ...]:
        gone = [
            topic
            for topic in self._memory.known.values()
            if topic.source_topic not in at_source and self._wanted(topic.source_topic)
        ]
        if gone:
            there = self._target.topics(topic.target_topic for topic in gone)
            self._memory.forget(topic for topic in gone if topic.target_topic not in there)
            gone = [topic for topic in gone if topic.target_topic in there]
        return tuple(sorted(topic.source_topic for topic in gone))


def _known(topic: MirroredTopic) -> KnownTopic:
    return KnownTopic(
        source_topic=topic.source.name,
        target_topic=topic.remote.name,
        target_topic_id=topic.remote.topic_id.hex(),
    )


def _route(topic: MirroredTopic, partition: int) -> PartitionPair:
    return PartitionPair(topic.source.name, topic.remote.name, partition)
