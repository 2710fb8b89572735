"""The Fetch request: incremental sessions out (KIP-227), batches in place back.

A topic travels by its id (v13 and newer, KIP-516) or, to older brokers, by its name (v12). Callers
always say both and always get the name back.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from sparkmirror.wire.primitives import INT32, NO_TAGS, Reader, compact_string, request_header, uvarint
from sparkmirror.wire.topic_partition import TopicPartition

API_KEY = 1
VERSIONS = (12, 16)
"""Oldest and newest that we speak. 12 is Kafka 2.7, 13 (topic ids) 3.1, 16 is 3.7."""
BY_ID_FROM = 13
OFFSET_OUT_OF_RANGE = 1

_BODY = struct.Struct(">iiibii")
_PARTITION = struct.Struct(">iiqiqi")
_ANSWER_HEAD = struct.Struct(">ihi")
_ANSWER_PARTITION = struct.Struct(">ihqqq")
_NOT_A_REPLICA = INT32.pack(-1)
_UNKNOWN = -1
_NEW_SESSION, _NO_SESSION = 0, -1

_Key = tuple[bytes, int]


class FetchPosition(NamedTuple):
    """Where to fetch a partition from; epochs are -1 where they aren't known (KIP-320)."""

    offset: int
    current_leader_epoch: int
    last_fetched_epoch: int


class FetchedPartition(NamedTuple):
    """One partition's part of an answer; `records` points into the frame."""

    topic: str
    partition: int
    asked_offset: int
    """Where it was fetched from: by now another offset may be wanted."""
    error: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    records: memoryview
    diverging: tuple[int, int] | None
    """(epoch, end offset) where the source's log has been cut below what we fetched."""
    aborted: tuple[tuple[int, int], ...] = ()
    """(producer id, first offset) of aborted transactions in the records; read_committed only."""
    preferred_replica: int = -1
    """The broker to fetch from instead (KIP-392); -1: this one."""


@dataclass(frozen=True, slots=True)
class FetchAnswer:
    """The part of an answer before its partitions."""

    throttle_ms: int
    error: int
    session_id: int


class FetchSession:
    """What one connection fetches: positions in, only what changed goes out.

    With `incremental=False` every request stands alone and lists all that is wanted.
    """

    def __init__(
        self,
        version: int,
        *,
        client_id: str,
        max_wait_ms: int,
        min_bytes: int,
        max_bytes: int,
        partition_max_bytes: int,
        isolation_level: int = 0,
        rack: str = "",
        incremental: bool = True,
    ) -> None:
        self.version = version
        self._client_id = client_id.encode()
        self._min_bytes = min_bytes
        self._partition_max_bytes = partition_max_bytes
        self._isolation_level = isolation_level
        self._rack = compact_string(rack)
        self._wanted: dict[_Key, FetchPosition] = {}
        self._changed: dict[_Key, None] = {}
        self._known: dict[_Key, int] = {}
        self._keys: dict[TopicPartition, _Key] = {}
        self._names: dict[bytes, str] = {}
        self.max_wait_ms = max_wait_ms
        self.limit: int | None = None
        """For the next requests: less than the `max_bytes` of the session."""
        self._max_bytes = max_bytes
        self._id = 0
        self._epoch = _NEW_SESSION if incremental else _NO_SESSION

    def __len__(self) -> int:
        return len(self._wanted)

    def want(self, topic: str, topic_id: bytes, partition: int, position: FetchPosition) -> None:
        """Fetch this partition from there, from the next request on."""
        field = topic_id if self.version >= BY_ID_FROM else compact_string(topic)
        self._names[field] = topic
        key = field, partition
        if self._keys.setdefault((topic, partition), key) != key:
            self.forget(topic, partition)
            self._keys[topic, partition] = key
        self._wanted[key] = position
        self._changed[key] = None

    def forget(self, topic: str, partition: int) -> None:
        """Don't fetch this partition any more."""
        key = self._keys.pop((topic, partition), None)
        if key is not None:
            del self._wanted[key]
            self._changed[key] = None

    def request(self, correlation_id: int) -> bytes:
        """The next request of this session: all partitions in the first, then the changed ones."""
        forgotten: list[_Key] = []
        if self._epoch <= _NEW_SESSION:
            changed = self._wanted
        else:
            changed = {key: self._wanted[key] for key in self._changed if key in self._wanted}
            forgotten = [key for key in self._changed if key not in self._wanted and key in self._known]
        self._known.update((key, position.offset) for key, position in changed.items())
        for key in forgotten:
            del self._known[key]
        parts = [request_header(API_KEY, self.version, correlation_id, self._client_id)]
        if self.version < 15:
            parts.append(_NOT_A_REPLICA)
        parts.append(
            _BODY.pack(
                self.max_wait_ms,
                self._min_bytes,
                self._max_bytes if self.limit is None else min(self._max_bytes, self.limit),
                self._isolation_level,
                self._id,
                self._epoch,
            )
        )
        topics: dict[bytes, list[bytes]] = {}
        for (topic, partition), position in changed.items():
            topics.setdefault(topic, []).append(
                _PARTITION.pack(
                    partition,
                    position.current_leader_epoch,
                    position.offset,
                    position.last_fetched_epoch,
                    _UNKNOWN,
                    self._partition_max_bytes,
                )
                + NO_TAGS
            )
        _append_topics(parts, topics)
        dropped: dict[bytes, list[bytes]] = {}
        for topic, partition in forgotten:
            dropped.setdefault(topic, []).append(INT32.pack(partition))
        _append_topics(parts, dropped)
        parts.append(self._rack)
        parts.append(NO_TAGS)
        self._changed.clear()
        return b"".join(parts)

    def accept(self, answer: FetchAnswer) -> bool:
        """Take note of an answer; False if the session is void and its partitions were not served."""
        if answer.error:
            self._id = 0
            self._epoch = min(self._epoch, _NEW_SESSION)
            self._known.clear()
            return False
        self._id = answer.session_id
        self._epoch = self._epoch % 0x7FFFFFFF + 1 if self._id else min(self._epoch, _NEW_SESSION)
        return True

    def read(self, frame: memoryview) -> tuple[FetchAnswer, Iterator[FetchedPartition]]:
        """An answer's head and its partitions, which are read as they are asked for."""
        reader = Reader(frame)
        reader.int32()  # correlation id: answers come in the order of requests
        reader.tags()
        return FetchAnswer(*reader.unpack(_ANSWER_HEAD)), self._partitions(reader)

    def _partitions(self, reader: Reader) -> Iterator[FetchedPartition]:
        for _ in range(reader.compact_length()):
            if self.version >= BY_ID_FROM:
                field = reader.uuid()
            else:
                start = reader.at
                reader.slice(reader.compact_length())
                field = bytes(reader.view[start : reader.at])
            topic = self._names.get(field, "")
            for _ in range(reader.compact_length()):
                partition, error, high_watermark, stable, log_start = reader.unpack(_ANSWER_PARTITION)
                aborted = tuple(_aborted(reader) for _ in range(reader.compact_length()))
                preferred_replica = reader.int32()
                size = reader.compact_length()
                records = reader.slice(max(size, 0))
                tags = reader.tags()
                yield FetchedPartition(
                    topic,
                    partition,
                    self._known.get((field, partition), _UNKNOWN),
                    error,
                    high_watermark,
                    stable,
                    log_start,
                    records,
                    _diverging(tags[0]) if 0 in tags else None,
                    aborted,
                    preferred_replica,
                )
            reader.tags()


def _append_topics(parts: list[bytes], topics: dict[bytes, list[bytes]]) -> None:
    parts.append(uvarint(len(topics) + 1))
    for topic, partitions in topics.items():
        parts.append(topic)
        parts.append(uvarint(len(partitions) + 1))
        parts.extend(partitions)
        parts.append(NO_TAGS)


def _aborted(reader: Reader) -> tuple[int, int]:
    producer_id, first_offset = reader.int64(), reader.int64()
    reader.tags()
    return producer_id, first_offset


def _diverging(tag: memoryview) -> tuple[int, int]:
    reader = Reader(tag)
    return reader.int32(), reader.int64()
