"""A stretch of one partition's log, read as a consumer would: data batches, in order, from one leader.

Blocking; for a driver's duties. At read_committed transactions that were aborted are left out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

from sparkmirror.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.cluster.error_codes import error_name
from sparkmirror.wire import fetch
from sparkmirror.wire.batches import MAGIC, BatchHeader, batch_headers
from sparkmirror.wire.transactions import Transactions

_FIRST_ANSWER, _LONGEST_ANSWER = 128 << 10, 4 << 20
"""Bytes: often a few records are enough, and a long stretch is read with ever larger answers."""
_LONGEST_THROTTLE_S = 5.0


class RangeUnread(ConnectionError):
    """The log can't be read there now."""


class LogBatch(NamedTuple):
    """One data batch; `view` is all its bytes, and the next one may take their place."""

    header: BatchHeader
    view: memoryview


def read_batches(
    client: ClusterClient, topic: TopicLeaders, partition: int, offset: int, *, read_committed: bool
) -> Iterator[LogBatch]:
    """All data batches that hold `offset` or more, to the high watermark (or last stable offset) as it is then.

    Raises `RangeUnread` and other `ConnectionError`s. Stop iterating when there is enough.
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
        if offset >= end or offset == asked:  # or nothing but compacted offsets up to the end
            return


def answered(part: fetch.FetchedPartition, offset: int) -> Iterator[tuple[LogBatch | None, int]]:
    """Each batch of an answer that holds `offset` or more, and what follows it; None for one without data."""
    transactions = Transactions(part.aborted)
    for position, header in batch_headers(part.records):
        view = part.records[position : position + header.size]
        following = header.next_offset if header.magic == MAGIC else header.base_offset + 1
        is_data = header.magic != MAGIC or not (
            transactions.is_aborted(header, view) or header.is_control or not header.records
        )
        if following > offset:
            yield LogBatch(header, view) if is_data else None, following


def readable_end(part: fetch.FetchedPartition, *, read_committed: bool) -> int:
    """The offset at which a consumer stops for now."""
    return part.last_stable_offset if read_committed and part.last_stable_offset >= 0 else part.high_watermark


def _fetch(
    client: ClusterClient, topic: TopicLeaders, partition: int, offset: int, read_committed: bool, most: int
) -> fetch.FetchedPartition:
    leader = topic.partitions[partition].leader
    session = fetch.FetchSession(
        client.broker(leader).version(fetch.API_KEY, fetch.VERSIONS, "Fetch"),
        client_id=client.client_id,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=most,
        partition_max_bytes=most,
        isolation_level=int(read_committed),
        incremental=False,
    )
    session.want(topic.name, topic.topic_id, partition, fetch.FetchPosition(offset, -1, -1))
    head, parts = client.fetch(leader, session)
    if head.throttle_ms:
        time.sleep(min(head.throttle_ms / 1000, _LONGEST_THROTTLE_S))
    part = next(parts, None)
    error = head.error or (part.error if part is not None else 0)
    if part is None or error:
        why = error_name(error) if error else "the broker throttles us"
        raise RangeUnread(f"cluster {client.config.alias}: {topic.name}-{partition} at offset {offset}: {why}")
    return part
