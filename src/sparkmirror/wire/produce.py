"""The Produce request: batches that are sent as they lie in memory, and its answer.

A partition is a key of the request, so that it can't be listed twice: of two batches for one
partition in one request the first would vanish without an error (`exactness.md` section 1).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sparkmirror.wire.primitives import INT16, INT32, NO_TAGS, Reader, compact_string, request_header, uvarint

API_KEY = 0
VERSIONS = (9, 13)
"""Oldest and newest that we speak. 9 is Kafka 2.4, 13 (topic ids, KIP-516) is 4.1."""
BY_ID_FROM = 13

ACKS_ALL = -1
_NO_TRANSACTION = b"\x00"
_ANSWER = struct.Struct(">ihqqq")

TopicPartitionKey = tuple[bytes, int]


def topic_field(version: int, topic: str, topic_id: bytes) -> bytes:
    """What stands for the topic on the wire in this version of Produce (R17, R18)."""
    return topic_id if version >= BY_ID_FROM else compact_string(topic)


class Ack(NamedTuple):
    """What the leader answered for one partition's batch."""

    key: TopicPartitionKey
    error: int
    base_offset: int
    log_append_time_ms: int
    """-1 for a fresh append to a CreateTime topic; a duplicate bears its batch's max timestamp (R2)."""
    record_errors: tuple[tuple[int, str], ...]
    message: str


def produce_request(
    version: int,
    correlation_id: int,
    client_id: bytes,
    timeout_ms: int,
    batches: Mapping[bytes, Mapping[int, memoryview]],
) -> list[bytes | memoryview]:
    """A request as buffers in order; the batches themselves are not copied."""
    out: list[bytes | memoryview] = []
    head = [
        request_header(API_KEY, version, correlation_id, client_id),
        _NO_TRANSACTION,
        INT16.pack(ACKS_ALL),
        INT32.pack(timeout_ms),
        uvarint(len(batches) + 1),
    ]
    for topic, partitions in batches.items():
        head.append(topic)
        head.append(uvarint(len(partitions) + 1))
        for partition, batch in partitions.items():
            head.append(INT32.pack(partition))
            head.append(uvarint(len(batch) + 1))
            out.append(b"".join(head))
            out.append(batch)
            head = [NO_TAGS]
        head.append(NO_TAGS)
    head.append(NO_TAGS)
    out.append(b"".join(head))
    return out


def read_answer(version: int, frame: memoryview) -> tuple[int, list[Ack], int]:
    """(correlation id, acks, throttle in ms) of a Produce response. The acks are in no particular order."""
    reader = Reader(frame)
    correlation_id = reader.int32()
    reader.tags()
    acks = list(_acks(version, reader))
    return correlation_id, acks, reader.int32()


def _acks(version: int, reader: Reader) -> Iterator[Ack]:
    for _ in range(reader.compact_length()):
        if version >= BY_ID_FROM:
            topic = reader.uuid()
        else:
            start = reader.at
            reader.slice(reader.compact_length())
            topic = bytes(reader.view[start : reader.at])
        for _ in range(reader.compact_length()):
            partition, error, base_offset, append_time, _log_start = reader.unpack(_ANSWER)
            errors = tuple(_record_errors(reader))
            message = reader.compact_text() or ""
            reader.tags()
            yield Ack((topic, partition), error, base_offset, append_time, errors, message)
        reader.tags()


def _record_errors(reader: Reader) -> Iterator[tuple[int, str]]:
    for _ in range(reader.compact_length()):
        index = reader.int32()
        text = reader.compact_text() or ""
        reader.tags()
        yield index, text
