"""Logs that stand still, read twice."""

from __future__ import annotations

import time
from collections.abc import Iterable

from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.log_ends import APART_S, SettledEnds, read_log_ends, settled
from sparkmirror.kafka.wire.topic_partition import TopicPartition


def settled_ends(client: ClusterClient, partitions: Iterable[TopicPartition]) -> SettledEnds:
    """Read the ends twice, and tell which logs stand still."""
    wanted = set(partitions)
    before = read_log_ends(client, wanted)
    time.sleep(APART_S)
    return settled(before, read_log_ends(client, wanted))
