"""One flow's offsets in Connect's offsets topics, under any connector name.

Blocking; for the driver. With exactly-once support Connect writes offsets in transactions: aborted ones don't count.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from sparkmirror.events import Event
from sparkmirror.exact.mm2.connect_offsets import SourcePartition, read_key, read_value
from sparkmirror.kafka.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.list_offsets import EARLIEST, LATEST, list_offsets
from sparkmirror.kafka.cluster.log_range import RangeForbidden, RangeUnread, read_batches, unread
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.pieces import records
from sparkmirror.kafka.wire.topic_partition import TopicPartition

log = logging.getLogger(__name__)
_named: set[tuple[tuple[str, ...], str]] = set()
"""Brokers and topics that this process has named as unreadable."""


class StoredOffset(NamedTuple):
    """Offset stored by one connector for one source partition."""

    offsets_topic: str
    of: SourcePartition
    upstream: int
    """Last upstream offset that the connector knows to be copied."""
    stored_ms: int


class StoredOffsets(NamedTuple):
    """Stored offsets for one flow."""

    by_partition: Mapping[TopicPartition, Sequence[StoredOffset]]
    """Offsets by source topic and partition, the newest first."""
    unreadable: frozenset[str]
    """Topics that the principal may not read; without DESCRIBE they may be missing."""


def read_stored_offsets(client: ClusterClient, topics: Iterable[str], source_alias: str) -> StoredOffsets:
    """Return the offsets in topics that can be read; raises `ConnectionError`s."""
    by_partition: dict[TopicPartition, list[StoredOffset]] = {}
    unreadable: set[str] = set()
    for topic in client.metadata(topics).values():
        if topic.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            continue
        try:
            newest = _newest(client, topic, source_alias)
        except RangeForbidden:
            unreadable.add(topic.name)
            continue
        for stored in newest.values():
            by_partition.setdefault((stored.of.topic, stored.of.partition), []).append(stored)
    _warn(client, unreadable)
    for offsets in by_partition.values():
        offsets.sort(key=_stored_ms, reverse=True)
    return StoredOffsets(by_partition, frozenset(unreadable))


def _newest(client: ClusterClient, topic: TopicLeaders, source_alias: str) -> Mapping[SourcePartition, StoredOffset]:
    newest: dict[SourcePartition, StoredOffset] = {}
    for key, value, timestamp in stored_entries(client, topic):
        of = read_key(key)
        if of is not None and of.cluster == source_alias:
            upstream = read_value(value)
            if upstream is None:
                newest.pop(of, None)
            else:
                newest[of] = StoredOffset(topic.name, of, upstream, timestamp)
    return newest


def stored_entries(client: ClusterClient, topic: TopicLeaders) -> Iterator[tuple[bytes | None, bytes | None, int]]:
    """Yield every committed record's key, value and timestamp.

    Raises `RangeUnread` for a topic that can't be described or read.
    """
    if topic.error:
        raise unread(topic.error, f"cluster {client.config.alias}: topic {topic.name}: {error_name(topic.error)}")
    by_leader: dict[int, list[int]] = defaultdict(list)
    for partition, leader in topic.partitions.items():
        by_leader[leader.leader].append(partition)
    for leader_id, partitions in by_leader.items():
        starts = list_offsets(client, leader_id, {topic.name: partitions}, EARLIEST)
        ends = list_offsets(client, leader_id, {topic.name: partitions}, LATEST)
        for partition in partitions:
            start, end = starts[topic.name, partition], ends[topic.name, partition]
            if start.error or end.error:
                error = start.error or end.error
                raise unread(error, f"cluster {client.config.alias}: {topic.name}-{partition}: {error_name(error)}")
            if start.offset < end.offset:
                for header, view in read_batches(client, topic, partition, start.offset, read_committed=True):
                    try:
                        for record in records(header, view):
                            yield record.key, record.value, record.timestamp
                    except ValueError as error:
                        raise RangeUnread(
                            f"cluster {client.config.alias}: {topic.name}-{partition}: {error}"
                        ) from error


def _warn(client: ClusterClient, topics: Iterable[str]) -> None:
    """Name topics that may not be read, once a process.

    Brokers tell whether a topic exists only to a principal that may describe it.
    """
    new = [topic for topic in topics if (client.config.bootstrap_servers, topic) not in _named]
    _named.update((client.config.bootstrap_servers, topic) for topic in new)
    if new:
        log.warning(
            "cluster %s: topic %s can't be read, or isn't there: if a MirrorMaker 2 keeps its offsets in such a topic, "
            "grant sparkmirror's principal READ on it",
            client.config.alias,
            " and topic ".join(sorted(new)),
            extra=Event.STORED_OFFSETS_UNREADABLE.extra,
        )


def _stored_ms(stored: StoredOffset) -> int:
    return stored.stored_ms
