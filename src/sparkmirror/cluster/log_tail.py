"""The last batch of ours in partitions' logs, read from the end backwards.

It must be called with offsets at which the high watermark has reached the log end: what is above it can't be read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.wire import fetch
from sparkmirror.wire.batches import SEQUENCE_MODULUS, BatchHeader, batch_headers
from sparkmirror.wire.topic_partition import TopicPartition

_MAX_BYTES = 8 << 20
_PARTITION_BYTES = 1 << 20
_MAX_STEPS = 256
"""Answers read, foreign batches stepped over among them, before giving up."""
_LONGEST_THROTTLE_S = 1.0
REQUEST_TIMED_OUT = 7


Wrote = Callable[[int, int], bool]
"""Whether a producer id and epoch are ours."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class LastBatch(NamedTuple):
    """Our last batch, as far as a position needs it. `records` tells whether the log has any record at all."""

    last_sequence: int
    next_offset: int
    max_timestamp_ms: int


class TailUnread(ConnectionError):
    """A log's tail can't be read now; `code` is Kafka's error."""

    def __init__(self, topic: str, partition: int, code: int) -> None:
        self.code = code
        super().__init__(f"{topic}-{partition}: the tail of the log can't be read (error {code})")


def each_readable(
    group: Sequence[Item], read: Callable[[Sequence[Item]], Result]
) -> Iterator[tuple[Sequence[Item], Result | TailUnread]]:
    """`read` of the whole group; where a tail in it can't be read, of its halves, down to the one that it is.

    In the group's order. What else `read` raises is raised.
    """
    groups = [group]
    while groups:
        some = groups.pop()
        result: Result | TailUnread
        try:
            result = read(some)
        except TailUnread as unread:
            if len(some) > 1:
                half = len(some) // 2
                groups += [some[half:], some[:half]]
                continue
            result = unread
        yield some, result


def last_batches(
    client: ClusterClient,
    leader: int,
    ends: Mapping[TopicPartition, int],
    topic_ids: Mapping[str, bytes],
    wrote: Wrote,
    floors: Mapping[TopicPartition, int],
) -> dict[TopicPartition, LastBatch | None]:
    """For each partition, whose log ends at the offset given: our last batch, or None.

    Control batches are skipped and foreign batches stepped over, up to a bound (R9b). A log end of 0 or
    below the log start gives None. `floors`: offsets below which there is nothing to look for.
    """
    connection = client.broker(leader)
    version = connection.version(fetch.API_KEY, fetch.VERSIONS, "Fetch")
    found: dict[TopicPartition, LastBatch | None] = {}
    looking = {where: end - 1 for where, end in ends.items()}
    for _ in range(_MAX_STEPS):
        looking = {where: offset for where, offset in looking.items() if offset >= floors.get(where, 0)}
        if not looking:
            break
        session = fetch.FetchSession(
            version,
            client_id=client.client_id,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=_MAX_BYTES,
            partition_max_bytes=_PARTITION_BYTES,
            incremental=False,
        )
        for (topic, index), offset in looking.items():
            session.want(topic, topic_ids[topic], index, fetch.FetchPosition(offset, -1, -1))
        try:
            head, parts = session.read(connection.exchange_raw([session.request(0)]))
        except ConnectionError:
            client.hang_up(leader)
            raise
        if head.error:
            raise TailUnread(*next(iter(looking)), head.error)
        if head.throttle_ms:
            time.sleep(min(head.throttle_ms / 1000, _LONGEST_THROTTLE_S))
        for part in parts:
            where = part.topic, part.partition
            if part.error == fetch.OFFSET_OUT_OF_RANGE:
                del looking[where]  # the log is empty below its end
            elif part.error:
                raise TailUnread(*where, part.error)
            else:
                last = _first_header(part.records)
                if last is None:
                    continue  # the answer was full; asked again
                if is_ours(last, wrote):
                    sequence = (last.base_sequence + last.last_offset_delta) % SEQUENCE_MODULUS
                    found[where] = LastBatch(sequence, last.next_offset, last.max_timestamp)
                    del looking[where]
                else:
                    looking[where] = min(last.base_offset, looking[where]) - 1
    left = [where for where, offset in looking.items() if offset >= floors.get(where, 0)]
    if left:
        raise TailUnread(*left[0], REQUEST_TIMED_OUT)
    return {where: found.get(where) for where in ends}


def _first_header(records: memoryview) -> BatchHeader | None:
    """Of the batch that holds the offset asked for; others that follow it were seen before."""
    return next((header for _, header in batch_headers(records)), None)


def is_ours(header: BatchHeader, wrote: Wrote) -> bool:
    """Whether a batch holds data of these producers; markers don't."""
    return not header.is_control and header.base_sequence >= 0 and wrote(header.producer_id, header.producer_epoch)
