"""Data batches of one partition's log, read in order, as by a consumer.

Blocking; for a driver's duties. At read_committed aborted transactions are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sparkmirror.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.cluster.error_names import error_name
from sparkmirror.cluster.fetch_once import FetchBounds, fetch_once, only_part
from sparkmirror.errors import ClusterTrouble
from sparkmirror.wire.batches import MAGIC, BatchHeader, batch_headers
from sparkmirror.wire.error_codes import ErrorCode
from sparkmirror.wire.fetch_session import FetchedPartition
from sparkmirror.wire.transactions import Transactions

_FIRST_ANSWER, _LONGEST_ANSWER = 128 << 10, 4 << 20
"""Sizes of the first and of the largest answer, in bytes; answers double in size.

Often a few records are enough; a long range takes fewer requests with large answers.
"""


class RangeUnread(ClusterTrouble):
    """Error for a log that can't be read now at the wanted offset."""


class LogBatch(NamedTuple):
    """One data batch; `view` is all its bytes, until the next batch is read."""

    header: BatchHeader
    view: memoryview


def read_batches(
    client: ClusterClient, topic: TopicLeaders, partition: int, offset: int, *, read_committed: bool
) -> Iterator[LogBatch]:
    """Yield the data batches with `offset` or later offsets, to the present log end.

    The log end is the high watermark, or at read_committed the last stable offset. The caller may stop iterating at any
    time. Raises `RangeUnread` and other `ConnectionError`s.
    """
    most = _FIRST_ANSWER
    while True:
        part = _fetch(client, topic, partition, offset, read_committed, most)
        most = min(2 * most, _LONGEST_ANSWER)
        end = readable_end(part, read_committed=read_committed)
        asked = offset
        for batch, following in answered(part, offset):
            offset = following
            if batch is not None:
                yield batch
        if offset >= end or offset == asked:  # no progress: only compacted offsets are left up to the end
            return


def answered(part: FetchedPartition, offset: int) -> Iterator[tuple[LogBatch | None, int]]:
    """Yield an answer's batches from `offset` on, and the offset after each.

    None stands for a batch without data.
    """
    transactions = Transactions(part.aborted)
    for position, header in batch_headers(part.records):
        view = part.records[position : position + header.size]
        following = header.next_offset if header.magic == MAGIC else header.base_offset + 1
        is_data = header.magic != MAGIC or not (
            transactions.is_aborted(header, view) or header.is_control or not header.records
        )
        if following > offset:
            yield LogBatch(header, view) if is_data else None, following


def readable_end(part: FetchedPartition, *, read_committed: bool) -> int:
    """Return the end of the log for a consumer at this isolation level."""
    return part.last_stable_offset if read_committed and part.last_stable_offset >= 0 else part.high_watermark


def _fetch(
    client: ClusterClient, topic: TopicLeaders, partition: int, offset: int, read_committed: bool, most: int
) -> FetchedPartition:
    reply = fetch_once(
        client,
        topic.partitions[partition].leader,
        {(topic.name, partition): offset},
        {topic.name: topic.topic_id},
        FetchBounds(most, most),
        read_committed=read_committed,
    )
    part = only_part(reply)
    error = part if isinstance(part, int) else part.error
    if isinstance(part, int) or error:
        why = "the broker throttles sparkmirror" if error == ErrorCode.THROTTLING_QUOTA_EXCEEDED else error_name(error)
        raise RangeUnread(f"cluster {client.config.alias}: {topic.name}-{partition} at offset {offset}: {why}")
    return part
