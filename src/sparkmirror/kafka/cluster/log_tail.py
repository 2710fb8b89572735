"""Search for a flow's last batch in partitions' logs, from the end backwards.

The caller passes log ends that the high watermark has reached: records above the high watermark can't be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from sparkmirror.errors import ClusterTrouble
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.fetch_once import FetchBounds, fetch_once
from sparkmirror.kafka.wire.batches import SEQUENCE_MODULUS, BatchHeader, batch_headers
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.topic_partition import TopicPartition

_BOUNDS = FetchBounds(max_bytes=8 << 20, partition_bytes=1 << 20)
_MAX_STEPS = 1024
"""Answers read before giving up: about 1 GB of foreign batches in a partition."""


Wrote = Callable[[int, int], bool]
"""Test for a producer id and epoch: True if they belong to the flow."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class LastBatch(NamedTuple):
    """Fields in the flow's last batch that a position needs."""

    last_sequence: int
    next_offset: int
    max_timestamp_ms: int


class TailUnread(ClusterTrouble):
    """Error for a log's tail that can't be read now; `code` is Kafka's error."""

    def __init__(self, topic: str, partition: int, code: int, cluster: str = "") -> None:
        self.code = code
        prefix = f"cluster {cluster}: " if cluster else ""
        super().__init__(f"{prefix}{topic}-{partition}: the tail of the log can't be read ({error_name(code)})")


def each_readable(
    group: Sequence[Item], read: Callable[[Sequence[Item]], Result]
) -> Iterator[tuple[Sequence[Item], Result | TailUnread]]:
    """Apply `read` to the group, or to ever smaller parts if a tail can't be read.

    A part with an unreadable tail is halved until the unreadable item is alone; its result is then the `TailUnread`.
    Yields parts with results, in the group's order. Other exceptions that `read` raises are passed on.
    """
    groups = [group]
    while groups:
        part = groups.pop()
        result: Result | TailUnread
        try:
            result = read(part)
        except TailUnread as unread:
            if len(part) > 1:
                half = len(part) // 2
                groups += [part[half:], part[:half]]
                continue
            result = unread
        yield part, result


def last_batches(
    client: ClusterClient,
    leader: int,
    ends: Mapping[TopicPartition, int],
    topic_ids: Mapping[str, bytes],
    wrote: Wrote,
    floors: Mapping[TopicPartition, int],
) -> dict[TopicPartition, LastBatch | None]:
    """Find the flow's last batch below each partition's log end; None without one.

    Control batches are skipped and foreign batches stepped over, up to a bound (R9b). A log end of 0 or below the log
    start gives None. `floors`: lowest offset to search in each partition.
    """
    searches = {partition: BackwardSearch(end, floors.get(partition, 0), wrote) for partition, end in ends.items()}
    looking = dict(searches)
    for _ in range(_MAX_STEPS):
        looking = {partition: search for partition, search in looking.items() if not search.done}
        if not looking:
            break
        offsets = {partition: search.asks for partition, search in looking.items()}
        reply = fetch_once(client, leader, offsets, topic_ids, _BOUNDS)
        if reply.error:
            raise TailUnread(*next(iter(looking)), reply.error)
        for part in reply.parts:
            partition = part.topic, part.partition
            if part.error == ErrorCode.OFFSET_OUT_OF_RANGE:
                looking[partition].is_deleted()
            elif part.error:
                raise TailUnread(*partition, part.error)
            else:
                looking[partition].take(header for _, header in batch_headers(part.records))
    left = [partition for partition, search in looking.items() if not search.done]
    if left:
        raise TailUnread(*left[0], ErrorCode.REQUEST_TIMED_OUT)
    return {partition: search.found for partition, search in searches.items()}


class BackwardSearch:
    """Backward search for the flow's last batch in one log.

    Offset windows are read forwards, from the log's end back; each window is twice as wide as the one after it.
    """

    def __init__(self, end: int, floor: int, wrote: Wrote) -> None:
        self.found: LastBatch | None = None
        """The flow's last batch seen in the windows read so far."""
        self._wrote = wrote
        self._floor = floor
        self._low = end
        """The present window's upper end; the flow has no batch in the log from there on."""
        self._width = 1
        self._begin_window()

    def _begin_window(self) -> None:
        self.done = self.found is not None or self._low <= self._floor
        self.asks = self._window = max(self._low - self._width, self._floor)
        self._width *= 2

    def take(self, headers: Iterable[BatchHeader]) -> None:
        """Take the batches read from `asks` on.

        Without any the answer had no room for this log, and `asks` stays as it is.
        """
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
        """Narrow the search: the log begins above `asks`."""
        self._floor = self.asks + 1
        if self._floor >= self._low:
            self.done = True
        self.asks = self._window = (self.asks + self._low) // 2


def is_ours(header: BatchHeader, wrote: Wrote) -> bool:
    """True if a batch holds data of these producers; control batches don't."""
    return not header.is_control and header.base_sequence >= 0 and wrote(header.producer_id, header.producer_epoch)
