"""The Produce request, whose batches are sent from their place in memory.

A partition is a key in the request, so no request can list a partition twice: of two batches for the same partition in
one request the first would vanish without an error (`exactness.md`, the append check). The module also reads the
answer.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from sparkmirror.kafka.wire.primitives import (
    INT16,
    INT32,
    NO_TAGS,
    Reader,
    compact_string,
    length,
    read_from,
    request_header,
    string,
)

API_KEY = 0
VERSIONS = (5, 13)
"""Oldest and newest supported version: Kafka 1.0 and 4.1.

A flow's target must speak at least version 9 (`cluster/broker_versions`).
"""
RECORD_ERRORS_FROM = 8
"""First version with errors about single records: KIP-467, Kafka 2.4."""
FLEXIBLE_FROM = 9
"""First version with compact encodings: Kafka 2.8."""
BY_ID_FROM = 13
"""First version that names topics by id (KIP-516): Kafka 4.1."""

MOST_ACKS = 4096
"""Most partitions in one answer; sparkmirror's largest requests have 256."""
KEPT_ERRORS = 3
"""Errors about single records that are kept for a batch, as in Kafka's messages."""

ACKS_ALL = -1
_NO_TRANSACTION = b"\x00"
_NO_TRANSACTION_BEFORE_9 = INT16.pack(-1)
_ANSWER = struct.Struct(">ihqqq")
_NO_ERRORS_AND_NO_MESSAGE = b"\x01\x00\x00"
"""An empty array, a null string and no tags: what nearly each answer ends with."""

TopicPartitionKey = tuple[bytes, int]


def topic_field(version: int, topic: str, topic_id: bytes) -> bytes:
    """Return the bytes that stand for the topic in this version (R17, R18)."""
    if version >= BY_ID_FROM:
        return topic_id
    return compact_string(topic) if version >= FLEXIBLE_FROM else string(topic)


class Ack(NamedTuple):
    """The leader's answer about one partition's batch."""

    key: TopicPartitionKey
    error: int
    base_offset: int
    log_append_time_ms: int
    """-1 for a fresh append to a CreateTime topic.

    The answer to a duplicate has the stored batch's max timestamp (R2).
    """
    record_errors: tuple[tuple[int, str], ...]
    message: str


def produce_request(
    version: int,
    correlation_id: int,
    client_id: bytes,
    timeout_ms: int,
    batches: Mapping[bytes, Mapping[int, memoryview]],
) -> list[bytes | memoryview]:
    """Encode a request as buffers in order; the batches themselves are not copied."""
    flexible = version >= FLEXIBLE_FROM
    end = NO_TAGS if flexible else b""
    out: list[bytes | memoryview] = []
    head = [
        request_header(API_KEY, version, correlation_id, client_id, flexible=flexible),
        _NO_TRANSACTION if flexible else _NO_TRANSACTION_BEFORE_9,
        INT16.pack(ACKS_ALL),
        INT32.pack(timeout_ms),
        length(len(batches), flexible=flexible),
    ]
    for topic, partitions in batches.items():
        head.append(topic)
        head.append(length(len(partitions), flexible=flexible))
        for partition, batch in partitions.items():
            head.append(INT32.pack(partition))
            head.append(length(len(batch), flexible=flexible))
            out.append(b"".join(head))
            out.append(batch)
            head = [end]
        head.append(end)
    head.append(end)
    if last := b"".join(head):
        out.append(last)
    return out


def read_answer(version: int, frame: memoryview) -> tuple[int, list[Ack], int]:
    """Read a Produce response: (correlation id, acks, throttle in ms).

    The acks are in no particular order. Raises `Garbled`.
    """
    reader = Reader(frame)
    with read_from("an answer to a Produce"):
        correlation_id = reader.int32()
        if version >= FLEXIBLE_FROM:
            reader.tags()
        read = _acks if version >= FLEXIBLE_FROM else _acks_before_9
        acks = list(islice(read(version, reader), MOST_ACKS + 1))
        if len(acks) > MOST_ACKS:
            raise ValueError(f"acknowledgements of more than {MOST_ACKS} partitions")
        return correlation_id, acks, max(reader.int32(), 0)


def _acks(version: int, reader: Reader) -> Iterator[Ack]:
    for _ in range(reader.compact_length()):
        topic = reader.uuid() if version >= BY_ID_FROM else reader.encoded_string(flexible=True)
        for _ in range(reader.compact_length()):
            partition, error, base_offset, append_time, _log_start = reader.unpack(_ANSWER)
            errors: tuple[tuple[int, str], ...] = ()
            message = ""
            if not reader.passes(_NO_ERRORS_AND_NO_MESSAGE):
                errors = _first(_record_errors(reader))
                message = reader.compact_text() or ""
                reader.tags()
            yield Ack((topic, partition), error, base_offset, append_time, errors, message)
        reader.tags()


def _acks_before_9(version: int, reader: Reader) -> Iterator[Ack]:
    for _ in range(reader.int32()):
        topic = reader.encoded_string(flexible=False)
        for _ in range(reader.int32()):
            partition, error, base_offset, append_time, _log_start = reader.unpack(_ANSWER)
            errors: tuple[tuple[int, str], ...] = ()
            message = ""
            if version >= RECORD_ERRORS_FROM:
                errors = _first((reader.int32(), reader.text() or "") for _ in range(reader.int32()))
                message = reader.text() or ""
            yield Ack((topic, partition), error, base_offset, append_time, errors, message)


def _first(errors: Iterator[tuple[int, str]]) -> tuple[tuple[int, str], ...]:
    """Return the first errors; a broker may name every record in a batch (KIP-467)."""
    first = tuple(islice(errors, KEPT_ERRORS))
    deque(errors, maxlen=0)
    return first


def _record_errors(reader: Reader) -> Iterator[tuple[int, str]]:
    for _ in range(reader.compact_length()):
        index = reader.int32()
        text = reader.compact_text() or ""
        reader.tags()
        yield index, text
