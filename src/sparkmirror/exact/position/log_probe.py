"""Read the target's log at claims' batches (`matching`).

Blocking. Only batches below the high watermark are read: batches above can't be read, and may still vanish.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

from sparkmirror.exact.durable.claims import Claim, ClaimKey
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.position.decision import unwrap
from sparkmirror.exact.position.matching import MatchedLog, StoredBatch
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.fetch_once import FetchBounds, fetch_once
from sparkmirror.kafka.cluster.log_tail import TailUnread, is_ours
from sparkmirror.kafka.wire.batches import BatchHeader, batch_headers
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.topic_partition import TopicPartition

_BOUNDS = FetchBounds(max_bytes=8 << 20, partition_bytes=64 << 10)
_MOST_STEPS = 200


class LogProbe:
    """Reader of batch headers at one leader."""

    def __init__(self, client: ClusterClient, leader: int, topic_ids: Mapping[str, bytes], identity: Identity) -> None:
        self._client = client
        self._leader = leader
        self._topic_ids = topic_ids
        self._identity = identity

    def headers(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, tuple[list[BatchHeader], int]]:
        """Return whole batches' headers from each offset on, and the high watermark.

        Only some batches are returned, all below the high watermark. An offset outside the log gives (no headers, -1).
        """
        reply = fetch_once(self._client, self._leader, offsets, self._topic_ids, _BOUNDS)
        if reply.error:
            raise TailUnread(*next(iter(offsets)), reply.error)
        answers: dict[TopicPartition, tuple[list[BatchHeader], int]] = {}
        for part in reply.parts:
            key = part.topic, part.partition
            if part.error == ErrorCode.OFFSET_OUT_OF_RANGE:
                answers[key] = [], -1
            elif part.error:
                raise TailUnread(*key, part.error)
            else:
                answers[key] = [header for _, header in batch_headers(part.records)], part.high_watermark
        return answers

    def evidence(
        self, claims: Mapping[TopicPartition, Sequence[Claim]], log_starts: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, dict[ClaimKey, MatchedLog]]:
        """Return, by claim key, the log's batches at each claim."""
        matched: dict[TopicPartition, dict[ClaimKey, MatchedLog]] = {partition: {} for partition in claims}
        rounds = max((len(listed) for listed in claims.values()), default=0)
        for index in range(rounds):
            asked = {partition: listed[index] for partition, listed in claims.items() if index < len(listed)}
            for partition, seen in self._round(asked, log_starts).items():
                matched[partition][asked[partition].key] = seen
        return matched

    def _round(
        self, claims: Mapping[TopicPartition, Claim], log_starts: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, MatchedLog]:
        looking = {partition: max(claim.downstream, log_starts[partition]) for partition, claim in claims.items()}
        collected: dict[TopicPartition, list[StoredBatch]] = {partition: [] for partition in claims}
        done: dict[TopicPartition, MatchedLog] = {}
        for _ in range(_MOST_STEPS * len(claims)):
            answers = self.headers(looking)
            # A full answer has no batch for the partitions at its end. A compacted log may have no batch up to its high
            # watermark: only an answer with room for all partitions shows such an end.
            room = not any(headers for headers, _ in answers.values())
            for partition, (headers, high_watermark) in answers.items():
                claim, mine = claims[partition], collected[partition]
                for header in headers:
                    looking[partition] = header.next_offset
                    if self._take(header, claim, mine):
                        high_watermark = header.next_offset
                        break
                if looking[partition] >= high_watermark or (room and not headers):
                    done[partition] = MatchedLog(tuple(mine), max(looking.pop(partition), high_watermark))
            if not looking:
                return done
        raise TailUnread(*next(iter(looking)), ErrorCode.REQUEST_TIMED_OUT)

    def _take(self, header: BatchHeader, claim: Claim, mine: list[StoredBatch]) -> bool:
        """Note one of the flow's batches that concerns the claim.

        Return True if `mine` is complete then.
        """
        if not self._is_ours(header):
            return False
        stored = self.stored(header, near=claim.sequence)
        if stored.sequence + stored.span > claim.sequence:
            mine.append(stored)
        return stored.sequence + stored.span >= claim.sequence + claim.announced

    def stored(self, header: BatchHeader, near: int) -> StoredBatch:
        """Return one of the flow's batches, with the sequence unwrapped near `near`."""
        return StoredBatch(
            unwrap(header.base_sequence, near),
            header.base_offset,
            header.last_offset_delta + 1,
            header.records,
            header.size,
            header.attributes,
            header.crc,
            header.base_timestamp,
            header.max_timestamp,
        )

    def next_of_ours(self, partition: TopicPartition, offset: int, near: int) -> StoredBatch | None:
        """Return the flow's first batch at or after an offset.

        Return None without such a batch below the high watermark.
        """
        for header in self._from(partition, offset):
            if self._is_ours(header):
                return self.stored(header, near)
        return None

    def foreign_only(self, partition: TopicPartition, offset: int, end: int) -> bool:
        """Tell whether an offset range has no record of the flow."""
        for header in self._from(partition, offset):
            if header.base_offset >= end:
                return True
            if self._is_ours(header):
                return False
        return True

    def foreign_throughout(self, partition: TopicPartition, offset: int, end: int) -> bool:
        """Tell whether foreign batches fill an offset range without a hole.

        A hole is a batch that was deleted, or that compaction took out.
        """
        for header in self._from(partition, offset):
            if header.base_offset > offset or self._is_ours(header):
                return False
            offset = header.next_offset
            if offset >= end:
                return True
        return False

    def fences(self, partition: TopicPartition, offset: int, end: int) -> list[tuple[int, int]]:
        """Return the stretches of marker fences in an offset range, as first and end.

        `durable.identity` describes marker fences.
        """
        stretches: list[tuple[int, int]] = []
        for header in self._from(partition, offset):
            if header.base_offset >= end:
                break
            if self._is_fence(header):
                first = (
                    stretches.pop()[0] if stretches and stretches[-1][1] == header.base_offset else header.base_offset
                )
                stretches.append((first, header.next_offset))
        return stretches

    def fences_only(self, partition: TopicPartition, offset: int, end: int) -> bool:
        """Tell whether all batches in an offset range are marker fences.

        Reading ends at the first batch that is not a fence.
        """
        headers = takewhile(lambda header: header.base_offset < end, self._from(partition, offset))
        return all(map(self._is_fence, headers))

    @property
    def was_fenced(self) -> bool:
        """True if the log may have the flow's marker fences."""
        return bool(self._identity.former)

    def _is_fence(self, header: BatchHeader) -> bool:
        return header.is_control and self._identity.fenced_with(header.producer_id)

    def _is_ours(self, header: BatchHeader) -> bool:
        return is_ours(header, self._identity.wrote)

    def _from(self, partition: TopicPartition, offset: int) -> Iterator[BatchHeader]:
        while True:
            headers, high_watermark = self.headers({partition: offset})[partition]
            yield from headers
            if not headers or headers[-1].next_offset >= high_watermark:
                return
            if headers[-1].next_offset <= offset:
                raise TailUnread(*partition, ErrorCode.CORRUPT_MESSAGE)
            offset = headers[-1].next_offset
