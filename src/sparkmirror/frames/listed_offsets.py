"""Many partitions' log offsets, as their leaders say. Blocking."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.list_offsets import LATEST, list_offsets
from sparkmirror.kafka.cluster.log_range import RangeUnread
from sparkmirror.kafka.wire.topic_partition import TopicPartition

Offsets = dict[TopicPartition, int]

ROLE = "sparkmirror-verify"
_TRIES = 10
_PAUSE_S = 1.0


def reads_transactions(flow: FlowConfig) -> bool:
    """True if a copy has transactions of its own, from turns of the opposite flow."""
    return bool(flow.turn) and flow.fetch.isolation_level == "read_committed"


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Group partitions by topic, as requests need them."""
    grouped: dict[str, list[int]] = defaultdict(list)
    for topic, partition in partitions:
        grouped[topic].append(partition)
    return grouped


def by_leader(
    client: ClusterClient, partitions: Iterable[TopicPartition]
) -> Iterator[tuple[int, list[TopicPartition]]]:
    """Group partitions by their present leader.

    Raises `ConnectionError` if a partition no longer exists.
    """
    groups: dict[int, list[TopicPartition]] = defaultdict(list)
    asked = list(partitions)
    topics = client.metadata(topic for topic, _ in asked) if asked else {}
    for topic, partition in asked:
        known = topics[topic].partitions
        if partition not in known:
            raise RangeUnread(f"{client.config.alias}: {topic}-{partition} is no more")
        groups[known[partition].leader].append((topic, partition))
    return iter(groups.items())


def listed(
    client: ClusterClient, partitions: Iterable[TopicPartition], which: int, isolation_level: int = 0
) -> Offsets:
    """Return each partition's offset: `EARLIEST`, `LATEST` or at a time.

    Raises `ConnectionError`.
    """
    offsets: Offsets = {}
    for leader, group in by_leader(client, partitions):
        answer = list_offsets(client, leader, by_topic(group), which, isolation_level=isolation_level)
        for (topic, partition), offset in answer.items():
            if offset.error:
                raise RangeUnread(f"{client.config.alias}: {topic}-{partition}: {error_name(offset.error)}")
            offsets[topic, partition] = offset.offset
    return offsets


def ends_now(config: ClusterConfig, partitions: Iterable[TopicPartition], isolation_level: int = 0) -> Offsets:
    """Return these logs' ends; missing partitions are left out.

    Raises `ClusterUnreachable`.
    """
    asked = list(partitions)
    if not asked:
        return {}
    client = ClusterClient(config, ROLE)
    try:
        for _ in range(_TRIES - 1):
            try:
                return _ends(client, asked, isolation_level)
            except ConnectionError:
                client.hang_up()
                time.sleep(_PAUSE_S)
        return _ends(client, asked, isolation_level)
    except ConnectionError as error:
        raise ClusterUnreachable(f"cluster {config.alias}: {error}") from error
    finally:
        client.close()


def _ends(client: ClusterClient, partitions: list[TopicPartition], isolation_level: int) -> Offsets:
    topics = client.metadata(topic for topic, _ in partitions)
    there = [(topic, partition) for topic, partition in partitions if partition in topics[topic].partitions]
    return listed(client, there, LATEST, isolation_level)
