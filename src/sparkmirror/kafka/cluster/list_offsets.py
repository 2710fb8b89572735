"""ListOffsets: where a leader's logs start and end."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.only_asked import only_asked
from sparkmirror.kafka.wire import offsets_format
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.offsets_format import OffsetsAsk
from sparkmirror.kafka.wire.topic_partition import TopicPartition

EARLIEST = -2
LATEST = -1

CONSUMER = -1
"""Value in `replica_id` for which the log end is the high watermark."""
DEBUG_CONSUMER = -2
"""Value in `replica_id` for the leader's own log end.

Source: `exactness.md`, reading the position.
"""

PARTITIONS_PER_REQUEST = 2000
_MOVING = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH})
_MOVING_S, _PAUSE_S = 2.0, 0.1
"""Longest time for repeated questions about moving partitions, and the pause."""


class ListedOffset(NamedTuple):
    """An offset, or Kafka's error code."""

    offset: int
    error: int


def list_offsets(
    client: ClusterClient,
    leader: int,
    partitions: Mapping[str, Sequence[int]],
    timestamp: int,
    *,
    replica_id: int = CONSUMER,
    isolation_level: int = 0,
) -> dict[TopicPartition, ListedOffset]:
    """Ask `leader` for one offset in each partition.

    `timestamp` is EARLIEST, LATEST or milliseconds. At isolation level 1 (read_committed) LATEST is the last stable
    offset.
    """
    ask = OffsetsAsk(replica_id, isolation_level, timestamp, client.config.request_timeout_ms)
    try:
        connection = client.broker(leader)
        version = connection.version(offsets_format.API_KEY, offsets_format.VERSIONS, "ListOffsets")
        request = offsets_format.encode(version, 0, client.client_id.encode(), ask, partitions)
        answer = offsets_format.decode(version, connection.exchange_raw([request]))
        listed = {(part.topic, part.partition): ListedOffset(part.offset, part.error) for part in answer}
        asked = ((topic, index) for topic, indexes in partitions.items() for index in indexes)
        return only_asked(listed, asked, "ListOffsets")
    except ConnectionError:
        client.hang_up(leader)
        raise


class KnownLeaders:
    """Many partitions' leaders, as last read, for a caller that asks often.

    Reading them takes more than all else in the question. They are read again for other partitions, after an error, and
    while a partition has no leader.
    """

    def __init__(self) -> None:
        self._partitions: frozenset[TopicPartition] = frozenset()
        self._led: Mapping[int, Sequence[TopicPartition]] = {}

    def of(self, client: ClusterClient, partitions: Set[TopicPartition]) -> Mapping[int, Sequence[TopicPartition]]:
        """Return the partitions by leader; partitions without a leader are left out."""
        if partitions != self._partitions or not self._led.keys() <= set(client.brokers):
            led = led_partitions(client, partitions)
            complete = sum(map(len, led.values())) == len(partitions)
            self._partitions, self._led = (frozenset(partitions), led) if complete else (frozenset(), {})
            return led
        return self._led

    def forget(self) -> None:
        """Have the leaders read again."""
        self._partitions = frozenset()


def offsets_by_leader(
    client: ClusterClient,
    partitions: Iterable[TopicPartition],
    timestamp: int,
    *,
    read_committed: bool = False,
    replica_id: int = CONSUMER,
    known: KnownLeaders | None = None,
) -> dict[TopicPartition, int]:
    """Ask each partition's leader for one offset, as `list_offsets` does.

    Partitions that are missing, have no leader, or that the leader refuses are left out. A partition whose leader moves
    is asked for again for a moment. Without `known` the leaders are read first.
    """
    offsets: dict[TopicPartition, int] = {}
    wanted, until = set(partitions), time.monotonic() + _MOVING_S
    known = known or KnownLeaders()
    while wanted:
        moving: set[TopicPartition] = set()
        try:
            for leader, led in known.of(client, wanted).items():
                for chunk in topic_chunks(led):
                    listed = list_offsets(
                        client,
                        leader,
                        chunk,
                        timestamp,
                        replica_id=replica_id,
                        isolation_level=int(read_committed),
                    )
                    offsets |= {partition: answer.offset for partition, answer in listed.items() if not answer.error}
                    moving |= {partition for partition, answer in listed.items() if answer.error in _MOVING}
        except ConnectionError:
            known.forget()
            raise
        if not wanted <= offsets.keys():
            known.forget()
        wanted = moving if time.monotonic() < until else set()
        if wanted:
            time.sleep(_PAUSE_S)
    return offsets


def led_partitions(client: ClusterClient, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
    """Read the partitions by leader; partitions without a leader are left out."""
    wanted = sorted(partitions)
    leaders = client.metadata({topic for topic, _ in wanted}) if wanted else {}
    led: dict[int, list[TopicPartition]] = {}
    for topic, index in wanted:
        partition = leaders[topic].partitions.get(index)
        if partition is not None and partition.leader >= 0:
            led.setdefault(partition.leader, []).append((topic, index))
    return led


def topic_chunks(partitions: Sequence[TopicPartition]) -> Iterator[dict[str, list[int]]]:
    """Yield the partitions' indexes by topic, for one request each."""
    for start in range(0, len(partitions), PARTITIONS_PER_REQUEST):
        topics: dict[str, list[int]] = {}
        for topic, index in partitions[start : start + PARTITIONS_PER_REQUEST]:
            topics.setdefault(topic, []).append(index)
        yield topics
