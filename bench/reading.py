"""Reading batches from a cluster by plain Fetch requests: the measurer's own consumer, the same for both sides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kafka.record.default_records import DefaultRecordBatch

from bench.arena import Side
from sparkmirror.kafka.wire import fetch_session as fetch
from sparkmirror.kafka.wire.batches import BatchHeader, batch_headers

_BROKER = 1
_FETCH_BYTES = 4 << 20
_CLIENT = "bench-reader"


class Record(NamedTuple):
    """What a mirror must keep of a record, and where it is."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class Tail:
    """Reads all partitions of a topic over one connection, from given offsets on."""

    def __init__(self, side: Side, topic: str, offsets: Mapping[int, int], *, max_wait_ms: int = 500) -> None:
        self._client = side.connect()
        self._topic = topic
        self._topic_id = self._client.metadata([topic])[topic].topic_id
        self._offsets = dict(offsets)
        self._connection = self._client.broker(_BROKER)
        self._version = self._connection.version(fetch.API_KEY, fetch.VERSIONS, "Fetch")
        self._max_wait_ms = max_wait_ms
        self.behind = 0
        """Records that were there at the last answer beyond what it brought: large if the reader is too slow."""

    def poll(self) -> list[tuple[int, BatchHeader, memoryview]]:
        """What came next, as (partition, header, the whole batch); waits for the first byte, or in vain."""
        session = fetch.FetchSession(
            self._version,
            client_id=_CLIENT,
            max_wait_ms=self._max_wait_ms,
            min_bytes=1,
            max_bytes=_FETCH_BYTES,
            partition_max_bytes=_FETCH_BYTES,
            incremental=False,
        )
        for partition, offset in self._offsets.items():
            session.want(self._topic, self._topic_id, partition, fetch.FetchPosition(offset, -1, -1))
        _, parts = session.read(self._connection.exchange_raw([session.request(0)]))
        found: list[tuple[int, BatchHeader, memoryview]] = []
        self.behind = 0
        for part in parts:
            for position, header in batch_headers(part.records):
                found.append((part.partition, header, part.records[position : position + header.size]))
                self._offsets[part.partition] = header.next_offset
            self.behind += max(part.high_watermark - self._offsets[part.partition], 0)
        return found

    def close(self) -> None:
        self._client.close()


def records_of(batch: memoryview) -> Iterator[Record]:
    """Decode a batch."""
    for record in DefaultRecordBatch(bytes(batch)):
        yield Record(record.offset, record.timestamp, record.key, record.value, tuple(record.headers))


def read_range(side: Side, topic: str, partition: int, start: int, end: int) -> list[Record]:
    """The records with offsets from `start` to before `end`, which must exist."""
    tail = Tail(side, topic, {partition: start})
    found: list[Record] = []
    try:
        while not found or found[-1].offset < end - 1:
            batches = tail.poll()
            if not batches:
                return found
            for _, _, batch in batches:
                found.extend(record for record in records_of(batch) if start <= record.offset < end)
                if found and found[-1].offset >= end - 1:
                    break
    finally:
        tail.close()
    return found


def mean_batch(side: Side, topic: str) -> tuple[float, float]:
    """Bytes and records of a batch, on average over the first megabytes of partition 0."""
    tail = Tail(side, topic, {0: 0})
    try:
        headers = [header for _, header, _ in tail.poll()]
    finally:
        tail.close()
    count = len(headers) or 1
    return sum(header.size for header in headers) / count, sum(header.records for header in headers) / count
