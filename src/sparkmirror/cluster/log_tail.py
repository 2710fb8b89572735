"""The last batch of ours in partitions' logs, read from the end backwards.

It must be called with offsets at which the high watermark has reached the log end: what is above it can't be read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.wire import fetch
from sparkmirror.wire.batches import SEQUENCE_MODULUS, BatchHeader, batch_headers
from sparkmirror.wire.topic_partition import TopicPartition

_MAX_BYTES = 8 << 20
_PARTITION_BYTES = 1 << 20
_MAX_STEPS = 1024
"""Answers read before giving up: about 1 GB of somebody else's batches in a partition."""
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
    version = client.broker(leader).version(fetch.API_KEY, fetch.VERSIONS, "Fetch")
    searches = {where: BackwardSearch(end, floors.get(where, 0), wrote) for where, end in ends.items()}
    looking = dict(searches)
    for _ in range(_MAX_STEPS):
        looking = {where: search for where, search in looking.items() if not search.done}
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
        for (topic, index), search in looking.items():
            session.want(topic, topic_ids[topic], index, fetch.FetchPosition(search.asks, -1, -1))
        head, parts = client.fetch(leader, session)
        if head.error:
            raise TailUnread(*next(iter(looking)), head.error)
        if head.throttle_ms:
            time.sleep(min(head.throttle_ms / 1000, _LONGEST_THROTTLE_S))
        for part in parts:
            where = part.topic, part.partition
            if part.error == fetch.OFFSET_OUT_OF_RANGE:
                looking[where].is_deleted()
            elif part.error:
                raise TailUnread(*where, part.error)
            else:
                looking[where].take(header for _, header in batch_headers(part.records))
    left = [where for where, search in looking.items() if not search.done]
    if left:
        raise TailUnread(*left[0], REQUEST_TIMED_OUT)
    return {where: search.found for where, search in searches.items()}


class BackwardSearch:
    """For our last batch in one log: windows of offsets, each twice as wide as the one behind it, read forwards."""

    def __init__(self, end: int, floor: int, wrote: Wrote) -> None:
        self.found: LastBatch | None = None
        """Ours, the last one that was seen."""
        self._wrote = wrote
        self._floor = floor
        self._low = end
        """From here on nothing is ours."""
        self._width = 1
        self._begin_window()

    def _begin_window(self) -> None:
        self.done = self.found is not None or self._low <= self._floor
        self.asks = self._window = max(self._low - self._width, self._floor)
        self._width *= 2

    def take(self, headers: Iterable[BatchHeader]) -> None:
        """What was read from `asks` on; nothing: the answer was full, and is asked for again."""
        for header in headers:
            if header.base_offset >= self._low:
                self.asks = self._low
                break
            self._window = min(self._window, header.base_offset)
            if is_ours(header, self._wrote):
                sequence = (header.base_sequence + header.last_offset_delta) % SEQUENCE_MODULUS
                self.found = LastBatch(sequence, header.next_offset, header.max_timestamp)
            self.asks = header.next_offset
        if self.asks >= self._low:
            self._low = self._window
            self._begin_window()

    def is_deleted(self) -> None:
        """The log begins above `asks`."""
        self._floor = self.asks + 1
        if self._floor >= self._low:
            self.done = True
        self.asks = self._window = (self.asks + self._low) // 2


def is_ours(header: BatchHeader, wrote: Wrote) -> bool:
    """Whether a batch holds data of these producers; markers don't."""
    return not header.is_control and header.base_sequence >= 0 and wrote(header.producer_id, header.producer_epoch)
