"""Reading what the target's leader says about partitions: log ends, producer states, tails (R9).

Blocking; for a pump's control thread.
"""

from __future__ import annotations

import dataclasses
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from sparkmirror.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.cluster.error_codes import error_name
from sparkmirror.cluster.list_offsets import DEBUG_CONSUMER, EARLIEST, LATEST, ListedOffset, list_offsets
from sparkmirror.cluster.log_tail import last_batches
from sparkmirror.cluster.producers import DescribedPartition, describe_producers
from sparkmirror.durable.claim_log import SegmentLog
from sparkmirror.durable.claims import Segment
from sparkmirror.durable.identity import Identity
from sparkmirror.position.cause import Cause, cause_of_error
from sparkmirror.position.decision import LogTail, ProducerState, TargetReading
from sparkmirror.wire.topic_partition import TopicPartition

_SETTLE_S = 1.0
"""How long to wait for the high watermark to reach the log end before the tail is read (R9b)."""
_SETTLE_PAUSE_S = 0.05


class Unserved(Exception):
    """A leader is missing or answered one partition with an error."""

    def __init__(self, words: str, cause: Cause = Cause.BROKER) -> None:
        super().__init__(words)
        self.cause = cause


class TargetReader:
    """Asks leaders of one cluster about partitions that one producer id writes."""

    def __init__(self, target: ClusterClient, identity: Identity) -> None:
        self._target = target
        self._identity = identity

    def read(
        self,
        partitions: Sequence[TopicPartition],
        topics: Mapping[str, TopicLeaders],
        leader: int,
        floors: Mapping[TopicPartition, int],
    ) -> dict[TopicPartition, TargetReading | Unserved]:
        """A reading of each partition, all led by `leader`, or why there is none.

        `floors`: offsets below which no batch counts, where that is known.
        """
        asked = by_topic(partitions)
        starts = list_offsets(self._target, leader, asked, EARLIEST)
        before = list_offsets(self._target, leader, asked, LATEST, replica_id=DEBUG_CONSUMER)
        described = describe_producers(self._target, leader, asked)
        stateless = [
            where for where in partitions if not described[where].error and self._state(described[where]) is None
        ]
        tails, unsettled = self._read_tails(stateless, topics, leader, floors)
        after = list_offsets(self._target, leader, asked, LATEST, replica_id=DEBUG_CONSUMER)
        marks = list_offsets(self._target, leader, asked, LATEST)
        readings: dict[TopicPartition, TargetReading | Unserved] = {}
        for where in partitions:
            try:
                if described[where].error:
                    raise unserved("target", where, described[where].error)
                if where in unsettled:
                    raise Unserved(unsettled[where])
                start = listed_offset(starts[where], where)
                end = listed_offset(after[where], where)
                readings[where] = TargetReading(
                    log_start=start,
                    log_end_before=listed_offset(before[where], where),
                    state=self._state(described[where]),
                    tail=tails.get(where),
                    log_end_after=end,
                    has_records=end > start,
                    high_watermark=listed_offset(marks[where], where),
                )
            except Unserved as error:
                readings[where] = error
        return readings

    def replicated(
        self, readings: Mapping[TopicPartition, TargetReading], leader: int
    ) -> dict[TopicPartition, TargetReading]:
        """Those that the high watermarks have come to the ends of, as they were read, within a moment."""
        found = {where: one for where, one in readings.items() if one.high_watermark >= one.log_end_after}
        deadline = time.monotonic() + _SETTLE_S
        while len(found) < len(readings) and time.monotonic() < deadline:
            time.sleep(_SETTLE_PAUSE_S)
            lagging = readings.keys() - found.keys()
            marks = list_offsets(self._target, leader, by_topic(lagging), LATEST)
            found |= {
                where: dataclasses.replace(readings[where], high_watermark=marks[where].offset)
                for where in lagging
                if not marks[where].error and marks[where].offset >= readings[where].log_end_after
            }
        return found

    def floors(
        self,
        partitions: Sequence[TopicPartition],
        topics: Mapping[str, TopicLeaders],
        leader: int,
        segments: SegmentLog,
    ) -> dict[TopicPartition, int]:
        """Below which offsets no batch of ours counts: a log full of somebody else's is not searched for one.

        Whatever is in a log was claimed before it was sent. The claims are read anew, up to now.
        """
        ids = {topic: topics[topic].topic_id for topic, _ in partitions}
        segments.refresh((ids[topic], index) for topic, index in partitions)
        unclaimed = [where for where in partitions if not segments.claims(ids[where[0]], where[1])]
        found: dict[TopicPartition, int] = {}
        if unclaimed:
            ends = list_offsets(self._target, leader, by_topic(unclaimed), LATEST, replica_id=DEBUG_CONSUMER)
            segments.refresh((ids[topic], index) for topic, index in unclaimed)
            found = {where: ends[where].offset for where in unclaimed if not ends[where].error}
        for where in partitions:
            claims = self._identity.own(segments.claims(ids[where[0]], where[1]))
            if claims:
                lowest = min(claims, key=_sequence)
                found.pop(where, None)
                if lowest.is_start:
                    found[where] = lowest.downstream
        return found

    def _read_tails(
        self,
        partitions: Sequence[TopicPartition],
        topics: Mapping[str, TopicLeaders],
        leader: int,
        floors: Mapping[TopicPartition, int],
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
            self._identity.wrote,
            floors,
        )
        return {where: LogTail(*batch) for where, batch in found.items() if batch is not None}, unsettled

    def _settled_ends(
        self, partitions: Sequence[TopicPartition], leader: int
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, str]]:
        """Log ends, once the high watermarks have reached them, and what is said of those that don't get there."""
        asked = by_topic(partitions)
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


def listed_offset(listed: ListedOffset, where: TopicPartition) -> int:
    """The offset; raises `Unserved` where there was an error."""
    if listed.error:
        raise unserved("the leader", where, listed.error)
    return listed.offset


def said(who: str, where: TopicPartition, code: int) -> str:
    """A line on an error that somebody answered."""
    return f"{who}: {where[0]}-{where[1]}: {error_name(code)}"


def unserved(who: str, where: TopicPartition, code: int) -> Unserved:
    """What to raise for an error that somebody answered."""
    return Unserved(said(who, where, code), cause_of_error(code))


def _sequence(claim: Segment) -> int:
    return claim.sequence


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The same, grouped as requests want it."""
    grouped: dict[str, list[int]] = defaultdict(list)
    for topic, partition in partitions:
        grouped[topic].append(partition)
    return grouped
