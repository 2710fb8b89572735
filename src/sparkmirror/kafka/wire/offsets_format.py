"""The ListOffsets request and its answer on the wire, a topic at a time.

The driver asks for all partitions' ends every few seconds. An object for each partition, as kafka-python has it, took
most of the CPU that an idle mirror's driver used.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
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

API_KEY = 2
VERSIONS = (2, 10)
"""Oldest and newest supported version: Kafka 0.11 and 4.0."""
LEADER_EPOCHS_FROM = 4
FLEXIBLE_FROM = 6
"""First version with compact encodings: Kafka 2.8."""
TIMEOUT_FROM = 10
"""First version with a time to wait for remote storage: KIP-1075, Kafka 4.0."""

_HEAD = struct.Struct(">ib")
_ASKED = struct.Struct(">iiqx")
_ASKED_BEFORE_6 = struct.Struct(">iiq")
_ASKED_BEFORE_4 = struct.Struct(">iq")
_LISTED = struct.Struct(">ihqqiB")
_LISTED_BEFORE_6 = struct.Struct(">ihqqi")
_LISTED_BEFORE_4 = struct.Struct(">ihqq")
_UNKNOWN_EPOCH = -1


class OffsetsAsk(NamedTuple):
    """A request's fields next to its partitions."""

    replica_id: int
    isolation_level: int
    timestamp: int
    """EARLIEST, LATEST, or milliseconds since 1970 (`kafka/cluster/list_offsets.py`)."""
    timeout_ms: int


class PartitionOffset(NamedTuple):
    """An answer's part about a single partition."""

    topic: str
    partition: int
    error: int
    offset: int


def encode(
    version: int, correlation_id: int, client_id: bytes, ask: OffsetsAsk, topics: Mapping[str, Sequence[int]]
) -> bytes:
    """Encode a request for one offset in each partition."""
    flexible = version >= FLEXIBLE_FROM
    parts = [
        request_header(API_KEY, version, correlation_id, client_id, flexible=flexible),
        _HEAD.pack(ask.replica_id, ask.isolation_level),
        length(len(topics), flexible=flexible),
    ]
    for topic, indexes in topics.items():
        parts.append(compact_string(topic) if flexible else string(topic))
        parts.append(length(len(indexes), flexible=flexible))
        parts += _asked(version, indexes, ask.timestamp)
        if flexible:
            parts.append(NO_TAGS)
    if version >= TIMEOUT_FROM:
        parts.append(INT32.pack(ask.timeout_ms))
    if flexible:
        parts.append(NO_TAGS)
    return b"".join(parts)


def _asked(version: int, indexes: Sequence[int], timestamp: int) -> Iterator[bytes]:
    if version < LEADER_EPOCHS_FROM:
        return (_ASKED_BEFORE_4.pack(index, timestamp) for index in indexes)
    layout = _ASKED if version >= FLEXIBLE_FROM else _ASKED_BEFORE_6
    return (layout.pack(index, _UNKNOWN_EPOCH, timestamp) for index in indexes)


def decode(version: int, frame: memoryview) -> list[PartitionOffset]:
    """Return the answer's partitions; raises `Garbled`."""
    flexible = version >= FLEXIBLE_FROM
    reader = Reader(frame)
    listed: list[PartitionOffset] = []
    with read_from("an answer to ListOffsets"):
        reader.int32()  # correlation id: the connection has compared it
        if flexible:
            reader.tags()
        reader.int32()  # throttle time
        for _ in range(reader.compact_length() if flexible else reader.int32()):
            topic = (reader.compact_text() if flexible else reader.text()) or ""
            count = reader.compact_length() if flexible else reader.int32()
            listed += _listed(version, reader, topic, count)
            if flexible:
                reader.tags()
    return listed


def _listed(version: int, reader: Reader, topic: str, count: int) -> Iterator[PartitionOffset]:
    layout = _LISTED if version >= FLEXIBLE_FROM else _LISTED_BEFORE_6
    layout = layout if version >= LEADER_EPOCHS_FROM else _LISTED_BEFORE_4
    start = reader.at
    rows = list(layout.iter_unpack(reader.slice(count * layout.size)))
    if version >= FLEXIBLE_FROM and any(row[-1] for row in rows):  # no broker adds tagged fields yet
        reader.at = start
        rows = [_listed_with_tags(reader) for _ in range(count)]
    return (PartitionOffset(topic, row[0], row[1], row[3]) for row in rows)


def _listed_with_tags(reader: Reader) -> tuple[int, ...]:
    row = reader.unpack(_LISTED)
    reader.at -= 1
    reader.tags()
    return row
