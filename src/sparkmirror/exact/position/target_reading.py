"""Read log ends, producer states and log tails at the target (R9).

Blocking; for a pump's reading thread, or the driver.
"""

from __future__ import annotations

import dataclasses
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from sparkmirror.errors import HandledError
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.position.cause import Cause, cause_of_error
from sparkmirror.exact.position.decision import LogTail, ProducerState, TargetReading
from sparkmirror.kafka.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.list_offsets import DEBUG_CONSUMER, EARLIEST, LATEST, ListedOffset, list_offsets
from sparkmirror.kafka.cluster.log_tail import last_batches
from sparkmirror.kafka.cluster.producers import DescribedPartition, describe_producers
from sparkmirror.kafka.wire.topic_partition import TopicPartition

_REPLICATED_WITHIN_S = 1.0
"""Longest wait for the high watermark to reach the log end, in seconds.

The log's tail is read after the wait (R9b).
"""
_PAUSE_S = 0.05


class Unserved(HandledError):
    """Error for a partition without a leader, or with an error as the answer."""

    def __init__(self, words: str, cause: Cause = Cause.BROKER) -> None:
        super().__init__(words)
        self.cause = cause


class TargetReader:
    """Reader for partitions that a flow's identity writes, at their leaders."""

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
        """Return a reading for each partition, or the reason for its absence.

        All partitions are led by `leader`. `floors` are the offsets below which no batch counts, as far as known.
        """
        asked = by_topic(partitions)
        starts = list_offsets(self._target, leader, asked, EARLIEST)
        before = list_offsets(self._target, leader, asked, LATEST, replica_id=DEBUG_CONSUMER)
        described = describe_producers(self._target, leader, asked)
        stateless = [
            partition
            for partition in partitions
            if not described[partition].error and self._state(described[partition]) is None
        ]
        tails, unread = self._read_tails(stateless, topics, leader, floors)
        after = list_offsets(self._target, leader, asked, LATEST, replica_id=DEBUG_CONSUMER)
        marks = list_offsets(self._target, leader, asked, LATEST)
        readings: dict[TopicPartition, TargetReading | Unserved] = {}
        for partition in partitions:
            try:
                if described[partition].error:
                    raise unserved("target", partition, described[partition].error)
                if partition in unread:
                    raise Unserved(unread[partition])
                start = listed_offset(starts[partition], partition)
                end = listed_offset(after[partition], partition)
                readings[partition] = TargetReading(
                    log_start=start,
                    log_end_before=listed_offset(before[partition], partition),
                    state=self._state(described[partition]),
                    tail=tails.get(partition),
                    log_end_after=end,
                    has_records=end > start,
                    high_watermark=listed_offset(marks[partition], partition),
                )
            except Unserved as error:
                readings[partition] = error
        return readings

    def replicated(
        self, readings: Mapping[TopicPartition, TargetReading], leader: int
    ) -> dict[TopicPartition, TargetReading]:
        """Return the readings whose log ends the high watermarks reach within a second.

        The log ends are the ends that were read.
        """
        caught_up = {
            partition: reading
            for partition, reading in readings.items()
            if reading.high_watermark >= reading.log_end_after
        }
        deadline = time.monotonic() + _REPLICATED_WITHIN_S
        while len(caught_up) < len(readings) and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
            lagging = readings.keys() - caught_up.keys()
            marks = list_offsets(self._target, leader, by_topic(lagging), LATEST)
            caught_up |= {
                partition: dataclasses.replace(readings[partition], high_watermark=marks[partition].offset)
                for partition in lagging
                if not marks[partition].error and marks[partition].offset >= readings[partition].log_end_after
            }
        return caught_up

    def floors(
        self,
        partitions: Sequence[TopicPartition],
        topics: Mapping[str, TopicLeaders],
        leader: int,
        claim_log: ClaimLog,
    ) -> dict[TopicPartition, int]:
        """Return the offsets below which none of the flow's batches counts.

        So a log full of foreign records is not searched for the flow's records. The flow claimed each of its records
        before sending. The new claims are read first.
        """
        ids = {topic: topics[topic].topic_id for topic, _ in partitions}
        claim_log.refresh((ids[topic], index) for topic, index in partitions)
        unclaimed = [partition for partition in partitions if not claim_log.claims(ids[partition[0]], partition[1])]
        lowest_offsets: dict[TopicPartition, int] = {}
        if unclaimed:
            ends = list_offsets(self._target, leader, by_topic(unclaimed), LATEST, replica_id=DEBUG_CONSUMER)
            claim_log.refresh((ids[topic], index) for topic, index in unclaimed)
            lowest_offsets = {partition: ends[partition].offset for partition in unclaimed if not ends[partition].error}
        for partition in partitions:
            claims = self._identity.own(claim_log.claims(ids[partition[0]], partition[1]))
            if claims:
                lowest = min(claims, key=_sequence)
                lowest_offsets.pop(partition, None)
                if lowest.is_start:
                    lowest_offsets[partition] = lowest.downstream
        return lowest_offsets

    def _read_tails(
        self,
        partitions: Sequence[TopicPartition],
        topics: Mapping[str, TopicLeaders],
        leader: int,
        floors: Mapping[TopicPartition, int],
    ) -> tuple[dict[TopicPartition, LogTail], dict[TopicPartition, str]]:
        """Return the log tails, and the reasons for tails that can't be read yet."""
        if not partitions:
            return {}, {}
        ends, unread = self._replicated_ends(partitions, leader)
        batches = last_batches(
            self._target,
            leader,
            ends,
            {topic: topics[topic].topic_id for topic, _ in partitions},
            self._identity.wrote,
            floors,
        )
        return {partition: LogTail(*batch) for partition, batch in batches.items() if batch is not None}, unread

    def _replicated_ends(
        self, partitions: Sequence[TopicPartition], leader: int
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, str]]:
        """Return the log ends that the high watermarks have reached.

        For each further partition return the reason, with the high watermark and the log end.
        """
        asked = by_topic(partitions)
        deadline = time.monotonic() + _REPLICATED_WITHIN_S
        while True:
            ends = list_offsets(self._target, leader, asked, LATEST, replica_id=DEBUG_CONSUMER)
            marks = list_offsets(self._target, leader, asked, LATEST)
            lagging = {
                partition: f"{partition[0]}-{partition[1]}: the high watermark is at {marks[partition].offset}, "
                f"the log end at {ends[partition].offset}; are replicas in sync?"
                for partition in partitions
                if marks[partition].offset < ends[partition].offset
            }
            if not lagging or time.monotonic() > deadline:
                replicated = {
                    partition: ends[partition].offset
                    for partition in partitions
                    if partition not in lagging and not ends[partition].error and not marks[partition].error
                }
                return replicated, lagging
            time.sleep(_PAUSE_S)

    def _state(self, described: DescribedPartition) -> ProducerState | None:
        for entry in described.producers:
            if (
                entry.producer_id == self._identity.producer_id
                and entry.producer_epoch == self._identity.producer_epoch
                and entry.last_sequence >= 0
            ):
                return ProducerState(entry.last_sequence, entry.last_timestamp_ms)
        return None


def listed_offset(listed: ListedOffset, partition: TopicPartition) -> int:
    """Return the offset. Raises `Unserved` for an error."""
    if listed.error:
        raise unserved("the leader", partition, listed.error)
    return listed.offset


def said(who: str, partition: TopicPartition, code: int) -> str:
    """Return a line on a broker's error.

    `who` is the cluster, or the leader, that answered.
    """
    return f"{who}: {partition[0]}-{partition[1]}: {error_name(code)}"


def unserved(who: str, partition: TopicPartition, code: int) -> Unserved:
    """Return the exception for a broker's error, with the cause."""
    return Unserved(said(who, partition, code), cause_of_error(code))


def _sequence(claim: Claim) -> int:
    return claim.sequence


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return the partition numbers by topic, as requests need."""
    grouped: dict[str, list[int]] = defaultdict(list)
    for topic, partition in partitions:
        grouped[topic].append(partition)
    return grouped
