"""Match announced batches with batches in the target's log.

The broker may have altered a batch, and the batch must be recognized all the same.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple

from crc32c import crc32c

from sparkmirror.exact.durable.claims import AnnouncedBatch, Claim
from sparkmirror.kafka.wire.batches import CODEC_MASK, DELETE_HORIZON_BIT, TIMESTAMP_TYPE_BIT

_CHECKED_FROM = 21
"""First byte that the CRC covers: the batch's attributes."""
_ATTRIBUTES = struct.Struct(">h")
_MAX_TIMESTAMP = struct.Struct(">Q")
_MAX_TIMESTAMP_AT = 35 - _CHECKED_FROM
_UINT64 = (1 << 64) - 1


class StoredBatch(NamedTuple):
    """One of this flow's batches in the target's log."""

    sequence: int
    """The first record's sequence; not wrapped."""
    offset: int
    span: int
    """Number of sequences that the batch spans.

    A compacted batch keeps its span.
    """
    records: int
    size: int
    """Size in bytes, header included."""
    attributes: int
    crc: int
    base_timestamp: int
    max_timestamp: int


class MatchedLog(NamedTuple):
    """The log's contents at a claim's batches."""

    batches: tuple[StoredBatch, ...] = ()
    """The flow's batches with a sequence of the claim, and the next batch, if any."""
    end: int = -1
    """Offset below which `batches` is complete."""


class TargetLog(NamedTuple):
    """The log's bounds when the position was read."""

    start: int
    end: int
    """The leader's log end, which may be above the high watermark."""
    appended: int | None
    """Sequence after the flow's last record; None: no trace of a record.

    The record may be above the high watermark.
    """


class Match(IntEnum):
    """Finding on an announced batch, the surest last."""

    NO = 0
    """The log has other records there."""
    OPEN = 1
    """The log does not reach the batch; the batch may come yet."""
    UNREAD = 2
    """The log reaches the batch, but can't be read so far yet."""
    POSSIBLE = 3
    """The batch may have been there: deleted, cleaned, or altered past recognition."""
    LIKELY = 4
    """The batch was compressed again: count, base and max timestamp agree (R14)."""
    SURE = 5
    """The batch is in the log: the checksum agrees."""


class Matched(NamedTuple):
    """Finding on an announced batch, and the log's batch at its first sequence."""

    match: Match
    there: StoredBatch | None


def matches(claim: Claim, seen: MatchedLog, log: TargetLog) -> list[Matched]:
    """Match each batch that a claim announces with the log.

    A claim on a backlog of small batches announces thousands.
    """
    shelf = _Shelf(seen)
    matched = []
    sequence = claim.sequence
    for announced in claim.batches:
        match = _match(announced, sequence, claim.downstream + sequence - claim.sequence, shelf, log)
        matched.append(Matched(match, shelf.first_in(sequence, sequence + 1)))
        sequence += announced.records
    return matched


class _Shelf:
    """The log's batches, by their sequences.

    A log that took records twice has batches out of order: then every batch is looked at.
    """

    def __init__(self, seen: MatchedLog) -> None:
        self._batches = seen.batches
        self._sequences = [batch.sequence for batch in seen.batches]
        self._in_order = all(batch.sequence + batch.span <= other.sequence for batch, other in pairwise(seen.batches))
        self.last_sequence = max(self._sequences, default=-1)
        self.end = seen.end

    def first_in(self, begin: int, end: int) -> StoredBatch | None:
        """Return the log's first batch with a sequence from `begin` to before `end`."""
        candidates = self._batches
        if self._in_order:
            at = max(bisect_right(self._sequences, begin) - 1, 0)
            candidates = candidates[at : at + 2]
        return next(
            (batch for batch in candidates if batch.sequence < end and batch.sequence + batch.span > begin), None
        )


def _match(announced: AnnouncedBatch, sequence: int, downstream: int, shelf: _Shelf, log: TargetLog) -> Match:
    end = sequence + announced.records
    there = shelf.first_in(sequence, end)
    if there is not None:
        same_place = (there.sequence, there.span) == (sequence, announced.records)
        return _compare(announced, there) if same_place else Match.NO
    if shelf.last_sequence >= end:
        return Match.POSSIBLE
    if log.appended is None:
        return Match.POSSIBLE if downstream + announced.records <= log.start else Match.OPEN
    if log.appended <= sequence:
        return Match.OPEN
    if shelf.end < log.end:
        return Match.UNREAD
    return Match.POSSIBLE if log.appended >= end else Match.NO


def _compare(announced: AnnouncedBatch, there: StoredBatch) -> Match:
    """Compare an announced batch with the log's batch at the same sequences.

    `exactness.md`, "The append check", lists the changes that brokers make to batches. A cleaner drops records, or
    notes a delete horizon.
    """
    if there.records != there.span or there.attributes & DELETE_HORIZON_BIT:
        return Match.POSSIBLE
    if there.attributes & CODEC_MASK == announced.codec:
        return Match.SURE if _crc_as_sent(announced, there) == announced.crc else Match.NO
    if there.attributes & TIMESTAMP_TYPE_BIT:
        return Match.POSSIBLE
    # The base timestamp of a batch with a delete horizon at the source is the horizon, until a broker compresses the
    # batch again.
    same = (announced.base_timestamp == there.base_timestamp) + (announced.max_timestamp == there.max_timestamp)
    return (Match.NO, Match.POSSIBLE, Match.LIKELY)[same]


def _crc_as_sent(announced: AnnouncedBatch, there: StoredBatch) -> int:
    """Return the stored batch's CRC without the broker's changes.

    The broker may have stamped the batch, or corrected the max timestamp. CRCs are linear: two equally long texts' CRCs
    differ by the same bits as the CRC of the texts' difference and the CRC of zeros.
    """
    zeros = bytes(there.size - _CHECKED_FROM)
    changed = bytearray(zeros)
    _ATTRIBUTES.pack_into(changed, 0, there.attributes ^ announced.codec)
    _MAX_TIMESTAMP.pack_into(changed, _MAX_TIMESTAMP_AT, (there.max_timestamp ^ announced.max_timestamp) & _UINT64)
    return int(there.crc ^ crc32c(changed) ^ crc32c(zeros))
