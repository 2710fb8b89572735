"""Segments: what a range of sequences of a target partition stands for upstream (invariant 3, R14).

A segment is a claim. It is durable in `mm2-sparkmirror-segments.<source>.internal` on the target before the
first batch of it is sent. Its key holds an incarnation that is unique to the claim, so that claims of rivals
stand side by side and the log decides between them (`arbitration`). Once all batches that a claim announces
are known to be in the log it is written again, confirmed.

Records are binary, big-endian, versioned. Key: int16 version, int8 kind, then
- kind 0, an identity proposal: 16 bytes, unique; kind 2, one of release 0.1 that names the one before (`identity`);
- kind 1, a segment: 16 bytes target topic id, int32 partition, int64 sequence, int64 incarnation.
"""

from __future__ import annotations

import dataclasses
import random
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from crc32c import crc32c

from sparkmirror.durable.identity import Identity, identity_value, read_link, read_plain
from sparkmirror.wire.primitives import Reader, uvarint
from sparkmirror.wire.splice import Run

_VERSION = 1
_IDENTITY, _SEGMENT, _LINK = 0, 1, 2
_CONFIRMED, _SHARED, _HEALS, _ALTERED = 1, 2, 4, 8
_LAST_OFFSET, _MOST_RECORDS = (1 << 63) - 1, (1 << 31) - 1
_KIND = struct.Struct(">hb")
_SEGMENT_KEY = struct.Struct(">hb16siqq")
_SEGMENT_VALUE = struct.Struct(">hbqh16siqq")
_ANNOUNCED = struct.Struct(">bIqq")


ClaimKey = tuple[int, int]
"""Sequence and incarnation: a claim's own in its partition. Parts that the log has split it into share the latter."""


class AnnouncedBatch(NamedTuple):
    """What tells a batch in the log from a rival's at the same sequence."""

    records: int
    codec: int
    crc: int
    """CRC-32C, as sent."""
    base_timestamp: int
    max_timestamp: int
    """Both in milliseconds; a broker that compresses anew keeps them."""


@dataclass(frozen=True, slots=True)
class Segment:
    """From `sequence` on, record by record, the upstream offsets of `runs`; the last run goes on without end.

    It counts until the next true claim. `batches` are those that the announced runs consist of, the first ones
    at least; a claim without any says only where a partition starts.
    """

    target_topic_id: bytes
    partition: int
    sequence: int
    """The count of this flow's records in the partition before it; not wrapped."""
    incarnation: int
    """Of what was claimed at once; random."""
    producer_id: int
    producer_epoch: int
    source_topic_id: bytes
    source_leader_epoch: int
    """Partition leader epoch of the first batch, as the source has it (KIP-101); -1: not known."""
    downstream: int
    """Offset of the first record: expected, or as it was found once the claim is confirmed."""
    runs: tuple[Run, ...]
    batches: tuple[AnnouncedBatch, ...] = ()
    confirmed: bool = False
    shared: bool = False
    """Another pump may have sent these batches as well: which of them did, the log did not tell."""
    heals: bool = False
    """The target had lost what was confirmed from here on: once this is in the log, that is judged anew."""
    altered: bool = False
    """An operator had the copy go on here, at another upstream offset (`sync.altered_offsets`); without batches."""

    @property
    def key(self) -> ClaimKey:
        """What tells it from the partition's other claims."""
        return self.sequence, self.incarnation

    @property
    def upstream(self) -> int:
        """Of the first record."""
        return self.runs[0].upstream

    @property
    def announced(self) -> int:
        """How many records the runs were known to have when it was claimed."""
        return sum(run.length for run in self.runs)

    @property
    def is_start(self) -> bool:
        """Whether it says only where this flow begins in the partition: nothing of ours that counts is before it."""
        return not self.batches and not self.confirmed

    def upstream_of(self, sequence: int) -> int:
        """The upstream offset of a record of this segment."""
        ahead = sequence - self.sequence
        for run in self.runs[:-1]:
            if ahead < run.length:
                return run.upstream + ahead
            ahead -= run.length
        return self.runs[-1].upstream + ahead

    def next_upstream(self, sequence: int) -> int:
        """The upstream offset after the last record before `sequence`: a gap may begin there."""
        return self.upstream if sequence <= self.sequence else self.upstream_of(sequence - 1) + 1

    def runs_at(self, sequence: int, count: int) -> tuple[Run, ...]:
        """The runs of so many records from one of this segment on."""
        return tuple(RunsBySequence(self).at(sequence, count))

    def batch_runs(self) -> Iterator[tuple[Run, ...]]:
        """The runs of each announced batch, one after the other."""
        runs, sequence = RunsBySequence(self), self.sequence
        for batch in self.batches:
            yield tuple(runs.at(sequence, batch.records))
            sequence += batch.records

    def part(self, start: int, stop: int, downstream: int, *, confirmed: bool, shared: bool = False) -> Segment:
        """Only what its announced batches from index `start` to before `stop` hold, found at `downstream`."""
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

    def between(self, sequence: int, end: int, downstream: int) -> Segment:
        """What it says of the records from `sequence` to before `end`, found at `downstream`: confirmed.

        It announces those that this claim does: where that goes on without having been announced, so does the part.
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
        )


def joined(runs: Iterable[Run]) -> tuple[Run, ...]:
    """The same runs, those that continue each other made one."""
    found: list[Run] = []
    follows: int | None = None
    for run in runs:
        upstream, length = run
        if upstream == follows:
            found[-1] = Run(found[-1].upstream, found[-1].length + length)
        else:
            found.append(run)
        follows = upstream + length
    return tuple(found)


def start_claim(
    identity: Identity,
    target: tuple[bytes, int],
    source_topic_id: bytes,
    *,
    sequence: int,
    upstream: int,
    downstream: int,
    altered: bool = False,
) -> Segment:
    """A claim that says only where the copy into a partition of the `target` topic id begins; its number is random."""
    topic_id, partition = target
    return Segment(
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


class RunsBySequence:
    """A segment's runs, to be looked up often: a claim on a backlog of small batches has thousands."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment

    @cached_property
    def announced(self) -> int:
        """As the segment's."""
        return self.segment.announced

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(run.length for run in self.segment.runs[:-1]))

    def at(self, sequence: int, count: int) -> list[Run]:
        """Of so many records from one of the segment on; the last run goes on without end."""
        skip, found = sequence - self.segment.sequence, list[Run]()
        index = bisect_right(self._ends, skip)
        while count:
            begin = self._ends[index - 1] if index else 0
            length = min(self._ends[index] - skip, count) if index < len(self._ends) else count
            if length:
                found.append(Run(self.segment.runs[index].upstream + skip - begin, length))
            skip, count, index = skip + length, count - length, index + 1
        return found


def first_of(runs: Iterable[Run], count: int) -> tuple[Run, ...]:
    """The runs of the first so many records."""
    found = []
    for run in runs:
        length = min(run.length, count)
        count -= length
        if length:
            found.append(Run(run.upstream, length))
    return tuple(found)


_VALUE_VERSION = _VERSION.to_bytes(2, "big")

Record = tuple[bytes, bytes | None]


def segment_key(segment: Segment | Retracted) -> bytes:
    """The record's key; with a value of None it retracts the claim."""
    return _SEGMENT_KEY.pack(
        _VERSION,
        _SEGMENT,
        segment.target_topic_id,
        segment.partition,
        segment.sequence,
        segment.incarnation,
    )


def segment_record(segment: Segment) -> Record:
    """Key and value of a segment's record."""
    value = [
        _SEGMENT_VALUE.pack(
            _VERSION,
            _CONFIRMED * segment.confirmed
            | _SHARED * segment.shared
            | _HEALS * segment.heals
            | _ALTERED * segment.altered,
            segment.producer_id,
            segment.producer_epoch,
            segment.source_topic_id,
            segment.source_leader_epoch,
            segment.upstream,
            segment.downstream,
        ),
        uvarint(len(segment.runs)),
        _runs_field(segment.runs),
        uvarint(len(segment.batches)),
    ]
    for batch in segment.batches:
        value += uvarint(batch.records), _ANNOUNCED.pack(*batch[1:])
    return segment_key(segment), b"".join(value)


def _runs_field(runs: tuple[Run, ...]) -> bytes:
    """Each run's gap to the one before it and its length; of a compacted log there are thousands in a claim."""
    numbers: list[int] = []
    end = runs[0].upstream
    for upstream, length in runs:
        numbers += (upstream - end, length)
        end = upstream + length
    return bytes(numbers) if max(numbers) < 0x80 else b"".join(map(uvarint, numbers))


def identity_record(identity: Identity, unique: bytes) -> Record:
    """Key and value of a proposal; `unique` is 16 random bytes, so that no proposal replaces another."""
    return (
        _KIND.pack(_VERSION, _IDENTITY) + unique,
        identity_value(identity),
    )


class Retracted(NamedTuple):
    """A claim that was taken back: the log showed that it did not happen."""

    target_topic_id: bytes
    partition: int
    sequence: int
    incarnation: int

    @property
    def key(self) -> ClaimKey:
        """As the claim's."""
        return self.sequence, self.incarnation


def read_record(key: bytes | None, value: bytes | None) -> Segment | Identity | Retracted | None:
    """The record's meaning; None for what another version of sparkmirror wrote, or somebody else."""
    if key is None:
        return None
    try:
        return _read(key, value)
    except (struct.error, IndexError, ValueError):  # UnicodeDecodeError is one
        return None


def _read(key: bytes, value: bytes | None) -> Segment | Identity | Retracted | None:
    version, kind = _KIND.unpack_from(key)
    if version != _VERSION or (value is not None and value[:2] != _VALUE_VERSION):
        return None
    if kind == _IDENTITY and value is not None:
        return read_plain(value)
    if kind == _LINK and value is not None:
        return read_link(value)
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
    return Segment(
        target_topic_id,
        partition,
        sequence,
        incarnation,
        producer_id,
        epoch,
        source_topic_id,
        leader_epoch,
        downstream,
        tuple(runs),
        tuple(batches),
        bool(flags & _CONFIRMED),
        bool(flags & _SHARED),
        bool(flags & _HEALS),
        bool(flags & _ALTERED),
    )


def segments_topic(source_alias: str) -> str:
    """Its name ends so that no MirrorMaker 2 mirrors it."""
    return f"mm2-sparkmirror-segments.{source_alias}.internal"


def home_partition(target_topic_id: bytes, partition: int, partitions: int) -> int:
    """Which partition of the segments topic holds a target partition's segments. Identities live in 0."""
    return int(crc32c(target_topic_id + partition.to_bytes(4, "big"))) % partitions
