"""One partition's data batches, read in order, as by a consumer.

Blocking; for a driver's duties. At read_committed aborted transactions are left out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

from sparkmirror.errors import ClusterTrouble
from sparkmirror.kafka.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.fetch_once import FetchBounds, fetch_once, only_part
from sparkmirror.kafka.wire.batches import MAGIC, BatchHeader, batch_headers
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.fetch_session import FetchedPartition
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.kafka.wire.transactions import Transactions

_FIRST_ANSWER, _LONGEST_ANSWER = 128 << 10, 4 << 20
"""The first and the largest answer's sizes, in bytes; answers double in size.

Often a few records are enough; a long range takes fewer requests with large answers.
"""


PATIENCE_S, PAUSE_S = 10.0, 0.5
"""Longest time without a batch below the log's end, and the pause between answers.

Old data may be slow to come (tiered storage, and its quota for fetches).
"""


class RangeUnread(ClusterTrouble):
    """Error for a log that can't be read now at the wanted offset."""


class RangeForbidden(RangeUnread):
    """Error for a log that the principal may not read."""


def unread(error: int, words: str) -> RangeUnread:
    """Return the exception for a broker's error code."""
    return (RangeForbidden if error == ErrorCode.TOPIC_AUTHORIZATION_FAILED else RangeUnread)(words)


class RangeDamaged(RangeUnread):
    """Error for a log with bytes that are no batch."""


class LogBatch(NamedTuple):
    """One data batch; `view` is all its bytes, until the next batch is read."""

    header: BatchHeader
    view: memoryview


def read_batches(
    client: ClusterClient, topic: TopicLeaders, partition: int, offset: int, *, read_committed: bool
) -> Iterator[LogBatch]:
    """Yield the data batches with `offset` or later offsets, to the present log end.

    The log end is the high watermark, or at read_committed the last stable offset. The caller may stop iterating at any
    time. Raises `RangeUnread`, also if no batch comes below the log end, and other `ConnectionError`s.
    """
    most = _FIRST_ANSWER
    leader = topic.partitions[partition].leader
    patience = Patience()
    while True:
        part = _fetch(client, topic, partition, offset, read_committed, most)
        most = min(2 * most, _LONGEST_ANSWER)
        end = readable_end(part, read_committed=read_committed)
        asked = offset
        try:
            for batch, following in answered(part, offset):
                offset = following
                if batch is not None:
                    yield batch
        except ValueError as error:
            raise RangeDamaged(f"{_place(client, topic, partition, offset)}: {error}") from error
        if offset >= end:
            return
        if offset > asked:
            patience = Patience()
        elif read_committed and is_cleaned_away(client, leader, (topic.name, partition), topic.topic_id, offset, part):
            return
        else:
            patience.wait(_place(client, topic, partition, offset), end)


def is_cleaned_away(
    client: ClusterClient,
    leader: int,
    partition: TopicPartition,
    topic_id: bytes,
    offset: int,
    part: FetchedPartition,
) -> bool:
    """Tell whether compaction left no batch from `offset` to the last stable offset.

    The open transaction at the last stable offset is the proof, if it comes first at read_uncommitted. Up to the high
    watermark a log has batches: its last batch is never cleaned. Raises `ConnectionError`s.
    """
    end = part.last_stable_offset
    if not offset < end < part.high_watermark:
        return False
    bounds = FetchBounds(_FIRST_ANSWER, _FIRST_ANSWER)
    answer = only_part(fetch_once(client, leader, {partition: offset}, {partition[0]: topic_id}, bounds))
    try:
        first = None if isinstance(answer, int) else next(batch_headers(answer.records), None)
    except ValueError:
        return False
    return first is not None and first[1].magic == MAGIC and first[1].base_offset >= end


class Patience:
    """Waits for answers with batches, from one batch to the next."""

    def __init__(self) -> None:
        self._since: float | None = None

    def wait(self, place: str, end: int) -> None:
        """Pause after an answer without a batch. Raises `RangeUnread` at last."""
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        if now - self._since >= PATIENCE_S:
            raise RangeUnread(f"{place}: no record comes, though its end is {end}")
        time.sleep(PAUSE_S)


def answered(part: FetchedPartition, offset: int) -> Iterator[tuple[LogBatch | None, int]]:
    """Yield an answer's batches from `offset` on, and the offset after each.

    None stands for a batch without data. Raises `ValueError` for bytes that can't be a batch.
    """
    transactions = Transactions(part.aborted)
    for position, header in batch_headers(part.records):
        view = part.records[position : position + header.size]
        following = header.next_offset
        is_data = header.magic != MAGIC or not (
            transactions.is_aborted(header, view) or header.is_control or not header.records
        )
        if following > offset:
            yield LogBatch(header, view) if is_data else None, following


def readable_end(part: FetchedPartition, *, read_committed: bool) -> int:
    """Return where the log ends for a consumer at this isolation level."""
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
        raise unread(error, f"{_place(client, topic, partition, offset)}: {why}")
    return part


def _place(client: ClusterClient, topic: TopicLeaders, partition: int, offset: int) -> str:
    return f"cluster {client.config.alias}: {topic.name}-{partition} at offset {offset}"
