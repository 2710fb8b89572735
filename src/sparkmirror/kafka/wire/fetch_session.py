"""Fetch sessions: incremental requests out (KIP-227), batches in place back.

A topic travels by its id (v13 and newer, KIP-516) or by its name. Callers always give id and name, and always get the
name back. As soon as any topic in the session has no id, all topics go by name. Kafka's consumer does the same, since a
cluster in an upgrade has brokers that speak v13 before its topics have ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sparkmirror.kafka.wire import fetch_format
from sparkmirror.kafka.wire.answer_bounds import AnswerBound, fetch_bound
from sparkmirror.kafka.wire.fetch_format import (
    API_KEY,
    BY_ID_FROM,
    VERSIONS,
    FetchAnswer,
    FetchAsk,
    FetchPosition,
    topic_field,
)
from sparkmirror.kafka.wire.topic_ids import NO_ID
from sparkmirror.kafka.wire.topic_partition import TopicPartition

__all__ = ["API_KEY", "BY_ID_FROM", "VERSIONS", "FetchAnswer", "FetchPosition"]
__all__ += ["FetchSession", "FetchedPartition"]

_UNKNOWN = -1
_NEW_SESSION, _NO_SESSION = 0, -1
_LAST_EPOCH = 0x7FFFFFFF

_Key = tuple[bytes, int]


class _SessionMark(NamedTuple):
    """Id and epoch in a request, by which the broker knows the session (KIP-227)."""

    id: int
    epoch: int

    @property
    def is_first(self) -> bool:
        """True if the request begins a session, or stands alone: it lists all partitions."""
        return self.epoch <= _NEW_SESSION

    def begun_again(self) -> _SessionMark:
        """Return the mark for a request that begins another session.

        The id ends the present session.
        """
        return _SessionMark(self.id, min(self.epoch, _NEW_SESSION))

    def after(self, session_id: int) -> _SessionMark:
        """Return the mark for the request after an answer; `session_id` 0: no session."""
        if not session_id:
            return _SessionMark(0, min(self.epoch, _NEW_SESSION))
        return _SessionMark(session_id, self.epoch % _LAST_EPOCH + 1)


class FetchedPartition(NamedTuple):
    """An answer's part about a single partition; `records` points into the frame."""

    topic: str
    partition: int
    asked_offset: int
    """Offset that the request asked for; by now the caller may want another offset."""
    error: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    records: memoryview
    diverging: tuple[int, int] | None
    """(epoch, end offset) at which the source's log parts from the fetched records.

    Set if the source's log was cut below the fetched offset; always None before v12.
    """
    aborted: tuple[tuple[int, int], ...] = ()
    """Aborted transactions in the records, as (producer id, first offset).

    Filled with read_committed only.
    """
    preferred_replica: int = -1
    """Broker to fetch from instead (KIP-392); -1: the broker that answered."""


class FetchSession:
    """All that a connection fetches: positions in, and only changes go out.

    `version` is the newest version that the broker and sparkmirror speak. With `incremental=False`, and always before
    v7, every request stands alone and lists all wanted partitions. One request is in flight at a time.
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
        self.partition_max_bytes = partition_max_bytes
        """Most bytes for one partition, in the next requests."""
        self._isolation_level = isolation_level
        self._rack = rack
        self._wanted: dict[TopicPartition, FetchPosition] = {}
        self._ids: dict[TopicPartition, bytes] = {}
        """Topic id by wanted partition."""
        self._without_id: set[TopicPartition] = set()
        self._changed: dict[TopicPartition, None] = {}
        self._known: dict[TopicPartition, _Key] = {}
        """Partitions in the broker's session, with the topic field the broker was told."""
        self._asked: dict[_Key, int] = {}
        """Offset last asked for, by topic field and partition."""
        self._names: dict[bytes, str] = {}
        self._sent_version = version
        self.max_wait_ms = max_wait_ms
        self.max_bytes = max_bytes
        """Most bytes in an answer, for the next requests."""
        self._mark = _SessionMark(0, _NEW_SESSION if incremental else _NO_SESSION)

    def __len__(self) -> int:
        return len(self._wanted)

    def want(self, topic: str, topic_id: bytes, partition: int, position: FetchPosition) -> None:
        """Fetch this partition from `position`, from the next request on."""
        key = topic, partition
        self._wanted[key] = position
        self._ids[key] = topic_id
        if topic_id == NO_ID:
            self._without_id.add(key)
        else:
            self._without_id.discard(key)
        self._changed[key] = None

    def forget(self, topic: str, partition: int) -> None:
        key = topic, partition
        if self._wanted.pop(key, None) is not None:
            del self._ids[key]
            self._without_id.discard(key)
            self._changed[key] = None

    def request(self, correlation_id: int) -> bytes:
        """Return the next request: all partitions in the first, then only changed ones."""
        version = min(self.version, BY_ID_FROM - 1) if self._without_id else self.version
        if (version >= BY_ID_FROM) != (self._sent_version >= BY_ID_FROM):
            self._mark = self._mark.begun_again()
        self._sent_version = version
        topics: dict[bytes, list[tuple[int, FetchPosition]]] = {}
        dropped: dict[bytes, list[int]] = {}
        if self._mark.is_first:
            self._known.clear()
            self._asked.clear()
            changed = list(self._wanted)
        else:
            changed = [key for key in self._changed if key in self._wanted]
            for key in self._changed:
                if key in self._known and self._known[key][0] != self._field(key):
                    field, partition = self._known.pop(key)
                    dropped.setdefault(field, []).append(partition)
                    del self._asked[field, partition]
        for key in changed:
            field, partition = self._known[key] = self._field(key), key[1]
            self._names[field] = key[0]
            self._asked[field, partition] = self._wanted[key].offset
            topics.setdefault(field, []).append((partition, self._wanted[key]))
        self._changed.clear()
        ask = FetchAsk(
            self.max_wait_ms,
            self._min_bytes,
            self.max_bytes,
            self._isolation_level,
            self._mark.id,
            self._mark.epoch,
        )
        return fetch_format.encode(
            version,
            correlation_id,
            self._client_id,
            ask,
            topics,
            dropped,
            partition_max_bytes=self.partition_max_bytes,
            rack=self._rack,
        )

    def _field(self, key: TopicPartition) -> bytes:
        """Return the partition's topic field now; empty if not wanted."""
        return topic_field(self._sent_version, key[0], self._ids[key]) if key in self._ids else b""

    @property
    def bound(self) -> AnswerBound:
        """Bound for the answer to the last request."""
        return fetch_bound(self.max_bytes, len(self._known))

    def asks_for(self, key: TopicPartition) -> bool:
        """True if the last request asked for this partition."""
        return key in self._known

    def accept(self, answer: FetchAnswer) -> bool:
        """Take note of an answer; False if the session is void.

        A void session means that the broker did not serve the partitions.
        """
        if answer.error:
            self._mark = self._mark.after(0)
            self._known.clear()
            self._asked.clear()
            return False
        self._mark = self._mark.after(answer.session_id)
        return True

    def read(self, frame: memoryview) -> tuple[FetchAnswer, Iterator[FetchedPartition]]:
        """Return an answer's head and its partitions; partitions are decoded lazily."""
        head, partitions = fetch_format.decode(self._sent_version, frame)
        return head, self._named(partitions)

    def _named(self, partitions: Iterator[fetch_format.AnsweredPartition]) -> Iterator[FetchedPartition]:
        for part in partitions:
            yield FetchedPartition(
                self._names.get(part.topic, ""),
                part.partition,
                self._asked.get((part.topic, part.partition), _UNKNOWN),
                *part[2:],
            )
