"""A record as the checker sees it, and reading whole logs with a client that is not the mirror's."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from sparkmirror.errors import CopyIncomplete

ID_HEADER = "id"
STRANGER = "stranger"
"""A header of records that are in the copy and are not the mirror's."""
Isolation = Literal["read_uncommitted", "read_committed"]
_POLL_MS = 500
_PATIENCE_S = 60.0
_LAST_TIMEOUT_S = 5.0


class LoggedRecord(NamedTuple):
    """What must be the same on both sides, and the offset, which need not be."""

    offset: int
    id: str
    """Who wrote it: the load gives each record a header with a name of its own; empty without."""
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]

    @property
    def content(self) -> tuple[object, ...]:
        """All but the offset."""
        return self[1:]


Log = Sequence[LoggedRecord]


def without_strangers(logs: Mapping[int, Log]) -> dict[int, Log]:
    """The logs without what the nemesis wrote itself."""
    return {
        partition: [record for record in log if STRANGER not in dict(record.headers)] for partition, log in logs.items()
    }


def read_topic(servers: str, topic: str, partitions: int, isolation: Isolation) -> dict[int, Log]:
    """Return every record of the topic, by partition, up to its end of now; nothing where there is no such topic.

    Raises CopyIncomplete if the log's end is not reached though nothing comes for a minute.
    """
    consumer: Any = KafkaConsumer(
        bootstrap_servers=servers,
        isolation_level=isolation,
        enable_auto_commit=False,
        allow_auto_create_topics=False,
        auto_offset_reset="earliest",
    )
    logs: dict[int, list[LoggedRecord]] = {partition: [] for partition in range(partitions)}
    try:
        if topic not in consumer.topics():
            return dict(logs)
        parts = [TopicPartition(topic, partition) for partition in logs]
        consumer.assign(parts)
        consumer.seek_to_beginning(*parts)
        ends = consumer.end_offsets(parts)
        deadline = time.monotonic() + _PATIENCE_S
        while any(consumer.position(part) < ends[part] for part in parts):
            found = consumer.poll(timeout_ms=_POLL_MS)
            if found:
                deadline = time.monotonic() + _PATIENCE_S
            for part, records in found.items():
                logs[part.partition] += [_logged(record) for record in records if record.offset < ends[part]]
            if time.monotonic() > deadline:
                raise CopyIncomplete(f"{topic} can't be read to its end: nothing came for {_PATIENCE_S:.0f} s")
    finally:
        consumer.close()
    return dict(logs)


def last_names(servers: str, topic: str, partitions: int) -> dict[int, str]:
    """Return the name of each partition's last record; partitions that are empty, or that nobody leads now, lack."""
    consumer: Any = KafkaConsumer(
        bootstrap_servers=servers, enable_auto_commit=False, allow_auto_create_topics=False, request_timeout_ms=6000
    )
    names: dict[int, str] = {}
    try:
        if topic not in consumer.topics():
            return names
        parts = [TopicPartition(topic, partition) for partition in range(partitions)]
        ends = {part: end for part, end in consumer.end_offsets(parts).items() if end}
        consumer.assign(list(ends))
        for part, end in ends.items():
            consumer.seek(part, end - 1)
        deadline = time.monotonic() + _LAST_TIMEOUT_S
        while len(names) < len(ends) and time.monotonic() < deadline:
            for part, records in consumer.poll(timeout_ms=_POLL_MS).items():
                names[part.partition] = _logged(records[-1]).id
    except KafkaError:
        return {}  # one that is asked again
    finally:
        consumer.close()
    return names


def _logged(record: Any) -> LoggedRecord:
    headers = tuple(record.headers)
    name = dict(headers).get(ID_HEADER, b"")
    return LoggedRecord(
        record.offset, name.decode(), record.timestamp, record.timestamp_type, record.key, record.value, headers
    )
