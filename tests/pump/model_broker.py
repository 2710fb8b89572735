"""A target partition and a source partition in memory.

The target does exactly what a leader does with an idempotent batch (`exactness.md`, the append check). The source's
records hold their own offset as value, so that the target's log tells what was copied.
"""

from __future__ import annotations

import functools
import struct
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from crc32c import crc32c
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from sparkmirror.config import LossPolicy
from sparkmirror.exact.durable.claim_log import ClaimLog, in_safe_order
from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.durable.identity import Identity, Producer
from sparkmirror.exact.durable.losses import LossLedger
from sparkmirror.exact.durable.noted_progress import NOTHING_REPORTED, ReportedProgress
from sparkmirror.exact.position.arbitration import Ruling, arbitrate
from sparkmirror.exact.position.decision import Doubt, LogTail, Position, ProducerState, TargetReading, appended
from sparkmirror.exact.position.foreign_notes import ForeignNotes
from sparkmirror.exact.position.last_records import Likeness, tail_of
from sparkmirror.exact.position.log_probe import LogProbe
from sparkmirror.exact.position.loss_detection import look_for_losses
from sparkmirror.exact.position.lost_claims import LostClaims
from sparkmirror.exact.position.matching import MatchedLog, StoredBatch
from sparkmirror.exact.position.matching import TargetLog as Reach
from sparkmirror.exact.position.questioned_claims import Evidence, questioned
from sparkmirror.exact.position.resolving import PositionResolver, Superseded
from sparkmirror.exact.position.route import PartitionPair, PartitionReading, Refusal
from sparkmirror.kafka.cluster.topic_log import LogEntry, TopicLog
from sparkmirror.kafka.wire.batches import SEQUENCE_MODULUS, batch_headers
from sparkmirror.kafka.wire.produce import Ack
from sparkmirror.kafka.wire.topic_partition import TopicPartition

IDENTITY = Identity("target-cluster", 4000, 0)
ROUTE = PartitionPair("orders", "us.orders", 0)
SOURCE_ID, TARGET_ID = b"s" * 16, b"t" * 16
LEADER = 1
FRESH_MS, FRESH_AFTER_MS, OLD_MS = 2_000_000, 1_000_000, 1_000
KEY = b"topic", 0
NOT_LEADER, OUT_OF_ORDER, INVALID_PRODUCER_EPOCH = 6, 45, 47
ERRORS = (6, 7, 10, 19, 56)
"""Not the leader, timed out (but appended), too large, too few replicas, a full disk."""
LEADER_EPOCH_AT, CRC_AT, LAST_OFFSET_DELTA_AT = 12, 17, 23
FOREIGN = -1
"""A record in the target's log that is not ours."""
MARKER = -2
"""A marker of one of our fences."""

REMEMBERED = 5
"""Batches of which a leader recognises a duplicate."""


@functools.cache
def batch_of(
    base_offset: int, offsets: tuple[int, ...], span: int, timestamp_ms: int, codec: int = 0, leader_epoch: int = 0
) -> bytes:
    """A batch as the source's broker stores it, also one of which the cleaner has left only these offsets."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=False,
        producer_id=77,
        producer_epoch=3,
        base_sequence=5,
        batch_size=1 << 20,
    )
    for offset in offsets:
        builder.append(offset - base_offset, timestamp_ms, None, b"%d" % offset, [])
    data = builder.build()
    struct.pack_into(">q", data, 0, base_offset)
    struct.pack_into(">i", data, LEADER_EPOCH_AT, leader_epoch)
    struct.pack_into(">i", data, LAST_OFFSET_DELTA_AT, span - 1)
    struct.pack_into(">I", data, CRC_AT, crc32c(memoryview(data)[CRC_AT + 4 :]))
    return bytes(data)


class Source:
    """A source partition: batches of the sizes and timestamps given, dense until its cleaner comes."""

    def __init__(self, batches: list[tuple[int, int]], start: int = 0) -> None:
        self.start = self.end = start
        self.cleaned = False
        """Its cleaner may come while it is copied."""
        self.led_since: list[int] = []
        """Offsets at which another leader began, each with the next leader epoch."""
        self._batches: list[tuple[int, int, int]] = []
        self._removed: set[int] = set()
        for number, (count, timestamp_ms) in enumerate(batches):
            self._batches.append((self.end, count, timestamp_ms + number))
            self.end += count

    @property
    def offsets(self) -> list[int]:
        """Of the records that are left."""
        return [offset for offset in range(self.start, self.end) if offset not in self._removed]

    def has(self, offset: int) -> bool:
        """Whether the record is left."""
        return self.start <= offset < self.end and offset not in self._removed

    def compact(self, first: int, step: int) -> None:
        """Remove every so manieth record from an offset on; never of the last batch, which is not rolled yet."""
        self._removed |= set(range(max(first, self.start), self._batches[-1][0], step))

    def fetch(self, offset: int, batches: int) -> bytes:
        """Some batches from the one that holds this offset, or is next; batches without records are gone."""
        found: list[bytes] = []
        for base, span, timestamp_ms in self._batches:
            left = tuple(one for one in range(base, base + span) if one not in self._removed)
            if base + span > offset and left and len(found) < batches:
                epoch = sum(since <= base for since in self.led_since)
                found.append(batch_of(base, left, span, timestamp_ms, leader_epoch=epoch))
        return b"".join(found)


class Killed(Exception):
    """Whoever did that is no more."""


class MemoryLog:
    """An internal topic of one partition."""

    def __init__(self) -> None:
        self._entries: list[LogEntry] = []

    def append(self, partition: int, entries: Sequence[tuple[bytes, bytes | None]]) -> int:
        first = len(self._entries)
        self._entries += [LogEntry(first + index, *entry) for index, entry in enumerate(entries)]
        return first

    def read(self, partition: int, offset: int) -> tuple[list[LogEntry], int]:
        return self._entries[offset:], len(self._entries)


class _Known(NamedTuple):
    first: int
    last: int
    base_offset: int
    max_timestamp: int


class TargetLog:
    """A target partition at its leader, and the claims on it."""

    def __init__(self) -> None:
        self.log: list[int] = []
        """The upstream offset of each record, or FOREIGN, also of what retention has deleted."""
        self.start = 0
        """Of the log: below it nothing can be read."""
        self.claims: list[Claim] = []
        self.ledger = LossLedger(cast("TopicLog", MemoryLog()))
        """What readers have found of them, and lost."""
        self.killed_after = -1
        """Whoever settles claims is killed when so many were written."""
        self.said_lost = 0
        """Records that readers took for lost."""
        self.appended_at: list[float] = []
        self.max_bytes = 1 << 20
        """`max.message.bytes`"""
        self.stored: list[StoredBatch] = []
        """Every batch of ours, in order."""
        self.identity = IDENTITY
        """The identity that all agree on."""
        self.replicated: int | None = None
        """The high watermark while a follower in sync lags; None: it is the log's end."""
        self.elections = 0
        self.lost_claims = LostClaims(cast("ClaimLog", Clerk(self)))
        """What readers have seen of the last records on both sides."""
        self._writers: list[Producer] = []
        """Of each of the batches stored."""
        self._fenced: set[Producer] = set()
        self._sequence = 0
        self._states: dict[Producer, deque[_Known]] = {}
        self._tail: LogTail | None = None

    def append(self, sent: bytes, now: float) -> Ack:
        """Compare and append."""
        batch = DefaultRecordBatch(sent)
        assert batch.validate_crc()
        ((_, header),) = batch_headers(memoryview(sent))
        assert header.base_offset == 0
        writer = Producer(header.producer_id, header.producer_epoch)
        assert self.identity.wrote(*writer)
        if writer in self._fenced:
            return refused(INVALID_PRODUCER_EPOCH)
        first = header.base_sequence
        last = (first + header.last_offset_delta) % SEQUENCE_MODULUS
        state = self._states.get(writer)
        if state is not None:
            for known in state:
                if (known.first, known.last) == (first, last):
                    return Ack(KEY, 0, known.base_offset, known.max_timestamp, (), "")
            if first != (state[-1].last + 1) % SEQUENCE_MODULUS:
                return refused(OUT_OF_ORDER)
        else:
            state = self._states[writer] = deque(maxlen=REMEMBERED)
        base = len(self.log)
        self.stored.append(
            StoredBatch(
                self._sequence,
                base,
                header.last_offset_delta + 1,
                header.records,
                header.size,
                header.attributes,
                header.crc,
                header.base_timestamp,
                header.max_timestamp,
            )
        )
        self._writers.append(writer)
        self._sequence += header.records
        self.log.extend(int(record.value) for record in batch)
        self.appended_at.append(now)
        state.append(_Known(first, last, base, header.max_timestamp))
        self._tail = LogTail(last, len(self.log), header.max_timestamp)
        return Ack(KEY, 0, base, -1, (), "")

    def is_written_by_somebody_else(self, records: int) -> None:
        """A batch without a sequence; it takes offsets all the same."""
        self.log += [FOREIGN] * records

    def is_succeeded(self) -> None:
        """All agree that the flow is somebody else from now on; nobody is fenced yet."""
        former = (*self.identity.former, self.identity.producer)
        self.identity = Identity(IDENTITY.cluster_id, IDENTITY.producer_id + len(former), 0, former)

    @property
    def unfenced(self) -> list[Producer]:
        """Who the flow was, and could still write."""
        return [one for one in self.identity.former if one not in self._fenced]

    def fence(self, producer: Producer) -> None:
        """A marker of its own comes; it bears the present time, so its state outlives whatever is copied."""
        self.log.append(MARKER)
        self._fenced.add(producer)
        self._states.pop(producer, None)

    def expire(self) -> None:
        """Forget the producer state, as for old timestamps at any tick (section 2)."""
        self._states.clear()

    @property
    def newest_ms(self) -> int | None:
        """Timestamp of the state, which decides when it expires; None: there is none."""
        state = self._states.get(self.identity.producer)
        return state[-1].max_timestamp if state else None

    @property
    def high_watermark(self) -> int:
        return len(self.log) if self.replicated is None else min(self.replicated, len(self.log))

    def lags(self) -> None:
        """A follower in sync fetches nothing more: what is appended from now on is not acknowledged."""
        if self.replicated is None:
            self.replicated = len(self.log)

    def catches_up(self) -> None:
        """The follower has all that the leader has."""
        self.replicated = None

    def elects(self) -> None:
        """The leader dies, and the follower in sync leads: a clean election."""
        mark = self.high_watermark
        self.replicated = None
        self.elections += 1
        while self.stored and self.stored[-1].offset >= mark:
            self._sequence = self.stored.pop().sequence
        del self.log[mark:]
        self._restate()

    def empty(self) -> None:
        """Retention takes all, and what the leader knows of producers goes with it."""
        self.start = len(self.log)
        self._states.clear()
        self._tail = None

    def lose(self, records: int, more: int = 0) -> None:
        """An unclean election: the newest batches are gone, so many records at least, and `more` of what somebody else
        wrote before them; the state is that of the rest."""
        self.elections += 1
        while self.stored and records > 0:
            gone = self.stored.pop()
            records -= gone.span
            self._sequence = gone.sequence
            del self.log[gone.offset :]
        while self.log and self.log[-1] == FOREIGN and more > 0:
            more -= 1
            self.log.pop()
        self._restate()

    def _restate(self) -> None:
        """The new leader's state is that of the batches that are left."""
        del self.appended_at[len(self.stored) :], self._writers[len(self.stored) :]
        self.start = min(self.start, len(self.log))
        rest = [
            _Known(
                one.sequence % SEQUENCE_MODULUS,
                (one.sequence + one.span - 1) % SEQUENCE_MODULUS,
                one.offset,
                one.max_timestamp,
            )
            for one in self.stored[-REMEMBERED:]
            if one.offset >= self.start
        ]
        self._states = {IDENTITY.producer: deque(rest, maxlen=REMEMBERED)} if rest else {}
        self._tail = LogTail(rest[-1].last, len(self.log), rest[-1].max_timestamp) if rest else None

    def reading(self, identity: Identity = IDENTITY) -> TargetReading:
        """What the leader says just now to who is that."""
        state = self._states.get(identity.producer)
        newest = state[-1] if state else None
        return TargetReading(
            log_start=self.start,
            log_end_before=len(self.log),
            state=ProducerState(newest.last, newest.max_timestamp) if newest else None,
            tail=None if newest else self._tail,
            log_end_after=len(self.log),
            has_records=len(self.log) > self.start,
            high_watermark=self.high_watermark,
        )

    def partition_reading(
        self,
        source: Source,
        now: float,
        identity: Identity = IDENTITY,
        reported: ReportedProgress = NOTHING_REPORTED,
    ) -> PartitionReading | Refusal:
        """As a `PositionReader` reads them."""
        known = self.ledger.known(TARGET_ID.hex(), 0)
        clerk = Clerk(self)
        resolver = PositionResolver(cast("ClaimLog", clerk), cast("LogProbe", clerk), identity, self.notes)
        leaders = self.reading(identity)
        if leaders.state is None and self.high_watermark < len(self.log):
            return Refusal("the high watermark is below the log end", transient=True)
        read = {ROUTE.target: leaders}
        ids = {ROUTE.target_topic: TARGET_ID}
        try:
            verdict, foreign = resolver.resolve(read, ids, resolver.evidence(read, ids))[ROUTE.target]
        except Superseded as superseded:
            return Refusal(str(superseded), transient=True)
        if isinstance(verdict, Doubt):
            return Refusal(verdict.reason, transient=verdict.wait)
        compared = self.compared(source, verdict)
        if (refusal := self.lost_claims.refusal(TARGET_ID, ROUTE, verdict, compared, None)) is not None:
            return refusal
        found = look_for_losses(
            ROUTE,
            verdict,
            foreign,
            SOURCE_ID,
            0,
            LossPolicy(),
            target_topic_id=TARGET_ID,
            target_end=len(self.log),
            known=known,
            appended=reported.appended_to(TARGET_ID),
        )
        for loss in found.losses:
            self.ledger.record(loss)
            if loss.action == "halted":
                return Refusal(loss.words, loss=loss.kind)
        self.said_lost += verdict.lost
        return PartitionReading(
            position=verdict,
            resume_at=verdict.upstream,
            source_topic_id=SOURCE_ID,
            source_leader=LEADER,
            source_leader_epoch=0,
            source_start=source.start,
            source_end=source.end,
            target_topic_id=TARGET_ID,
            target_leader=LEADER,
            read_at=now,
            replicated=leaders.is_replicated(verdict),
            compacted=source.cleaned,
        )

    def compared(self, source: Source, position: Position) -> Likeness | None:
        """Whether the copy ends with the source's records, as `position.last_records` tells."""
        if (tail := tail_of(position)) is None:
            return None
        verdict = Likeness.UNKNOWN
        for behind in range(tail.compared):
            original, place = tail.upstream - behind, tail.downstream - behind
            if place < self.start:
                continue
            copied = self.log[place]
            if verdict is Likeness.UNKNOWN and copied > tail.upstream and source.has(copied):
                return Likeness.DIFFERENT
            if source.has(original):
                if copied != original:
                    return Likeness.DIFFERENT
                verdict = Likeness.SAME
        return verdict

    @property
    def notes(self) -> ForeignNotes:
        """What is known for good of strangers, to who looks now."""
        return ForeignNotes(self.ledger, {ROUTE.target: ROUTE}, {ROUTE.target_topic: TARGET_ID})

    def ruling(self) -> Ruling:
        """What a reader makes of the claims."""
        seen = {one.key: self.seen(one) for one in questioned(self.claims)}
        return arbitrate(self.claims, seen, self.reach())

    def reach(self) -> Reach:
        """How far the log goes."""
        end = len(self.log)
        return Reach(self.start, end, appended(self.reading(self.identity).last_sequence, end, self.claims))

    def seen(self, claim: Claim) -> MatchedLog:
        """Our batches from where a claim should be on, and from its sequence."""
        return MatchedLog(
            tuple(
                one
                for one in self.stored
                if one.offset + one.span > max(claim.downstream, self.start)
                and one.sequence + one.span > claim.sequence
                and one.offset < self.high_watermark
            ),
            self.high_watermark,
        )

    def settle(self, confirmed: Iterable[Claim], false: Iterable[Claim]) -> None:
        """The segments topic is compacted by its keys; whoever writes may be killed between any two records."""
        for one in in_safe_order(confirmed, false):
            if self.killed_after == 0:
                raise Killed
            self.killed_after -= 1
            self.claims = [claim for claim in self.claims if claim.key != one.key]
            self.claims += [one] if isinstance(one, Claim) else []

    @property
    def copied(self) -> list[int]:
        """The upstream offset of each record of ours."""
        return [one for one in self.log if one >= 0]

    def truth(self) -> list[int]:
        """The same, as any reader of the claims would tell."""
        return [claim.upstream_of(sequence) for sequence, claim in self._told()]

    def places(self) -> list[int]:
        """Where each record of ours lies, as the claims tell when somebody has just looked at the log."""
        return [claim.downstream + sequence - claim.sequence for sequence, claim in self._told()]

    def _told(self) -> list[tuple[int, Claim]]:
        claims = self.ruling().true
        return [
            (sequence, [claim for claim in claims if claim.sequence <= sequence][-1])
            for sequence in range(len(self.copied))
        ]


@dataclass
class Clerk:
    """A target's claims and its log, as a `PositionResolver` asks for them."""

    target: TargetLog

    def claims(self, topic_id: bytes, partition: int) -> Sequence[Claim]:
        assert (topic_id, partition) == (TARGET_ID, 0)
        return tuple(self.target.claims)

    def wholes(self, partitions: Iterable[tuple[bytes, int]]) -> dict[tuple[bytes, int], Sequence[Claim]]:
        return {where: self.claims(*where) for where in partitions}

    def revise(self, claimed: Iterable[Claim], retracted: Iterable[Claim]) -> None:
        self.target.settle(claimed, retracted)

    def evidence(
        self, claims: Mapping[TopicPartition, Sequence[Claim]], log_starts: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, Evidence]:
        return {where: {one.key: self.target.seen(one) for one in some} for where, some in claims.items()}

    def is_present(self, identity: Identity) -> bool:
        return identity == self.target.identity

    @property
    def was_fenced(self) -> bool:
        return bool(self.target.identity.former)

    def fences(self, where: TopicPartition, offset: int, end: int) -> list[tuple[int, int]]:
        offset = max(offset, self.target.start)
        return [(at, at + 1) for at in range(offset, end) if self.target.log[at] == MARKER]

    def fences_only(self, where: TopicPartition, offset: int, end: int) -> bool:
        return all(self.target.log[at] == MARKER for at in range(max(offset, self.target.start), end))

    def next_of_ours(self, where: TopicPartition, offset: int, near: int) -> StoredBatch | None:
        offset = max(offset, self.target.start)
        below = (one for one in self.target.stored if one.offset < self.target.high_watermark)
        return next((one for one in below if one.offset + one.span > offset), None)

    def foreign_only(self, where: TopicPartition, offset: int, end: int) -> bool:
        return all(one < 0 for one in self.target.log[max(offset, self.target.start) : end])

    def foreign_throughout(self, where: TopicPartition, offset: int, end: int) -> bool:
        return offset >= self.target.start and self.foreign_only(where, offset, end)


def refused(error: int, base_offset: int = -1) -> Ack:
    return Ack(KEY, error, base_offset, -1, (), "")
