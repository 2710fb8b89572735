"""Log samples: data batches at offsets in many partitions, in few requests.

Blocking; for a driver's duties. At read_committed aborted transactions are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from sparkmirror.kafka.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.fetch_once import FetchBounds, fetch_once
from sparkmirror.kafka.cluster.list_offsets import EARLIEST, LATEST, list_offsets
from sparkmirror.kafka.cluster.log_range import LogBatch, Patience, RangeUnread, answered, is_cleaned_away, readable_end
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.fetch_session import FetchedPartition
from sparkmirror.kafka.wire.topic_partition import TopicPartition

_BOUNDS = FetchBounds(max_bytes=8 << 20, partition_bytes=64 << 10)
"""Bytes asked for, for each partition enough for most batches.

A larger batch arrives once its partition is the first of a request.
"""


def sample_offsets(start: int, end: int, count: int) -> list[int]:
    """Return at most `count` offsets from `start` to before `end`, evenly spaced.

    The first and the last offset are among them.
    """
    last = end - 1
    if last < start or count < 1:
        return []
    steps = max(count - 1, 1)
    return sorted({start + (last - start) * step // steps for step in range(count)})


def log_ends(
    client: ClusterClient, topics: Mapping[str, TopicLeaders], *, read_committed: bool
) -> dict[TopicPartition, tuple[int, int]]:
    """Read where each partition's log starts and ends, as a consumer sees it.

    Raises `RangeUnread`.
    """
    ends = {}
    for leader, partitions in _by_leader(topics).items():
        first = list_offsets(client, leader, partitions, EARLIEST)
        last = list_offsets(client, leader, partitions, LATEST, isolation_level=int(read_committed))
        for partition in first:
            for listed in (first[partition], last[partition]):
                if listed.error:
                    raise _unread(client, partition, listed.error)
            ends[partition] = first[partition].offset, last[partition].offset
    return ends


def batches_at(
    client: ClusterClient,
    topics: Mapping[str, TopicLeaders],
    wanted: Mapping[TopicPartition, int],
    *,
    read_committed: bool,
    damaged: Callable[[TopicPartition, ValueError], None],
) -> Iterator[tuple[TopicPartition, LogBatch, int]]:
    """Yield each partition's first data batch at the wanted offset or later.

    Yields partition, batch and the offset after the batch; nothing for a partition without such a batch now. `damaged`
    is called for a partition with bytes that are no batch. A batch's bytes are valid until the next batch is asked for.
    Raises `RangeUnread` and other `ConnectionError`s.
    """
    yield from batches_from(
        client, topics, wanted, read_committed=read_committed, damaged=damaged, more=lambda *_: False
    )


def batches_from(
    client: ClusterClient,
    topics: Mapping[str, TopicLeaders],
    wanted: Mapping[TopicPartition, int],
    *,
    read_committed: bool,
    damaged: Callable[[TopicPartition, ValueError], None],
    more: Callable[[TopicPartition, int], bool],
) -> Iterator[tuple[TopicPartition, LogBatch, int]]:
    """Yield each partition's data batches from the wanted offset on, as `batches_at`.

    After each batch `more` is asked with the partition and the offset after the batch. A partition ends at the log end
    at the latest.
    """
    for leader, partitions in _by_leader(topics).items():
        led = {(topic, index) for topic, indexes in partitions.items() for index in indexes}
        yield from _of_leader(
            client,
            leader,
            {topic: topics[topic].topic_id for topic in partitions},
            {partition: offset for partition, offset in wanted.items() if partition in led},
            read_committed,
            damaged,
            more,
        )


def _of_leader(
    client: ClusterClient,
    leader: int,
    topic_ids: Mapping[str, bytes],
    pending: dict[TopicPartition, int],
    read_committed: bool,
    damaged: Callable[[TopicPartition, ValueError], None],
    more: Callable[[TopicPartition, int], bool],
) -> Iterator[tuple[TopicPartition, LogBatch, int]]:
    patience = Patience()
    while pending:
        before = dict(pending)
        parts: dict[TopicPartition, FetchedPartition] = {}
        reply = fetch_once(client, leader, pending, topic_ids, _BOUNDS, read_committed=read_committed)
        first = next(iter(pending))
        if reply.error:
            raise _unread(client, first, reply.error)
        for part in reply.parts:
            partition = part.topic, part.partition
            parts[partition] = part
            if part.error == ErrorCode.OFFSET_OUT_OF_RANGE:  # retention took the offset meanwhile
                del pending[partition]
                continue
            if part.error:
                raise _unread(client, partition, part.error)
            try:
                for batch, following in answered(part, pending[partition]):
                    pending[partition] = following
                    if batch is not None:
                        yield partition, batch, following
                        if not more(partition, following):
                            break
                else:
                    if pending[partition] < readable_end(part, read_committed=read_committed):
                        continue
            except ValueError as error:
                damaged(partition, error)
            del pending[partition]
        if pending != before:
            patience = Patience()
        elif first in parts and not reply.throttled:  # a request's first partition always gets room
            offset, part = pending[first], parts[first]
            if read_committed and is_cleaned_away(client, leader, first, topic_ids[first[0]], offset, part):
                del pending[first]
            else:
                place = f"cluster {client.config.alias}: {first[0]}-{first[1]} at offset {offset}"
                patience.wait(place, readable_end(part, read_committed=read_committed))


def _by_leader(topics: Mapping[str, TopicLeaders]) -> dict[int, dict[str, list[int]]]:
    leaders: dict[int, dict[str, list[int]]] = {}
    for topic in topics.values():
        for index, partition in topic.partitions.items():
            leaders.setdefault(partition.leader, {}).setdefault(topic.name, []).append(index)
    return leaders


def _unread(client: ClusterClient, partition: TopicPartition, error: int) -> RangeUnread:
    return RangeUnread(f"cluster {client.config.alias}: {partition[0]}-{partition[1]}: {error_name(error)}")
