"""What lies in the target's log where claims say that their batches are (`matching`).

Blocking. Only below the high watermark: what is above it can't be read, and may still vanish.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.log_tail import TailUnread, is_ours
from sparkmirror.durable.claims import ClaimKey, Segment
from sparkmirror.durable.identity import Identity
from sparkmirror.position.decision import unwrap
from sparkmirror.position.matching import MatchedLog, StoredBatch
from sparkmirror.wire import fetch
from sparkmirror.wire.batches import BatchHeader, batch_headers
from sparkmirror.wire.topic_partition import TopicPartition

_MAX_BYTES = 8 << 20
_PARTITION_BYTES = 64 << 10
_MOST_STEPS = 200
REQUEST_TIMED_OUT = 7


class LogProbe:
    """Reads batch headers at one leader."""

    def __init__(self, client: ClusterClient, leader: int, topic_ids: Mapping[str, bytes], identity: Identity) -> None:
        self._client = client
        self._leader = leader
        self._topic_ids = topic_ids
        self._identity = identity

    def headers(self, where: Mapping[TopicPartition, int]) -> dict[TopicPartition, tuple[list[BatchHeader], int]]:
        """Some whole batches' headers from an offset on, and the high watermark; none at or above that.

        An offset outside the log gives (no headers, -1).
        """
        connection = self._client.broker(self._leader)
        version = connection.version(fetch.API_KEY, fetch.VERSIONS, "Fetch")
        session = fetch.FetchSession(
            version,
            client_id=self._client.client_id,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=_MAX_BYTES,
            partition_max_bytes=_PARTITION_BYTES,
            incremental=False,
        )
        for (topic, partition), offset in where.items():
            session.want(topic, self._topic_ids[topic], partition, fetch.FetchPosition(offset, -1, -1))
        try:
            head, parts = session.read(connection.exchange_raw([session.request(0)]))
        except ConnectionError:
            self._client.hang_up(self._leader)
            raise
        if head.error:
            raise TailUnread(*next(iter(where)), head.error)
        found: dict[TopicPartition, tuple[list[BatchHeader], int]] = {}
        for part in parts:
            key = part.topic, part.partition
            if part.error == fetch.OFFSET_OUT_OF_RANGE:
                found[key] = [], -1
            elif part.error:
                raise TailUnread(*key, part.error)
            else:
                found[key] = [header for _, header in batch_headers(part.records)], part.high_watermark
        return found

    def evidence(
        self, claims: Mapping[TopicPartition, Sequence[Segment]], log_starts: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, dict[ClaimKey, MatchedLog]]:
        """For each claim's key what the log holds there."""
        found: dict[TopicPartition, dict[ClaimKey, MatchedLog]] = {where: {} for where in claims}
        rounds = max((len(some) for some in claims.values()), default=0)
        for index in range(rounds):
            asked = {where: some[index] for where, some in claims.items() if index < len(some)}
            for where, seen in self._round(asked, log_starts).items():
                found[where][asked[where].key] = seen
        return found

    def _round(
        self, claims: Mapping[TopicPartition, Segment], log_starts: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, MatchedLog]:
        """One claim a partition."""
        looking = {where: max(claim.downstream, log_starts[where]) for where, claim in claims.items()}
        collected: dict[TopicPartition, list[StoredBatch]] = {where: [] for where in claims}
        done: dict[TopicPartition, MatchedLog] = {}
        for _ in range(_MOST_STEPS * len(claims)):
            answers = self.headers(looking)
            # A full answer has nothing for the partitions at its end; and a compacted log may end before its high
            # watermark, which shows where the answer had room for everybody.
            room = not any(headers for headers, _ in answers.values())
            for where, (headers, high_watermark) in answers.items():
                claim, mine = claims[where], collected[where]
                for header in headers:
                    looking[where] = header.next_offset
                    if self._take(header, claim, mine):
                        high_watermark = header.next_offset
                        break
                if looking[where] >= high_watermark or (room and not headers):
                    done[where] = MatchedLog(tuple(mine), max(looking.pop(where), high_watermark))
            if not looking:
                return done
        raise TailUnread(*next(iter(looking)), REQUEST_TIMED_OUT)

    def _take(self, header: BatchHeader, claim: Segment, mine: list[StoredBatch]) -> bool:
        """Note a batch of ours that bears on the claim; whether that is enough."""
        if not self._is_ours(header):
            return False
        stored = self.stored(header, near=claim.sequence)
        if stored.sequence + stored.span > claim.sequence:
            mine.append(stored)
        return stored.sequence + stored.span >= claim.sequence + claim.announced

    def stored(self, header: BatchHeader, near: int) -> StoredBatch:
        """A batch of ours, its sequence unwrapped."""
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

    def next_of_ours(self, where: TopicPartition, offset: int, near: int) -> StoredBatch | None:
        """The first batch of ours at or after an offset; None if there is none below the high watermark."""
        for header in self._from(where, offset):
            if self._is_ours(header):
                return self.stored(header, near)
        return None

    def foreign_only(self, where: TopicPartition, offset: int, end: int) -> bool:
        """Whether a range of offsets holds no record of ours."""
        for header in self._from(where, offset):
            if header.base_offset >= end:
                return True
            if self._is_ours(header):
                return False
        return True

    def foreign_throughout(self, where: TopicPartition, offset: int, end: int) -> bool:
        """Whether batches of others hold all of a range of offsets: none was deleted, or taken out by compaction."""
        for header in self._from(where, offset):
            if header.base_offset > offset or self._is_ours(header):
                return False
            offset = header.next_offset
            if offset >= end:
                return True
        return False

    def fences(self, where: TopicPartition, offset: int, end: int) -> list[tuple[int, int]]:
        """Stretches of nothing but marker fences (`durable.identity`) in a range of offsets: first, and end."""
        found: list[tuple[int, int]] = []
        for header in self._from(where, offset):
            if header.base_offset >= end:
                break
            if self._is_fence(header):
                first = found.pop()[0] if found and found[-1][1] == header.base_offset else header.base_offset
                found.append((first, header.next_offset))
        return found

    def fences_only(self, where: TopicPartition, offset: int, end: int) -> bool:
        """Tell whether all batches in a range of offsets are marker fences; reads as far as the first other batch."""
        headers = takewhile(lambda header: header.base_offset < end, self._from(where, offset))
        return all(map(self._is_fence, headers))

    @property
    def was_fenced(self) -> bool:
        """Whether there may be markers of ours anywhere."""
        return bool(self._identity.former)

    def _is_fence(self, header: BatchHeader) -> bool:
        return header.is_control and self._identity.fenced_with(header.producer_id)

    def _is_ours(self, header: BatchHeader) -> bool:
        return is_ours(header, self._identity.wrote)

    def _from(self, where: TopicPartition, offset: int) -> Iterator[BatchHeader]:
        while True:
            headers, high_watermark = self.headers({where: offset})[where]
            yield from headers
            if not headers or headers[-1].next_offset >= high_watermark:
                return
            offset = headers[-1].next_offset
