"""Compare a copy's last records with the source's.

Only a claim's endless last run tells of these records. A dense log needs no further claim, so the newest claim that is
left continues without end. If newer claims were lost (an unclean leader election in the segments topic), the position
follows from an older claim, and would be wrong after any gap. Then the last copied record is not the source's record at
that offset. Key, value, headers and timestamp are compared; of records that transforms have changed, the timestamp.

A record that the source has deleted or compacted away, or that can't be unpacked, is no evidence, unless a later record
of the source equals it: that one was copied then, and its claim is lost. Blocking; in few requests for many partitions.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from enum import Enum, auto
from hashlib import blake2b
from typing import NamedTuple

from sparkmirror.chunks import chunks
from sparkmirror.errors import ClusterTrouble
from sparkmirror.exact.position.decision import Position
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.fetch_once import FetchBounds, fetch_once
from sparkmirror.kafka.cluster.log_tail import TailUnread
from sparkmirror.kafka.wire.batches import MAGIC, TIMESTAMP_TYPE_BIT, batch_headers
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.pieces import raw_parts
from sparkmirror.kafka.wire.topic_partition import TopicPartition

BACK = 64
"""Most records to compare, up to the last copied record."""
AT_ONCE = 200
"""Partitions to compare in one go, to save memory."""
_ANSWER_BYTES = 8 << 20
_FIRST_BYTES, _MORE, _MOST_BYTES = 16 << 10, 8, 4 << 20
"""Bytes for each partition: at first, growth where a batch is larger, at most.

A batch that is larger still comes when its partition is the first of a request.
"""
_MOST_TRIES = 10
"""Answers in a row without a batch before giving up."""
_ANY_TIME = None


class Likeness(Enum):
    """A comparison's result."""

    SAME = auto()
    """All compared records are the source's."""
    ALIKE = auto()
    """All compared records are the source's, as far as can be told.

    A broker has stamped times, or transforms have changed contents.
    """
    DIFFERENT = auto()
    UNKNOWN = auto()
    """No record is readable on both sides."""
    NOT_YET = auto()
    """The last record is not below the target's high watermark yet."""


class Tail(NamedTuple):
    """Records at a copy's end, as a claim that does not announce them tells."""

    upstream: int
    """The last record's source offset."""
    downstream: int
    """The last record's target offset."""
    records: int
    """Record count; the offsets grow by one on both sides."""
    changed: bool = False
    """True if transforms changed the records on the way."""

    @property
    def compared(self) -> int:
        return min(self.records, BACK)


def tail_of(position: Position) -> Tail | None:
    """Return the records that no claim announces.

    None without such records, or if the log shows none of them any more.
    """
    if position.upstream is None or position.supposed or position.unannounced <= 0:
        return None
    claim = position.last_claim
    return Tail(
        position.upstream - 1, position.end - 1, position.unannounced, changed=claim is not None and claim.changed
    )


class _Record(NamedTuple):
    timestamp: int | None
    """Timestamp; None: a broker has stamped the record, or its format has no time."""
    body: bytes
    """Digest of key, value and headers."""

    def is_copy_of(self, other: _Record, *, changed: bool) -> bool:
        stamped = _ANY_TIME in (self.timestamp, other.timestamp)
        return (changed or self.body == other.body) and (stamped or self.timestamp == other.timestamp)

    def is_surely(self, other: _Record) -> bool:
        return self == other and self.timestamp is not _ANY_TIME


class _SeenRecords(NamedTuple):
    """One log's records and transaction markers, by offset."""

    records: Mapping[int, _Record] = {}
    markers: Sequence[range] = ()
    end: int = 0
    """Offset after the batches."""

    def and_then(self, other: _SeenRecords) -> _SeenRecords:
        return _SeenRecords({**self.records, **other.records}, (*self.markers, *other.markers), other.end)

    def reach(self, offset: int) -> bool:
        return any(each >= offset for each in self.records)

    def has_marker(self, offset: int) -> bool:
        return any(offset in marker for marker in self.markers)


class LogSide(NamedTuple):
    """One side of some partitions: cluster, common leader, and topic ids by name."""

    client: ClusterClient
    leader: int
    topic_ids: Mapping[str, bytes]


def compare(source: LogSide, target: LogSide, tails: Mapping[PartitionPair, Tail]) -> dict[PartitionPair, Likeness]:
    """Compare the last records of these partitions.

    Raises `TailUnread` for a partition that can't be read, and other `ConnectionError`s.
    """
    results: dict[PartitionPair, Likeness] = {}
    for chunk in chunks(list(tails), AT_ONCE):
        results |= _compared(source, target, {pair: tails[pair] for pair in chunk}, dict.fromkeys(chunk, 0))
        # Compaction may have removed the very last records: then some before them are as good.
        left = {
            pair: tails[pair].compared - 1
            for pair in chunk
            if results[pair] is Likeness.UNKNOWN and tails[pair].compared > 1
        }
        results |= _compared(source, target, {pair: tails[pair] for pair in left}, left)
    return results


def _compared(
    source: LogSide, target: LogSide, tails: Mapping[PartitionPair, Tail], back: Mapping[PartitionPair, int]
) -> dict[PartitionPair, Likeness]:
    if not tails:
        return {}
    theirs = _read(target, {pair.target: tail.downstream - back[pair] for pair, tail in tails.items()})
    shown = {pair: tail for pair, tail in tails.items() if theirs[pair.target].records}
    ours = _read(source, {pair.source: tail.upstream - back[pair] for pair, tail in shown.items()})
    seen = {pair: ours[pair.source] for pair in shown}
    # Compaction leaves batches whose last records are gone: what comes after may be farther on.
    for _ in range(_MOST_TRIES):
        short = {
            pair: each.end
            for pair, each in seen.items()
            if each.end and not back[pair] and not each.reach(shown[pair].upstream)
        }
        if not short:
            break
        later = _read(source, {pair.source: end for pair, end in short.items()})
        seen |= {pair: seen[pair].and_then(later[pair.source]) for pair in short}
    results = dict.fromkeys(tails, Likeness.UNKNOWN)
    for pair, tail in shown.items():
        results[pair] = _judge(tail, seen[pair], theirs[pair.target])
    return results


def _judge(tail: Tail, source: _SeenRecords, target: _SeenRecords) -> Likeness:
    likeness = Likeness.UNKNOWN
    alone: list[_Record] = []
    for behind in range(tail.compared):
        copy = target.records.get(tail.downstream - behind)
        original = source.records.get(tail.upstream - behind)
        if copy is None:
            continue
        if source.has_marker(tail.upstream - behind) or (
            original is not None and not copy.is_copy_of(original, changed=tail.changed)
        ):
            return Likeness.DIFFERENT
        if original is None and likeness is Likeness.UNKNOWN:
            alone.append(copy)
        if original is not None and likeness is not Likeness.ALIKE:
            stamped = _ANY_TIME in (copy.timestamp, original.timestamp)
            if not (stamped and tail.changed):
                likeness = Likeness.ALIKE if stamped or tail.changed else Likeness.SAME
    later = [record for offset, record in source.records.items() if offset > tail.upstream]
    if not tail.changed and any(copy.is_surely(record) for copy in alone for record in later):
        return Likeness.DIFFERENT
    return likeness


def _read(side: LogSide, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, _SeenRecords]:
    """Read a batch or more from each partition, from an offset on.

    A partition without a readable batch there has no records.
    """
    seen = {partition: _SeenRecords() for partition in offsets}
    left, size, tries = dict(offsets), _FIRST_BYTES, 0
    while left:
        reply = fetch_once(side.client, side.leader, left, side.topic_ids, FetchBounds(_ANSWER_BYTES, size))
        if reply.error:
            raise ClusterTrouble(f"cluster {side.client.config.alias}: {error_name(reply.error)}")
        before = len(left)
        for part in reply.parts:
            partition = part.topic, part.partition
            if part.error and part.error != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise TailUnread(*partition, part.error, side.client.config.alias)
            shown = _shown(part.records, offsets[partition]) if not part.error else _SeenRecords()
            if shown is not None:
                seen[partition] = shown
                del left[partition]
            elif left[partition] >= part.high_watermark:
                del left[partition]
        tries = tries + 1 if len(left) == before else 0
        if tries == _MOST_TRIES:
            raise TailUnread(*next(iter(left)), ErrorCode.REQUEST_TIMED_OUT, side.client.config.alias)
        size = min(size * _MORE, _MOST_BYTES)
    return seen


def _shown(answer: memoryview, near: int) -> _SeenRecords | None:
    """Return what an answer shows near an offset; None if it has no whole batch.

    Those are the records from `BACK` offsets before on, and as many after, however far. A batch that is damaged shows
    nothing.
    """
    records: dict[int, _Record] = {}
    markers: list[range] = []
    whole, end = False, 0
    try:
        for position, header in batch_headers(answer):
            whole, end = True, header.next_offset
            if header.is_corrupt(answer, position):
                continue
            if header.is_control:
                markers.append(range(header.base_offset, header.next_offset))
                continue
            stamped = header.magic < MAGIC or header.attributes & TIMESTAMP_TYPE_BIT
            parts = raw_parts(header, answer[position : position + header.size])
            later = itertools.count(sum(offset > near for offset in records))
            records |= {
                offset: _Record(_ANY_TIME if stamped else timestamp, blake2b(body, digest_size=16).digest())
                for offset, timestamp, body in parts
                if near - BACK <= offset and (offset <= near or next(later) < BACK)
            }
    except ValueError:
        whole = True
    return _SeenRecords(records, markers, end) if whole else None
