"""The schema ids in some topics of one cluster, and how many records have each: of a sample, or of whole logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, NamedTuple, TypeAlias

from sparkmirror.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.cluster.error_codes import error_name
from sparkmirror.cluster.log_places import batches_at, log_ends, places
from sparkmirror.cluster.log_range import LogBatch, read_batches
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.schemas.header import Field, Fields, SchemaId, fields, large_fields
from sparkmirror.wire.pieces import LargeRecord, pieces
from sparkmirror.wire.topic_partition import TopicPartition

FieldName: TypeAlias = Literal["key", "value"]

LONG = 8
"""Bytes of a long integer. A time in milliseconds begins with a byte 0, as an id does."""
MOST_OF_A_BATCH = 200
"""Records of one batch that a sample looks at."""


class TopicField(NamedTuple):
    """The keys or the values of one topic."""

    topic: str
    field: FieldName


@dataclass(slots=True)
class Sight:
    """Where an id was seen first, and in how many records."""

    partition: int
    offset: int
    records: int = 0


@dataclass(slots=True)
class SeenField:
    """What is known of one part."""

    records: int = 0
    """Those whose key or value is there."""
    ids: dict[SchemaId, Sight] = field(default_factory=dict)
    longs: int = 0
    """Those of them that have an id and eight bytes, as a long integer has."""

    def add(self, found: Field, partition: int, offset: int) -> None:
        """One record more, in which this part is there."""
        self.records += 1
        if (schema := found.schema) is not None:
            self.longs += found.size == LONG
            sight = self.ids.get(schema)
            if sight is None:
                sight = self.ids[schema] = Sight(partition, offset)
            sight.records += 1

    @property
    def with_id(self) -> int:
        """Records that have an id."""
        return sum(sight.records for sight in self.ids.values())


class Scan:
    """Counts ids; one for all the topics of a flow. Parts that have no record are among `parts`, too."""

    def __init__(self) -> None:
        self.parts: dict[TopicField, SeenField] = {}
        self.unread: dict[str, str] = {}
        """Topics of which something could not be read, and what."""

    def take(self, partition: TopicPartition, batch: LogBatch, most: int | None = None) -> None:
        """Look at a batch's records, the first `most` of them."""
        topic, index = partition
        keys = self.parts.setdefault(TopicField(topic, "key"), SeenField())
        values = self.parts.setdefault(TopicField(topic, "value"), SeenField())
        try:
            for offset, found in islice(_records(batch), most):
                if found is not None:
                    key, value = found
                    if key.there:
                        keys.add(key, index, offset)
                    if value.there:
                        values.add(value, index, offset)
        except ValueError as error:
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
    """Look at a batch at each of at most `count` places of each partition's log.

    `tell` is given how many places were looked at, and how many there are. Raises `ClusterUnreachable`.
    """
    scan = Scan()
    leaders = _leaders(client, topics, scan)
    try:
        ends = log_ends(client, leaders, read_committed=read_committed)
        wanted = {partition: places(*end, count) for partition, end in ends.items()}
        passed: dict[TopicPartition, int] = {}
        done, whole = 0, sum(map(len, wanted.values()))
        for step in range(count):
            here = {partition: offsets[step] for partition, offsets in wanted.items() if step < len(offsets)}
            # A batch may hold several places.
            asked = {partition: offset for partition, offset in here.items() if offset >= passed.get(partition, 0)}
            for partition, batch, following in batches_at(client, leaders, asked, read_committed=read_committed):
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
    """Look at all records that there are now.

    `tell` is given how many offsets were passed, and how many there are. Raises `ClusterUnreachable`.
    """
    scan = Scan()
    leaders = _leaders(client, topics, scan)
    try:
        ends = log_ends(client, leaders, read_committed=read_committed)
        done, whole = 0, sum(end - start for start, end in ends.values())
        for (topic, index), (start, end) in ends.items():
            if end > start:
                for batch in read_batches(client, leaders[topic], index, start, read_committed=read_committed):
                    if batch.header.base_offset >= end:
                        break
                    scan.take((topic, index), batch)
                    tell(done + min(batch.header.next_offset, end) - start, whole)
            done += end - start
    except ConnectionError as error:
        raise _unreachable(client, error) from error
    return scan


def _leaders(client: ClusterClient, topics: Sequence[str], scan: Scan) -> dict[str, TopicLeaders]:
    """Of those topics that are there and may be seen; the others are unread."""
    if not topics:
        return {}
    try:
        found = client.metadata(topics)
    except ConnectionError as error:
        raise _unreachable(client, error) from error
    scan.unread |= {name: error_name(topic.error) for name, topic in found.items() if topic.error}
    return {name: topic for name, topic in found.items() if not topic.error}


def _unreachable(client: ClusterClient, error: ConnectionError) -> ClusterUnreachable:
    words = str(error)
    alias = f"cluster {client.config.alias}"
    return ClusterUnreachable(words if words.startswith(alias) else f"{alias}: {words}")
