"""One Fetch request and its answer, for all reading outside a pump.

Blocking. The request stands alone: the broker keeps no session. A broker that throttles a client answers at once, tells
for how long, and expects no request until then (KIP-219): the wait is over when the answer is returned.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.wire import fetch_session as fetch
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.fetch_session import FetchedPartition
from sparkmirror.kafka.wire.rpc import RpcConnection
from sparkmirror.kafka.wire.topic_partition import TopicPartition

_LONGEST_THROTTLE_S = 5.0
"""Longest wait for a broker that throttles.

The next request may wait at the broker then.
"""


class FetchBounds(NamedTuple):
    """Bounds on an answer's size, and the wait for records."""

    max_bytes: int
    partition_bytes: int
    """Bytes for each partition.

    A larger batch comes whole if its partition is the request's first.
    """
    wait_ms: int = 0
    """Longest wait for a record; 0: answer at once."""


class FetchReply(NamedTuple):
    """Answer to one Fetch request."""

    error: int
    """Kafka's error code for the request as a whole."""
    throttled: bool
    """True if the broker throttled the client: partitions may be missing, or empty."""
    parts: Iterator[FetchedPartition]


def fetch_once(
    client: ClusterClient,
    leader: int,
    offsets: Mapping[TopicPartition, int],
    topic_ids: Mapping[str, bytes],
    bounds: FetchBounds,
    *,
    read_committed: bool = False,
    leader_epoch: int = -1,
    last_epoch: int = -1,
) -> FetchReply:
    """Fetch each partition from its offset on.

    A leader in another epoch than `leader_epoch` refuses its partition; -1 is any epoch (KIP-320). `last_epoch` is the
    leader epoch of the batch before the offset; a leader whose log has another one answers where the logs part.

    The connection to the leader is closed after an error, and never used again (R11).
    """
    try:
        return fetch_over(
            client.broker(leader),
            client.client_id,
            offsets,
            topic_ids,
            bounds,
            read_committed=read_committed,
            leader_epoch=leader_epoch,
            last_epoch=last_epoch,
        )
    except ConnectionError:
        client.hang_up(leader)
        raise


def fetch_over(
    connection: RpcConnection,
    client_id: str,
    offsets: Mapping[TopicPartition, int],
    topic_ids: Mapping[str, bytes],
    bounds: FetchBounds,
    *,
    read_committed: bool = False,
    leader_epoch: int = -1,
    last_epoch: int = -1,
) -> FetchReply:
    """Fetch over the caller's own connection, as `fetch_once` does."""
    session = fetch.FetchSession(
        connection.version(fetch.API_KEY, fetch.VERSIONS, "Fetch"),
        client_id=client_id,
        max_wait_ms=bounds.wait_ms,
        min_bytes=1 if bounds.wait_ms else 0,
        max_bytes=bounds.max_bytes,
        partition_max_bytes=bounds.partition_bytes,
        isolation_level=int(read_committed),
        incremental=False,
    )
    for (topic, partition), offset in offsets.items():
        session.want(topic, topic_ids[topic], partition, fetch.FetchPosition(offset, leader_epoch, last_epoch))
    request = session.request(0)
    head, parts = session.read(connection.exchange_raw([request], session.bound))
    if head.throttle_ms:
        time.sleep(min(head.throttle_ms / 1000, _LONGEST_THROTTLE_S))
    return FetchReply(head.error, bool(head.throttle_ms), _each_once(parts, offsets))


def _each_once(parts: Iterable[FetchedPartition], asked: Iterable[TopicPartition]) -> Iterator[FetchedPartition]:
    """Yield the parts for partitions that were asked for, each partition's first one."""
    left = set(asked)
    for part in parts:
        if (part.topic, part.partition) in left:
            left.remove((part.topic, part.partition))
            yield part


def only_part(reply: FetchReply) -> FetchedPartition | int:
    """Return the answer about the request's only partition, or Kafka's error code.

    Without an answer about the partition the broker throttles the client. An offset outside the log is no error here.
    """
    part = next(reply.parts, None)
    if part is None:
        return reply.error or ErrorCode.THROTTLING_QUOTA_EXCEEDED
    error = reply.error or part.error
    return part if error in (ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE) else error
