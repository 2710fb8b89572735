"""Leaders' log ends in many partitions, with the high watermarks.

A high watermark may lag behind the log: the records above are appended, and no consumer sees them yet. So a log stands
still if end and high watermark are the same number, in two readings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.list_offsets import (
    CONSUMER,
    DEBUG_CONSUMER,
    LATEST,
    led_partitions,
    list_offsets,
    topic_chunks,
)
from sparkmirror.kafka.wire.topic_partition import TopicPartition

APART_S = 0.1
"""Shortest time between the two readings, in seconds."""


class LogEnd(NamedTuple):
    """One partition's end, by its leader."""

    log_end: int
    """Offset of the next record that is appended (replica id -2)."""
    high_watermark: int
    """Offset after the last record that consumers see."""


class LogEnds(NamedTuple):
    """Many partitions' ends at one moment."""

    ends: Mapping[TopicPartition, LogEnd]
    unknown: Mapping[TopicPartition, str]
    """Partitions without an answer, with the reason: no leader, or its refusal."""


class SettledEnds(NamedTuple):
    """Ends of logs that stood still between two readings."""

    ends: Mapping[TopicPartition, int]
    moving: Mapping[TopicPartition, str]
    """Partitions that did not stand still, or whose end is not known, with the reason."""


def read_log_ends(client: ClusterClient, partitions: Iterable[TopicPartition]) -> LogEnds:
    """Ask each partition's leader for the log end, then for the high watermark.

    A leader that can't be reached makes its partitions unknown. Raises `ClusterUnreachable` if no broker tells the
    leaders.
    """
    wanted = set(partitions)
    ends: dict[TopicPartition, LogEnd] = {}
    unknown: dict[TopicPartition, str] = {}
    led = led_partitions(client, wanted)
    for leader, its in led.items():
        for chunk in topic_chunks(its):
            try:
                log_ends = list_offsets(client, leader, chunk, LATEST, replica_id=DEBUG_CONSUMER)
                watermarks = list_offsets(client, leader, chunk, LATEST, replica_id=CONSUMER)
            except ConnectionError as error:
                reason = f"its leader, broker {leader}, doesn't answer: {' '.join(str(error).split())}"
                unknown |= {(topic, index): reason for topic, indexes in chunk.items() for index in indexes}
                continue
            for partition, end in log_ends.items():
                watermark = watermarks.get(partition)
                if watermark is not None and not (end.error or watermark.error):
                    ends[partition] = LogEnd(end.offset, watermark.offset)
                else:
                    unknown[partition] = error_name(end.error or (watermark.error if watermark else 0))
    unknown |= dict.fromkeys(wanted - ends.keys() - unknown.keys(), "it has no leader now")
    return LogEnds(ends, unknown)


def settled(before: LogEnds, after: LogEnds) -> SettledEnds:
    """Compare two readings that are at least `APART_S` apart."""
    moving = dict(before.unknown) | dict(after.unknown)
    ends: dict[TopicPartition, int] = {}
    for partition, end in after.ends.items():
        first = before.ends.get(partition)
        if first is None:
            continue
        if first.log_end != end.log_end:
            moving[partition] = f"its log went from {first.log_end} to {end.log_end}"
        elif end.high_watermark != end.log_end:
            moving[partition] = (
                f"its log ends at {end.log_end}, and its followers have it up to {end.high_watermark} only"
            )
        else:
            ends[partition] = end.log_end
    return SettledEnds(ends, moving)
