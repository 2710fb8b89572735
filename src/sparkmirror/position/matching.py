"""Whether a batch in the target's log is one that a claim announced, although the broker may have altered it."""

from __future__ import annotations

import struct
from bisect import bisect_right
from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple

from crc32c import crc32c

from sparkmirror.durable.claims import AnnouncedBatch, Segment
from sparkmirror.wire.batches import CODEC_MASK, DELETE_HORIZON_BIT, TIMESTAMP_TYPE_BIT

_CHECKED_FROM = 21
"""The CRC covers a batch from its attributes on."""
_ATTRIBUTES = struct.Struct(">h")
_MAX_TIMESTAMP = struct.Struct(">Q")
_MAX_TIMESTAMP_AT = 35 - _CHECKED_FROM
_UINT64 = (1 << 64) - 1


class StoredBatch(NamedTuple):
    """A batch of ours as it lies in the target's log."""

    sequence: int
    """Of its first record; not wrapped."""
    offset: int
    span: int
    """How many sequences it spans; one that was compacted keeps them all."""
    records: int
    size: int
    """In bytes, header included."""
    attributes: int
    crc: int
    base_timestamp: int
    max_timestamp: int


class MatchedLog(NamedTuple):
    """What the log holds where a claim says that its batches are."""

    batches: tuple[StoredBatch, ...] = ()
    """Ours, those that span a sequence of the claim, and the next one, if there is any."""
    end: int = -1
    """None else is below this offset."""


class TargetLog(NamedTuple):
    """How far the log reached when the position was read."""

    start: int
    end: int
    """The leader's own log end."""
    appended: int | None
    """The sequence after the last record of ours, above the high watermark too; None: there is no trace of any."""


class Match(IntEnum):
    """What can be said of an announced batch, the surest last."""

    NO = 0
    """Something else lies there."""
    OPEN = 1
    """The log does not reach there; it may come yet."""
    UNREAD = 2
    """The log reaches there, but can't be read so far yet."""
    POSSIBLE = 3
    """Deleted since, cleaned, or altered past recognition."""
    LIKELY = 4
    """Compressed anew: the count, base and max timestamp are the same (R14)."""
    SURE = 5


class Matched(NamedTuple):
    """One announced batch, and what the log has at its first sequence."""

    match: Match
    there: StoredBatch | None


def matches(claim: Segment, seen: MatchedLog, log: TargetLog) -> list[Matched]:
    """One for each batch that a claim announces: of a backlog of small ones there are thousands."""
    shelf = _Shelf(seen)
    found = []
    sequence = claim.sequence
    for announced in claim.batches:
        match = _match(announced, sequence, claim.downstream + sequence - claim.sequence, shelf, log)
        found.append(Matched(match, shelf.first_in(sequence, sequence + 1)))
        sequence += announced.records
    return found


class _Shelf:
    """Batches by their sequences. Those of a log that took records twice are not in order: then all are looked at."""

    def __init__(self, seen: MatchedLog) -> None:
        self._batches = seen.batches
        self._sequences = [one.sequence for one in seen.batches]
        self._in_order = all(one.sequence + one.span <= other.sequence for one, other in pairwise(seen.batches))
        self.last_sequence = max(self._sequences, default=-1)
        self.end = seen.end

    def first_in(self, begin: int, end: int) -> StoredBatch | None:
        """The first batch in the log that spans any of these sequences."""
        candidates = self._batches
        if self._in_order:
            at = max(bisect_right(self._sequences, begin) - 1, 0)
            candidates = candidates[at : at + 2]
        return next((one for one in candidates if one.sequence < end and one.sequence + one.span > begin), None)


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
    """What brokers do to batches: `exactness.md`, the append check; a cleaner drops records, or notes when it may."""
    if there.records != there.span or there.attributes & DELETE_HORIZON_BIT:
        return Match.POSSIBLE
    if there.attributes & CODEC_MASK == announced.codec:
        return Match.SURE if _crc_as_sent(announced, there) == announced.crc else Match.NO
    if there.attributes & TIMESTAMP_TYPE_BIT:
        return Match.POSSIBLE
    # A batch that has a delete horizon at the source has that as its base timestamp, until it is compressed anew.
    same = (announced.base_timestamp == there.base_timestamp) + (announced.max_timestamp == there.max_timestamp)
    return (Match.NO, Match.POSSIBLE, Match.LIKELY)[same]


def _crc_as_sent(announced: AnnouncedBatch, there: StoredBatch) -> int:
    """The stored batch's CRC, had the broker not stamped it, nor corrected its max timestamp.

    CRCs are linear: those of two texts of one length differ by what the texts' difference makes of zeros.
    """
    zeros = bytes(there.size - _CHECKED_FROM)
    changed = bytearray(zeros)
    _ATTRIBUTES.pack_into(changed, 0, there.attributes ^ announced.codec)
    _MAX_TIMESTAMP.pack_into(changed, _MAX_TIMESTAMP_AT, (there.max_timestamp ^ announced.max_timestamp) & _UINT64)
    return int(there.crc ^ crc32c(changed) ^ crc32c(zeros))
