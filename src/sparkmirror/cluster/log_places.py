"""One data batch at each of some places of many partitions' logs: a sample, in few requests.

Blocking; for a driver's duties. At read_committed transactions that were aborted are left out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from sparkmirror.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.cluster.error_codes import error_name
from sparkmirror.cluster.list_offsets import EARLIEST, LATEST, list_offsets
from sparkmirror.cluster.log_range import LogBatch, RangeUnread, answered, readable_end
from sparkmirror.wire import fetch
from sparkmirror.wire.topic_partition import TopicPartition

_MAX_BYTES = 8 << 20
_PARTITION_BYTES = 64 << 10
"""Enough for most batches; a larger one comes when its partition is the request's first."""
_LONGEST_THROTTLE_S = 5.0


def places(start: int, end: int, count: int) -> list[int]:
    """At most so many offsets from `start` to before `end`, as even as can be, the first and the last among them."""
    last = end - 1
    if last < start or count < 1:
        return []
    steps = max(count - 1, 1)
    return sorted({start + (last - start) * step // steps for step in range(count)})


def log_ends(
    client: ClusterClient, topics: Mapping[str, TopicLeaders], *, read_committed: bool
) -> dict[TopicPartition, tuple[int, int]]:
    """Start and end of each partition's log, as a consumer sees them. Raises `RangeUnread`."""
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
) -> Iterator[tuple[TopicPartition, LogBatch, int]]:
    """The first data batch that holds the offset wanted, or a later one, of each partition that has one now.

    With the offset that follows it. A batch's bytes are good until the next is asked for.
    Raises `RangeUnread` and other `ConnectionError`s.
    """
    for leader, partitions in _by_leader(topics).items():
        indexes = {(topic, index) for topic, some in partitions.items() for index in some}
        yield from _of_leader(
            client,
            leader,
            {topic: topics[topic].topic_id for topic in partitions},
            {partition: offset for partition, offset in wanted.items() if partition in indexes},
            read_committed,
        )


def _of_leader(
    client: ClusterClient,
    leader: int,
    topic_ids: Mapping[str, bytes],
    pending: dict[TopicPartition, int],
    read_committed: bool,
) -> Iterator[tuple[TopicPartition, LogBatch, int]]:
    version = client.broker(leader).version(fetch.API_KEY, fetch.VERSIONS, "Fetch")
    while pending:
        session = fetch.FetchSession(
            version,
            client_id=client.client_id,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=_MAX_BYTES,
            partition_max_bytes=_PARTITION_BYTES,
            isolation_level=int(read_committed),
            incremental=False,
        )
        for (topic, index), offset in pending.items():
            session.want(topic, topic_ids[topic], index, fetch.FetchPosition(offset, -1, -1))
        head, parts = client.fetch(leader, session)
        if head.throttle_ms:
            time.sleep(min(head.throttle_ms / 1000, _LONGEST_THROTTLE_S))
        first = next(iter(pending))
        if head.error:
            raise _unread(client, first, head.error)
        for part in parts:
            partition = part.topic, part.partition
            if part.error == fetch.OFFSET_OUT_OF_RANGE:  # expired meanwhile
                del pending[partition]
                continue
            if part.error:
                raise _unread(client, partition, part.error)
            asked = pending[partition]
            for batch, following in answered(part, asked):
                pending[partition] = following
                if batch is not None:
                    yield partition, batch, following
                    break
            else:
                # The first of a request is never left out for want of room: there is nothing but compacted offsets.
                empty = partition == first and pending[partition] == asked and not head.throttle_ms
                if pending[partition] < readable_end(part, read_committed=read_committed) and not empty:
                    continue
            del pending[partition]


def _by_leader(topics: Mapping[str, TopicLeaders]) -> dict[int, dict[str, list[int]]]:
    """The partitions of each broker."""
    leaders: dict[int, dict[str, list[int]]] = {}
    for topic in topics.values():
        for index, partition in topic.partitions.items():
            leaders.setdefault(partition.leader, {}).setdefault(topic.name, []).append(index)
    return leaders


def _unread(client: ClusterClient, partition: TopicPartition, error: int) -> RangeUnread:
    return RangeUnread(f"cluster {client.config.alias}: {partition[0]}-{partition[1]}: {error_name(error)}")
