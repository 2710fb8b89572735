"""The Fetch request and its answer on the wire, in each supported version."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sparkmirror.kafka.wire.primitives import (
    INT32,
    NO_TAGS,
    Reader,
    compact_string,
    length,
    read_from,
    request_header,
    string,
)

API_KEY = 1
VERSIONS = (6, 16)
"""Oldest and newest supported version: Kafka 1.0 and 3.7."""
SESSIONS_FROM = 7
"""First version with fetch sessions: KIP-227, Kafka 1.1."""
LEADER_EPOCHS_FROM = 9
"""First version with leader epochs: KIP-320, Kafka 2.1.

From here on a broker refuses a fetch that names another leader epoch than the broker's own.
"""
RACKS_FROM = 11
"""First version with racks: KIP-392, Kafka 2.3."""
FLEXIBLE_FROM = 12
"""First version with compact encodings: Kafka 2.7.

From here on an answer also tells at which offset two logs part (KIP-595).
"""
BY_ID_FROM = 13
"""First version that names topics by id (KIP-516): Kafka 3.1."""
WITHOUT_REPLICA_FROM = 15

MOST_ABORTED = 500_000
"""Most aborted transactions in one partition's part of an answer.

A log of nothing else has fewer in 50 MB: each takes a marker of 78 bytes, and a batch of at least 70.
"""

_ASK = struct.Struct(">iiib")
_SESSION = struct.Struct(">ii")
_PARTITION = struct.Struct(">iiqiqi")
_PARTITION_BEFORE_12 = struct.Struct(">iiqqi")
_PARTITION_BEFORE_9 = struct.Struct(">iqqi")
_ANSWER_HEAD = struct.Struct(">ihi")
_ANSWER_PARTITION = struct.Struct(">ihqqq")
_ABORTED = struct.Struct(">qq")
_NAME = "an answer to a Fetch"
_NOT_A_REPLICA = INT32.pack(-1)
_UNKNOWN = -1


class FetchPosition(NamedTuple):
    """Offset to fetch from; epochs are -1 if unknown (KIP-320)."""

    offset: int
    current_leader_epoch: int
    last_fetched_epoch: int


class FetchAsk(NamedTuple):
    """A request's fields before its partitions."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int


@dataclass(frozen=True, slots=True)
class FetchAnswer:
    """An answer's fields before its partitions."""

    throttle_ms: int
    error: int
    session_id: int


class AnsweredPartition(NamedTuple):
    """An answer's part about a single partition; `topic` is the raw topic field."""

    topic: bytes
    partition: int
    error: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    records: memoryview
    diverging: tuple[int, int] | None
    aborted: tuple[tuple[int, int], ...]
    preferred_replica: int


def topic_field(version: int, topic: str, topic_id: bytes) -> bytes:
    """Return the bytes that stand for the topic in this version: id or encoded name."""
    if version >= BY_ID_FROM:
        return topic_id
    return compact_string(topic) if version >= FLEXIBLE_FROM else string(topic)


def encode(
    version: int,
    correlation_id: int,
    client_id: bytes,
    ask: FetchAsk,
    topics: Mapping[bytes, Sequence[tuple[int, FetchPosition]]],
    dropped: Mapping[bytes, Sequence[int]],
    *,
    partition_max_bytes: int,
    rack: str,
) -> bytes:
    """Encode a request: positions by topic field, and partitions to drop.

    `dropped` are the partitions that leave the session.
    """
    flexible = version >= FLEXIBLE_FROM
    parts = [request_header(API_KEY, version, correlation_id, client_id, flexible=flexible)]
    if version < WITHOUT_REPLICA_FROM:
        parts.append(_NOT_A_REPLICA)
    parts.append(_ASK.pack(*ask[:4]))
    if version >= SESSIONS_FROM:
        parts.append(_SESSION.pack(ask.session_id, ask.session_epoch))
    for_each = {
        field: [_position(version, index, position, partition_max_bytes) for index, position in positions]
        for field, positions in topics.items()
    }
    _append_topics(parts, for_each, flexible=flexible)
    if version >= SESSIONS_FROM:
        left = {field: [INT32.pack(index) for index in indexes] for field, indexes in dropped.items()}
        _append_topics(parts, left, flexible=flexible)
    if version >= RACKS_FROM:
        parts.append(compact_string(rack) if flexible else string(rack))
    if flexible:
        parts.append(NO_TAGS)
    return b"".join(parts)


def _position(version: int, partition: int, at: FetchPosition, max_bytes: int) -> bytes:
    offset, leader_epoch, last_epoch = at
    if version >= FLEXIBLE_FROM:
        return _PARTITION.pack(partition, leader_epoch, offset, last_epoch, _UNKNOWN, max_bytes) + NO_TAGS
    if version >= LEADER_EPOCHS_FROM:
        return _PARTITION_BEFORE_12.pack(partition, leader_epoch, offset, _UNKNOWN, max_bytes)
    return _PARTITION_BEFORE_9.pack(partition, offset, _UNKNOWN, max_bytes)


def _append_topics(parts: list[bytes], topics: Mapping[bytes, list[bytes]], *, flexible: bool) -> None:
    parts.append(length(len(topics), flexible=flexible))
    for field, partitions in topics.items():
        parts.append(field)
        parts.append(length(len(partitions), flexible=flexible))
        parts.extend(partitions)
        if flexible:
            parts.append(NO_TAGS)


def decode(version: int, frame: memoryview) -> tuple[FetchAnswer, Iterator[AnsweredPartition]]:
    """Return an answer's head and its partitions; partitions are decoded lazily.

    The call and the iteration may both raise `Garbled`.
    """
    reader = Reader(frame)
    with read_from(_NAME):
        reader.int32()  # correlation id: the connection has compared it
        if version >= FLEXIBLE_FROM:
            reader.tags()
        if version >= SESSIONS_FROM:
            throttle_ms, error, session_id = reader.unpack(_ANSWER_HEAD)
        else:
            throttle_ms, error, session_id = reader.int32(), 0, 0
    read = _partitions if version >= FLEXIBLE_FROM else _partitions_before_12
    return FetchAnswer(max(throttle_ms, 0), error, session_id), _each(read(version, reader))


def _each(partitions: Iterator[AnsweredPartition]) -> Iterator[AnsweredPartition]:
    """Yield the partitions; raise `Garbled` only for decoding errors.

    The `yield` stays outside `read_from`, so that an error in the consumer's code is not taken for a garbled answer.
    """
    while True:
        with read_from(_NAME):
            part = next(partitions, None)
        if part is None:
            return
        yield part


def _partitions(version: int, reader: Reader) -> Iterator[AnsweredPartition]:
    for _ in range(reader.compact_length()):
        field = reader.uuid() if version >= BY_ID_FROM else reader.encoded_string(flexible=True)
        for _ in range(reader.compact_length()):
            partition, error, high_watermark, stable, log_start = reader.unpack(_ANSWER_PARTITION)
            count = reader.compact_length()
            aborted = tuple(_aborted(reader) for _ in range(_within_bound(count))) if count > 0 else ()
            preferred_replica = reader.int32()
            records = reader.slice(max(reader.compact_length(), 0))
            tags = reader.tags()
            diverging = _diverging(tags[0]) if 0 in tags else None
            yield AnsweredPartition(
                field,
                partition,
                error,
                high_watermark,
                stable,
                log_start,
                records,
                diverging,
                aborted,
                preferred_replica,
            )
        reader.tags()


def _partitions_before_12(version: int, reader: Reader) -> Iterator[AnsweredPartition]:
    for _ in range(reader.int32()):
        field = reader.encoded_string(flexible=False)
        for _ in range(reader.int32()):
            partition, error, high_watermark, stable, log_start = reader.unpack(_ANSWER_PARTITION)
            pairs = [reader.unpack(_ABORTED) for _ in range(_within_bound(reader.int32()))]  # a count of -1 means none
            preferred_replica = reader.int32() if version >= RACKS_FROM else _UNKNOWN
            records = reader.slice(max(reader.int32(), 0))
            aborted = tuple((producer_id, first) for producer_id, first in pairs)
            yield AnsweredPartition(
                field, partition, error, high_watermark, stable, log_start, records, None, aborted, preferred_replica
            )


def _within_bound(aborted: int) -> int:
    if aborted > MOST_ABORTED:
        raise ValueError(f"{aborted:,} aborted transactions, and at most {MOST_ABORTED:,} are read")
    return aborted


def _aborted(reader: Reader) -> tuple[int, int]:
    producer_id, first_offset = reader.unpack(_ABORTED)
    reader.tags()
    return producer_id, first_offset


def _diverging(tag: memoryview) -> tuple[int, int]:
    reader = Reader(tag)
    return reader.int32(), reader.int64()
