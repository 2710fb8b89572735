"""Pumps that claim and append to one target partition, from a source log that is compacted meanwhile.

As small as it can be and still hold every way in which claims come about: rivals with different views of the
source, claims that never happen, pumps that die with requests on their way, confirmations that get lost. The target
does what a leader does (`exactness.md`, the append check), and afterwards what brokers do to stored batches.
"""

from __future__ import annotations

import dataclasses
import struct
from collections import deque
from dataclasses import dataclass, field

from crc32c import crc32c

from sparkmirror.exact.durable.claims import AnnouncedBatch, Claim
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.position.arbitration import Ruling, arbitrate
from sparkmirror.exact.position.decision import Doubt, Position, ProducerState, TargetReading, appended, decide
from sparkmirror.exact.position.matching import MatchedLog, StoredBatch, TargetLog
from sparkmirror.exact.position.questioned_claims import questioned
from sparkmirror.exact.position.route import PartitionPair, PartitionReading
from sparkmirror.kafka.wire.batches import DELETE_HORIZON_BIT, HEADER_SIZE, TIMESTAMP_TYPE_BIT
from sparkmirror.kafka.wire.splice import Run
from sparkmirror.pump.batch import PendingClaim
from sparkmirror.pump.claimer import Claimer

IDENTITY = Identity("target-cluster", 4000, 0)
TARGET_ID, SOURCE_ID = b"t" * 16, b"s" * 16
LZ4, ZSTD = 3, 4
REMEMBERED = 5
_CHECKED = struct.Struct(">hiqqqhii")
"""A header from its attributes on."""


def header(attributes: int, count: int, base: int, latest: int, sequence: int) -> bytes:
    return _CHECKED.pack(attributes, count - 1, base, latest, IDENTITY.producer_id, 0, sequence, count)


def timestamp(upstream: int) -> int:
    """Each record has its own."""
    return 1000 + 3 * upstream


@dataclass
class Sent:
    """A batch as a `Claimer` wants it, and as it is sent. Its records hold their own upstream offsets."""

    offsets: tuple[int, ...]
    sequence: int
    downstream: int
    leader_epoch: int = 0
    claim: PendingClaim | None = None
    completes: PendingClaim | None = None

    @property
    def runs(self) -> tuple[Run, ...]:
        runs: list[Run] = []
        for offset in self.offsets:
            if runs and runs[-1].upstream + runs[-1].length == offset:
                runs[-1] = Run(runs[-1].upstream, runs[-1].length + 1)
            else:
                runs.append(Run(offset, 1))
        return tuple(runs)

    @property
    def upstream(self) -> int:
        return self.offsets[0]

    @property
    def records(self) -> bytes:
        return b"".join(offset.to_bytes(8, "big") for offset in self.offsets)

    def checked(self, attributes: int, latest: int) -> bytes:
        """What the CRC covers."""
        base = timestamp(self.offsets[0])
        return header(attributes, len(self.offsets), base, latest, self.sequence) + self.records

    @property
    def announced(self) -> AnnouncedBatch:
        base, latest = timestamp(self.offsets[0]), timestamp(self.offsets[-1])
        return AnnouncedBatch(len(self.offsets), LZ4, crc32c(self.checked(LZ4, latest)), base, latest)


class Target:
    """One partition at its leader, and the claims in the segments topic."""

    def __init__(self) -> None:
        self.log: list[int] = []
        """The upstream offset of each record; a record's index is its sequence, and its offset."""
        self.stored: list[StoredBatch] = []
        self.sent: list[Sent] = []
        self.claims: dict[tuple[int, int], Claim] = {}
        self.start = 0
        self._known: deque[tuple[int, int]] = deque(maxlen=REMEMBERED)

    def append(self, batch: Sent) -> bool:
        """Compare and append; False: it is there, or is out of order, so its pump looks again."""
        if batch.sequence != len(self.log):
            return False
        one = batch.announced
        self.stored.append(
            StoredBatch(
                batch.sequence,
                batch.sequence,
                one.records,
                one.records,
                HEADER_SIZE + len(batch.records),
                LZ4,
                one.crc,
                one.base_timestamp,
                one.max_timestamp,
            )
        )
        self.sent.append(batch)
        self.log += batch.offsets
        return True

    def write(self, *claims: Claim) -> None:
        for claim in claims:
            self.claims[claim.key] = claim

    def retract(self, *claims: Claim) -> None:
        for claim in claims:
            self.claims.pop(claim.key, None)

    def reading(self) -> TargetReading:
        state = ProducerState(len(self.log) - 1, 0) if self.log else None
        return TargetReading(
            log_start=self.start,
            log_end_before=len(self.log),
            state=state,
            tail=None,
            log_end_after=len(self.log),
            has_records=self.start < len(self.log),
            high_watermark=len(self.log),
        )

    def seen(self, claim: Claim) -> MatchedLog:
        """As a probe gathers it: from where the claim should be to the first batch that ends behind it."""
        batches = []
        for one in self.stored:
            if one.offset + one.span > max(claim.downstream, self.start) and one.sequence + one.span > claim.sequence:
                batches.append(one)
                if one.sequence + one.span >= claim.sequence + claim.announced:
                    return MatchedLog(tuple(batches), one.offset + one.span)
        return MatchedLog(tuple(batches), len(self.log))

    def ruling(self) -> Ruling:
        claims = list(self.claims.values())
        evidence = {claim.key: self.seen(claim) for claim in questioned(claims)}
        sequence = appended(self.reading().last_sequence, len(self.log), claims)
        return arbitrate(claims, evidence, TargetLog(self.start, len(self.log), sequence))

    def position(self) -> Position | str:
        """As a reader reads it, who also settles the claims; or why it can't."""
        ruling = self.ruling()
        if ruling.undecided:
            return ruling.undecided
        self.retract(*ruling.false)
        self.write(*ruling.confirmed)
        found = decide(self.reading(), ruling.true, whole=True)
        return found.reason if isinstance(found, Doubt) else found

    def lose(self, records: int) -> None:
        """An unclean election: the newest batches are gone, so many records at least."""
        while self.stored and records > 0:
            records -= self.stored.pop().span
            del self.log[self.sent.pop().sequence :]

    # --- what brokers do to stored batches --------------------------------------------------------

    def _is_as_sent(self, nth: int) -> bool:
        """Stamped and compressed they are when they are appended, cleaned only later."""
        return self.stored[nth].crc == self.sent[nth].announced.crc

    def stamp(self, nth: int) -> None:
        """LogAppendTime: only the header changes."""
        if not self._is_as_sent(nth):
            return
        attributes, latest = LZ4 | TIMESTAMP_TYPE_BIT, 10**12 + nth
        self.stored[nth] = self.stored[nth]._replace(
            attributes=attributes, max_timestamp=latest, crc=crc32c(self.sent[nth].checked(attributes, latest))
        )

    def compress(self, nth: int, *, stamped: bool = False) -> None:
        """Anew, with the topic's own codec."""
        if not self._is_as_sent(nth):
            return
        one = self.stored[nth]._replace(attributes=ZSTD, size=HEADER_SIZE + 1 + nth, crc=nth)
        if stamped:
            one = one._replace(attributes=ZSTD | TIMESTAMP_TYPE_BIT, max_timestamp=10**12 + nth)
        self.stored[nth] = one

    def clean(self, nth: int, kept: int) -> None:
        """Compaction takes some of its records, or marks their tombstones."""
        one = self.stored[nth]._replace(records=min(kept, self.stored[nth].span), crc=nth, base_timestamp=7)
        if one.records == one.span:
            one = one._replace(attributes=one.attributes | DELETE_HORIZON_BIT)
        self.stored[nth] = one

    def vanish(self, nth: int) -> None:
        """Compaction took all of its records, and it is not its producer's last batch."""
        if nth < len(self.stored) - 1:
            del self.stored[nth], self.sent[nth]

    def delete_records(self, before: int) -> None:
        """Retention, or somebody's DeleteRecords."""
        self.start = max(self.start, min(before, len(self.log)))
        gone = sum(one.offset + one.span <= self.start for one in self.stored)
        del self.stored[:gone], self.sent[:gone]


class Source:
    """A log whose cleaner goes over it."""

    def __init__(self, size: int) -> None:
        self.offsets = list(range(size))

    def compact(self, first: int, step: int) -> None:
        self.offsets = [one for one in self.offsets if one < first or (one - first) % step]


@dataclass
class Pump:
    """One incarnation: what it fetched, claimed and sent. One batch is on its way at a time."""

    source: Source
    target: Target
    incarnation: int
    unclean: bool
    claimer: Claimer = field(init=False)
    stopped: str = ""
    """Why it can't tell its position."""
    running: bool = False
    dead: bool = False
    upstream: int = 0
    sequence: int = 0
    queue: deque[Sent] = field(default_factory=deque)
    claims: deque[PendingClaim] = field(default_factory=deque)
    on_its_way: Sent | None = None
    confirmed: list[Claim] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.claimer = Claimer(PartitionPair("orders", "us.orders", 0), IDENTITY, self.incarnation)

    def look(self) -> None:
        """Its position is read."""
        if self.dead or self.on_its_way:
            return
        self.queue.clear()
        self.claims.clear()
        found = self.target.position()
        if isinstance(found, str):
            self.stopped, self.running = found, False
            return
        self.running = True
        self.confirmed = [one for one in self.confirmed if one.sequence + one.announced <= found.sequence]
        self.upstream, self.sequence = found.upstream or 0, found.sequence
        reading = PartitionReading(
            position=found,
            resume_at=self.upstream,
            source_topic_id=SOURCE_ID,
            source_leader=1,
            source_leader_epoch=0,
            source_start=0,
            source_end=0,
            target_topic_id=TARGET_ID,
            target_leader=1,
            read_at=0.0,
        )
        self.claimer.start(reading, self.upstream, due=found.claim_due or self.unclean)

    def fetch(self, sizes: list[int]) -> None:
        """Batches of these sizes, from the log as it is now; one record claims all that must be claimed."""
        if self.dead or not self.running:
            return
        for size in sizes:
            offsets = tuple([one for one in self.source.offsets if one >= self.upstream][:size])
            if not offsets:
                break
            batch = Sent(offsets, self.sequence, self.sequence)
            self.queue.append(batch)
            self.claimer.note(batch)  # type: ignore[arg-type]  # all that it looks at
            self.upstream, self.sequence = offsets[-1] + 1, self.sequence + len(offsets)
        claim = self.claimer.finish()
        if claim is not None:
            self.claims.append(claim)

    def claim(self) -> None:
        if not self.dead and self.claims:
            claim = self.claims.popleft()
            self.target.write(claim.claim)
            claim.durable = True

    def send(self) -> None:
        if self.dead or self.on_its_way or not self.queue:
            return
        if self.queue[0].claim is None or self.queue[0].claim.durable:
            self.on_its_way = self.queue.popleft()

    def arrive(self) -> None:
        """What is on its way reaches the broker, also when its pump has died meanwhile."""
        batch, self.on_its_way = self.on_its_way, None
        if batch is None:
            return
        if not self.target.append(batch):
            self.disconnect()
        elif batch.claim is not None and batch.claim.claim.heals:
            self.disconnect()  # what was confirmed before is judged by its next look
        elif batch.completes is not None and not self.dead:
            self.confirmed.append(dataclasses.replace(batch.completes.claim, confirmed=True))

    def disconnect(self) -> None:
        """It must look again before it sends or confirms anything."""
        self.confirmed.clear()
        self.running = False
        self.on_its_way = None
        self.queue.clear()
        self.claims.clear()

    def confirm(self) -> None:
        if not self.dead:
            self.target.write(*self.confirmed)
            self.confirmed.clear()

    def step(self, sizes: list[int]) -> None:
        """All of it at once, for those that are not interrupted."""
        if not self.running:
            self.look()
        self.fetch(sizes)
        for _ in sizes:
            self.claim()
            self.send()
            self.arrive()
