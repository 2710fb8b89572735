"""Schema ids in one cluster's topics, and how many records have each id.

A scan reads a sample, or whole logs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, NamedTuple, TypeAlias

from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.log_range import LogBatch, RangeDamaged, read_batches
from sparkmirror.kafka.cluster.log_samples import batches_at, log_ends, sample_offsets
from sparkmirror.kafka.wire.pieces import LargeRecord, pieces
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.schemas.header import Field, Fields, SchemaId, fields, large_fields

FieldName: TypeAlias = Literal["key", "value"]

LONG = 8
"""Bytes in a long integer.

A time in milliseconds begins with a byte 0, as an id does.
"""
MOST_OF_A_BATCH = 200
"""Most records in a batch that a sample examines."""


class TopicField(NamedTuple):
    """A topic's keys, or its values."""

    topic: str
    field: FieldName


@dataclass(slots=True)
class Sight:
    """First position of an id, and the number of records with the id."""

    partition: int
    offset: int
    records: int = 0


@dataclass(slots=True)
class SeenField:
    """Facts about a topic's keys or values."""

    records: int = 0
    """Records whose key or value is not null."""
    ids: dict[SchemaId, Sight] = field(default_factory=dict)
    longs: int = 0
    """Records with an id and eight bytes in this field, as a long integer has."""

    def add(self, seen: Field, partition: int, offset: int) -> None:
        """Count a record whose key or value is not null."""
        self.records += 1
        if (schema := seen.schema) is not None:
            self.longs += seen.size == LONG
            sight = self.ids.get(schema)
            if sight is None:
                sight = self.ids[schema] = Sight(partition, offset)
            sight.records += 1

    @property
    def with_id(self) -> int:
        return sum(sight.records for sight in self.ids.values())


class Scan:
    """Counter for ids, for all topics in a flow.

    `parts` also lists keys and values that are null in every record.
    """

    def __init__(self) -> None:
        self.parts: dict[TopicField, SeenField] = {}
        self.unread: dict[str, str] = {}
        """Topic -> reason why part of the topic could not be read."""

    def take(self, partition: TopicPartition, batch: LogBatch, most: int | None = None) -> None:
        """Count the ids in a batch's records, in the first `most` of them."""
        topic, index = partition
        keys = self.parts.setdefault(TopicField(topic, "key"), SeenField())
        values = self.parts.setdefault(TopicField(topic, "value"), SeenField())
        try:
            for offset, record in islice(_records(batch), most):
                if record is not None:
                    key, value = record
                    if key.there:
                        keys.add(key, index, offset)
                    if value.there:
                        values.add(value, index, offset)
        except ValueError as error:
            self.note(partition, error)

    def note(self, partition: TopicPartition, error: Exception) -> None:
        """Note that part of a partition could not be read."""
        topic, index = partition
        self.unread.setdefault(topic, f"partition {index}: {error}")


def _records(batch: LogBatch) -> Iterator[tuple[int, Fields | None]]:
    for piece in pieces(batch.header, batch.view):
        if isinstance(piece, LargeRecord):
            yield piece.offset, large_fields(piece.body)
        else:
            for offset, body in zip(piece.offsets, piece.bodies, strict=True):
                yield offset, fields(body)


def scan_sample(
    client: ClusterClient, topics: Sequence[str], count: int, *, read_committed: bool, tell: Callable[[int, int], None]
) -> Scan:
    """Examine a batch at each of at most `count` places in each partition's log.

    `tell` gets how many places were examined, and how many there are. Raises `ClusterUnreachable`.
    """
    scan = Scan()
    leaders = _leaders(client, topics, scan)
    try:
        ends = log_ends(client, leaders, read_committed=read_committed)
        wanted = {partition: sample_offsets(*end, count) for partition, end in ends.items()}
        passed: dict[TopicPartition, int] = {}
        done, whole = 0, sum(map(len, wanted.values()))
        for step in range(count):
            here = {partition: offsets[step] for partition, offsets in wanted.items() if step < len(offsets)}
            # A batch may cover several places.
            asked = {partition: offset for partition, offset in here.items() if offset >= passed.get(partition, 0)}
            batches = batches_at(client, leaders, asked, read_committed=read_committed, damaged=scan.note)
            for partition, batch, following in batches:
                scan.take(partition, batch, MOST_OF_A_BATCH)
                passed[partition] = following
            done += len(here)
            tell(done, whole)
    except ConnectionError as error:
        raise _unreachable(client, error) from error
    return scan


def scan_whole(
    client: ClusterClient, topics: Sequence[str], *, read_committed: bool, tell: Callable[[int, int], None]
) -> Scan:
    """Examine all records up to the logs' present ends.

    `tell` gets how many offsets were passed, and how many there are. Raises `ClusterUnreachable`.
    """
    scan = Scan()
    leaders = _leaders(client, topics, scan)
    try:
        ends = log_ends(client, leaders, read_committed=read_committed)
        done, whole = 0, sum(end - start for start, end in ends.values())
        for (topic, index), (start, end) in ends.items():
            if end > start:
                try:
                    for batch in read_batches(client, leaders[topic], index, start, read_committed=read_committed):
                        if batch.header.base_offset >= end:
                            break
                        scan.take((topic, index), batch)
                        tell(done + min(batch.header.next_offset, end) - start, whole)
                except RangeDamaged as error:
                    scan.note((topic, index), error)
            done += end - start
    except ConnectionError as error:
        raise _unreachable(client, error) from error
    return scan


def _leaders(client: ClusterClient, topics: Sequence[str], scan: Scan) -> dict[str, TopicLeaders]:
    """Return all readable topics' leaders; note the other topics as unread."""
    if not topics:
        return {}
    try:
        metadata = client.metadata(topics)
    except ConnectionError as error:
        raise _unreachable(client, error) from error
    scan.unread |= {name: error_name(topic.error) for name, topic in metadata.items() if topic.error}
    return {name: topic for name, topic in metadata.items() if not topic.error}


def _unreachable(client: ClusterClient, error: ConnectionError) -> ClusterUnreachable:
    words = str(error)
    alias = f"cluster {client.config.alias}"
    return ClusterUnreachable(words if words.startswith(alias) else f"{alias}: {words}")
