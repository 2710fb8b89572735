"""Claims: which upstream offsets sequences stand for (invariant 3, R14).

A claim on a target partition's sequences is durable in `mm2-sparkmirror-segments.<source>.internal` on the target
before the claim's first batch is sent. The claim's key holds an incarnation that is unique to the claim, so that rival
pumps' claims stand side by side and the log decides between the claims (`arbitration`). Once all batches that a claim
announces are known to be in the log, the claim is written again, confirmed.

Records are binary, big-endian, versioned; a record with another version is ignored, as are unknown flags. Key: int16
version, int8 kind, then
- kind 0, an identity proposal: 16 bytes, unique;
- kind 2, a release 0.1 proposal that names the identity before (`identity`);
- kind 3, the number of partitions among which claims are dealt: 16 bytes, unique; the first record counts;
- kind 4, the flow's source cluster (`source_cluster`): 16 bytes, unique;
- kind 1, a claim: 16 bytes target topic id, int32 partition, int64 sequence, int64 incarnation.

A claim's value: int16 version, int8 flags (1 confirmed, 2 shared, 4 heals, 8 altered, 16 ended,
32 changed, 64 turn), int64 producer id,
int16 producer epoch, 16 bytes source topic id, int32 source leader epoch, int64 upstream and int64 downstream offset of
the first record. Then two lists, each after its length as an unsigned varint: the runs, each as the gap before and the
length (two varints); and the announced batches, each as varint records, int8 codec, uint32 CRC, int64 base and int64
max timestamp. Kind 3's value: int16 version, int32 number. `identity` has the other kinds' values.
"""

from __future__ import annotations

import dataclasses
import hashlib
import random
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from crc32c import crc32c

from sparkmirror.exact.durable.identity import Identity, identity_value, read_link, read_plain
from sparkmirror.exact.durable.source_cluster import SourceCluster, read_source_cluster
from sparkmirror.kafka.wire.primitives import Reader, uvarint
from sparkmirror.kafka.wire.splice import Run

_VERSION = 1
_IDENTITY, _SEGMENT, _LINK, _HOMES, _SOURCE = 0, 1, 2, 3, 4
_CONFIRMED, _SHARED, _HEALS, _ALTERED, _ENDED, _CHANGED, _TURN = 1, 2, 4, 8, 16, 32, 64
_LAST_OFFSET, _MOST_RECORDS = (1 << 63) - 1, (1 << 31) - 1
_KIND = struct.Struct(">hb")
_SEGMENT_KEY = struct.Struct(">hb16siqq")
_SEGMENT_VALUE = struct.Struct(">hbqh16siqq")
_ANNOUNCED = struct.Struct(">bIqq")
_HOMES_VALUE = struct.Struct(">hi")


TargetPartition = tuple[bytes, int]
"""Topic id at the target, and partition number."""

ClaimKey = tuple[int, int]
"""Sequence and incarnation, unique in a partition.

The log may split a claim: its parts share the incarnation.
"""


class AnnouncedBatch(NamedTuple):
    """Marks by which to know a batch that a claim announces.

    The marks tell the batch in the log from a rival pump's batch at the same sequence.
    """

    records: int
    codec: int
    crc: int
    """The batch's CRC-32C as sent."""
    base_timestamp: int
    max_timestamp: int
    """Newest timestamp, in milliseconds, as `base_timestamp` is.

    A broker that compresses a batch again keeps `base_timestamp` and `max_timestamp`.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Claim: which upstream offsets a partition's records have from `sequence` on.

    The records have, one by one, the upstream offsets of `runs`; the last run continues without end, unless the claim
    is `ended`. A claim counts until the next true claim. `batches` are the batches that the announced runs consist of,
    or at least the first batches. An unconfirmed claim without batches says only where a partition's copy starts.
    """

    target_topic_id: bytes
    partition: int
    sequence: int
    """Number of this flow's records before the claim in the partition; not wrapped."""
    incarnation: int
    """The claim's number, which rival pumps don't share.

    A pump counts its claims up from a random start. If the log has split a claim, the parts keep its number.
    """
    producer_id: int
    producer_epoch: int
    source_topic_id: bytes
    source_leader_epoch: int
    """Partition leader epoch of the first batch at the source; -1: not known.

    See KIP-101.
    """
    downstream: int
    """The first record's target offset.

    The offset is expected, and is the offset in the log once the claim is confirmed.
    """
    runs: tuple[Run, ...]
    batches: tuple[AnnouncedBatch, ...] = ()
    confirmed: bool = False
    shared: bool = False
    """True if a rival pump may have sent these batches, too.

    The log did not tell which pump sent the batches.
    """
    heals: bool = False
    """True if the target lost confirmed records from here on.

    Once this claim's batch is in the log, the confirmed claims from here on are judged again.
    """
    altered: bool = False
    """True if an operator had the copy go on here, at another upstream offset.

    Such a claim has no batches (`takeover.altered_offsets`).
    """
    ended: bool = False
    """True if the claim tells nothing about records behind its announced ones.

    Claims after it were lost, as the logs on both sides have shown (`position.last_records`).
    """
    changed: bool = False
    """True if transforms changed the records on the way.

    Then a copy has the source record's time, but perhaps another content.
    """
    turn: bool = False
    """True if a turn of a migration begins here (`turn_claim`, M2).

    Such a claim has no batches. Records that the log has behind it, before the flow's first, are stragglers'.
    """

    @property
    def key(self) -> ClaimKey:
        """The claim's key among the partition's claims."""
        return self.sequence, self.incarnation

    @property
    def upstream(self) -> int:
        """The first record's upstream offset."""
        return self.runs[0].upstream

    @property
    def announced(self) -> int:
        """Number of records that the runs were known to have when the claim was made."""
        return sum(run.length for run in self.runs)

    @property
    def is_start(self) -> bool:
        """True if the claim says only where this flow begins in the partition.

        Before the start, the flow has no record that counts.
        """
        return not self.batches and not self.confirmed

    @property
    def begins_copy(self) -> bool:
        """True if the claim is a start before which no record of this flow counts.

        Before a later start of an operator or a turn (`altered`) earlier records count.
        """
        return self.is_start and not (self.altered and self.sequence)

    def upstream_of(self, sequence: int) -> int:
        ahead = sequence - self.sequence
        for run in self.runs[:-1]:
            if ahead < run.length:
                return run.upstream + ahead
            ahead -= run.length
        return self.runs[-1].upstream + ahead

    def next_upstream(self, sequence: int) -> int:
        """Return the upstream offset after the last record before `sequence`.

        A gap may begin there.
        """
        return self.upstream if sequence <= self.sequence else self.upstream_of(sequence - 1) + 1

    def runs_at(self, sequence: int, count: int) -> tuple[Run, ...]:
        """Return the runs for `count` records from the record at `sequence` on."""
        return tuple(RunsBySequence(self).at(sequence, count))

    def batch_runs(self) -> Iterator[tuple[Run, ...]]:
        runs, sequence = RunsBySequence(self), self.sequence
        for batch in self.batches:
            yield tuple(runs.at(sequence, batch.records))
            sequence += batch.records

    def part(self, start: int, stop: int, downstream: int, *, confirmed: bool, shared: bool = False) -> Claim:
        """Return a claim on the announced batches from index `start` to before `stop`.

        These batches' records are at `downstream`.
        """
        sequence = self.sequence + sum(batch.records for batch in self.batches[:start])
        batches = self.batches[start:stop]
        return dataclasses.replace(
            self,
            sequence=sequence,
            downstream=downstream,
            runs=self.runs_at(sequence, sum(batch.records for batch in batches)),
            batches=batches,
            confirmed=confirmed,
            shared=shared,
        )

    def between(self, sequence: int, end: int, downstream: int) -> Claim:
        """Return a confirmed claim on the records from `sequence` to before `end`.

        The records are at `downstream`. The part announces the records that this claim announces. Behind the
        announced records the part continues unannounced, as this claim does.
        """
        announced = min(end, self.sequence + self.announced) - sequence
        return dataclasses.replace(
            self,
            sequence=sequence,
            downstream=downstream,
            runs=self.runs_at(sequence, announced) if announced > 0 else (Run(self.upstream_of(sequence), 0),),
            batches=(),
            confirmed=True,
            heals=False,
            altered=False,
            turn=False,
        )


def joined(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Return the runs with adjacent runs merged."""
    merged: list[Run] = []
    follows: int | None = None
    for run in runs:
        upstream, length = run
        if upstream == follows:
            merged[-1] = Run(merged[-1].upstream, merged[-1].length + length)
        else:
            merged.append(run)
        follows = upstream + length
    return tuple(merged)


def chained(parts: Iterable[tuple[Run, ...]]) -> tuple[Run, ...]:
    """Return the runs of consecutive batches, merged where a batch continues a run.

    No two runs within a batch are adjacent.
    """
    chain: list[Run] = []
    for runs in parts:
        if chain and chain[-1].upstream + chain[-1].length == runs[0].upstream:
            chain[-1] = Run(chain[-1].upstream, chain[-1].length + runs[0].length)
            chain += runs[1:]
        else:
            chain += runs
    return tuple(chain)


def start_claim(
    identity: Identity,
    target: tuple[bytes, int],
    source_topic_id: bytes,
    *,
    sequence: int,
    upstream: int,
    downstream: int,
    altered: bool = False,
) -> Claim:
    """Return a claim that says only where the copy into a partition begins.

    `target` is the target topic's id and the partition. The incarnation is random.
    """
    topic_id, partition = target
    return Claim(
        target_topic_id=topic_id,
        partition=partition,
        sequence=sequence,
        incarnation=random.getrandbits(62),
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        source_topic_id=source_topic_id,
        source_leader_epoch=-1,
        downstream=downstream,
        runs=(Run(upstream, 0),),
        altered=altered,
    )


def turn_claim(
    identity: Identity,
    target: tuple[bytes, int],
    source_topic_id: bytes,
    *,
    sequence: int,
    upstream: int,
    downstream: int,
) -> Claim:
    """Return the claim with which a turn of a migration begins in a partition.

    It keeps all earlier claims (M3). Its incarnation is a hash of the target partition and both offsets, so that
    writing it twice is one record (M2). `upstream` is where the topic's own records begin at the source, `downstream`
    where they will lie at the target.
    """
    claim = start_claim(
        identity, target, source_topic_id, sequence=sequence, upstream=upstream, downstream=downstream, altered=True
    )
    topic_id, partition = target
    digest = hashlib.sha256(topic_id + struct.pack(">iqq", partition, downstream, upstream)).digest()
    return dataclasses.replace(claim, incarnation=int.from_bytes(digest[:8], "big") >> 2, turn=True)


class RunsBySequence:
    """A claim's runs, for many look-ups.

    A claim on a backlog of small batches has thousands of runs.
    """

    def __init__(self, claim: Claim) -> None:
        self.claim = claim

    @cached_property
    def announced(self) -> int:
        """Number of records that the claim announces."""
        return self.claim.announced

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(run.length for run in self.claim.runs[:-1]))

    def at(self, sequence: int, count: int) -> list[Run]:
        """Return the runs for `count` records from the record at `sequence` on.

        The last run continues without end.
        """
        skip, runs = sequence - self.claim.sequence, list[Run]()
        index = bisect_right(self._ends, skip)
        while count:
            begin = self._ends[index - 1] if index else 0
            length = min(self._ends[index] - skip, count) if index < len(self._ends) else count
            if length:
                runs.append(Run(self.claim.runs[index].upstream + skip - begin, length))
            skip, count, index = skip + length, count - length, index + 1
        return runs


def first_of(runs: Iterable[Run], count: int) -> tuple[Run, ...]:
    """Return the runs of the first `count` records."""
    first = []
    for run in runs:
        length = min(run.length, count)
        count -= length
        if length:
            first.append(Run(run.upstream, length))
    return tuple(first)


_VALUE_VERSION = _VERSION.to_bytes(2, "big")

Record = tuple[bytes, bytes | None]


def claim_key(claim: Claim | Retracted) -> bytes:
    """Return the key under which a claim is written.

    A record with this key and no value retracts the claim.
    """
    return _SEGMENT_KEY.pack(
        _VERSION,
        _SEGMENT,
        claim.target_topic_id,
        claim.partition,
        claim.sequence,
        claim.incarnation,
    )


def claim_record(claim: Claim) -> Record:
    """Return a claim's record, as key and value."""
    value = [
        _SEGMENT_VALUE.pack(
            _VERSION,
            _CONFIRMED * claim.confirmed
            | _SHARED * claim.shared
            | _HEALS * claim.heals
            | _ALTERED * claim.altered
            | _ENDED * claim.ended
            | _CHANGED * claim.changed
            | _TURN * claim.turn,
            claim.producer_id,
            claim.producer_epoch,
            claim.source_topic_id,
            claim.source_leader_epoch,
            claim.upstream,
            claim.downstream,
        ),
        uvarint(len(claim.runs)),
        _runs_field(claim.runs),
        uvarint(len(claim.batches)),
    ]
    for batch in claim.batches:
        value += uvarint(batch.records), _ANNOUNCED.pack(*batch[1:])
    return claim_key(claim), b"".join(value)


def _runs_field(runs: tuple[Run, ...]) -> bytes:
    """Return, for each run, the gap to the run before and the length.

    A claim on a compacted log has thousands of runs.
    """
    numbers: list[int] = []
    end = runs[0].upstream
    for upstream, length in runs:
        numbers += (upstream - end, length)
        end = upstream + length
    return bytes(numbers) if max(numbers) < 0x80 else b"".join(map(uvarint, numbers))


def identity_record(identity: Identity, unique: bytes) -> Record:
    """Return an identity proposal, as key and value.

    `unique` is 16 random bytes, so that each proposal stays in the topic.
    """
    return (
        _KIND.pack(_VERSION, _IDENTITY) + unique,
        identity_value(identity),
    )


def homes_record(count: int, unique: bytes) -> Record:
    """Return the record that says how many home partitions there are.

    `unique` is 16 random bytes, as for `identity_record`.
    """
    return _KIND.pack(_VERSION, _HOMES) + unique, _HOMES_VALUE.pack(_VERSION, count)


def source_record(source: SourceCluster, unique: bytes) -> Record:
    """Return a proposal for the flow's source cluster, as key and value.

    `unique` is 16 random bytes, as for `identity_record`.
    """
    return _KIND.pack(_VERSION, _SOURCE) + unique, source.value


class Homes(NamedTuple):
    """Number of partitions of the segments topic among which claims are dealt."""

    number: int


class Retracted(NamedTuple):
    """A claim's retraction.

    The log showed that the claim is false; or the claim is outdated: expired, from before a takeover, or ahead of an
    altered offset.
    """

    target_topic_id: bytes
    partition: int
    sequence: int
    incarnation: int

    @property
    def key(self) -> ClaimKey:
        return self.sequence, self.incarnation


OwnTopicRecord = Claim | Identity | Retracted | Homes | SourceCluster
"""Any record in the segments topic."""


def read_record(key: bytes | None, value: bytes | None) -> OwnTopicRecord | None:
    """Read a record from the segments topic.

    Return None for a record that another sparkmirror version, or a foreign producer, wrote.
    """
    if key is None:
        return None
    try:
        return _read(key, value)
    except (struct.error, IndexError, ValueError):  # UnicodeDecodeError is a ValueError
        return None


def _read(key: bytes, value: bytes | None) -> OwnTopicRecord | None:
    version, kind = _KIND.unpack_from(key)
    if version != _VERSION or (value is not None and value[:2] != _VALUE_VERSION):
        return None
    if kind == _IDENTITY and value is not None:
        return read_plain(value)
    if kind == _LINK and value is not None:
        return read_link(value)
    if kind == _HOMES and value is not None:
        _, count = _HOMES_VALUE.unpack_from(value)
        return Homes(count) if count > 0 else None
    if kind == _SOURCE and value is not None:
        return read_source_cluster(value)
    if kind != _SEGMENT:
        return None
    _, _, target_topic_id, partition, sequence, incarnation = _SEGMENT_KEY.unpack(key)
    if value is None:
        return Retracted(target_topic_id, partition, sequence, incarnation)
    reader = Reader(memoryview(value))
    _, flags, producer_id, epoch, source_topic_id, leader_epoch, upstream, downstream = _SEGMENT_VALUE.unpack_from(
        value
    )
    reader.at = _SEGMENT_VALUE.size
    runs = []
    for _ in range(reader.uvarint()):
        start = upstream + reader.uvarint()
        runs.append(Run(start, reader.uvarint()))
        upstream = start + runs[-1].length
    batches = [AnnouncedBatch(reader.uvarint(), *reader.unpack(_ANNOUNCED)) for _ in range(reader.uvarint())]
    if not runs or upstream > _LAST_OFFSET or any(batch.records > _MOST_RECORDS for batch in batches):
        return None
    return Claim(
        target_topic_id=target_topic_id,
        partition=partition,
        sequence=sequence,
        incarnation=incarnation,
        producer_id=producer_id,
        producer_epoch=epoch,
        source_topic_id=source_topic_id,
        source_leader_epoch=leader_epoch,
        downstream=downstream,
        runs=tuple(runs),
        batches=tuple(batches),
        confirmed=bool(flags & _CONFIRMED),
        shared=bool(flags & _SHARED),
        heals=bool(flags & _HEALS),
        altered=bool(flags & _ALTERED),
        ended=bool(flags & _ENDED),
        changed=bool(flags & _CHANGED),
        turn=bool(flags & _TURN),
    )


def segments_topic(source_alias: str) -> str:
    """Return the segments topic's name.

    The name ends so that no MirrorMaker 2 mirrors the topic (`design.md`, "Internal topics").
    """
    return f"mm2-sparkmirror-segments.{source_alias}.internal"


def home_partition(target_topic_id: bytes, partition: int, partitions: int) -> int:
    """Return the segments topic's partition that has a target partition's claims.

    `partitions` is how many homes the flow has (`ClaimLog.homes`). Identities are in partition 0.
    """
    return int(crc32c(target_topic_id + partition.to_bytes(4, "big"))) % partitions
