"""Log ends that stand still: where copying may end for good (M4).

A high watermark is no such end: records above it may become readable later, and no record may come after the end.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import NamedTuple

from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.list_offsets import DEBUG_CONSUMER, LATEST, offsets_by_leader
from sparkmirror.kafka.cluster.log_ends import APART_S
from sparkmirror.kafka.wire.topic_partition import TopicPartition

PATIENCE_S = 3.0
"""Seconds within which logs must come to rest.

Replicas, and the end of a transaction, may take a moment.
"""


class StillEnds(NamedTuple):
    """Ends of logs at rest, and why other logs are not at rest."""

    ends: Mapping[TopicPartition, int]
    moving: Mapping[TopicPartition, str]
    """Reason for each partition whose end is none for good, in one line."""


def still_ends(
    client: ClusterClient, partitions: Collection[TopicPartition], patience_s: float = PATIENCE_S
) -> StillEnds:
    """Read the leaders' log ends, with replica id -2, until they stand still.

    An end counts if two readings are equal, all replicas in sync have it (the high watermark), and no transaction is
    open (the last stable offset). Raises `ConnectionError`s.
    """
    until = time.monotonic() + patience_s
    while True:
        ends = _look(client, partitions)
        if not ends.moving or time.monotonic() >= until:
            return ends


def _look(client: ClusterClient, partitions: Collection[TopicPartition]) -> StillEnds:
    before = offsets_by_leader(client, partitions, LATEST, replica_id=DEBUG_CONSUMER)
    time.sleep(APART_S)
    marks = offsets_by_leader(client, partitions, LATEST)
    stable = offsets_by_leader(client, partitions, LATEST, read_committed=True)
    after = offsets_by_leader(client, partitions, LATEST, replica_id=DEBUG_CONSUMER)
    ends: dict[TopicPartition, int] = {}
    moving: dict[TopicPartition, str] = {}
    for partition in partitions:
        if any(partition not in read for read in (before, marks, stable, after)):
            moving[partition] = "it has no leader now"
        elif before[partition] != after[partition]:
            moving[partition] = f"a producer still writes to it (offset {before[partition]} to {after[partition] - 1})"
        elif marks[partition] < after[partition]:
            moving[partition] = f"replicas have only confirmed offset {marks[partition]} of {after[partition]}"
        elif stable[partition] < after[partition]:
            moving[partition] = f"a transaction is open from offset {stable[partition]} on"
        else:
            ends[partition] = after[partition]
    return StillEnds(ends, moving)
