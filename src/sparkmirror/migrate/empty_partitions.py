"""Places in partitions that have no record, and of which nothing was ever copied.

Java's consumers commit 0 there. A pump's report tells the place, and is deleted after an hour or two.
"""

from __future__ import annotations

from collections.abc import Mapping

from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.list_offsets import EARLIEST, LATEST, offsets_by_leader
from sparkmirror.kafka.wire.topic_partition import TopicPartition


def first_places(
    source: ClusterClient, target: ClusterClient, copies: Mapping[TopicPartition, TopicPartition]
) -> dict[TopicPartition, int]:
    """Return where the first record of empty source partitions will be in the copy.

    `copies` are the copies' partitions by the source's; nothing has been copied there. Partitions with a record, or
    without a copy, are left out. Raises `ConnectionError`s.
    """
    if not copies:
        return {}
    # The target first: a record that is written and copied in between lies below an end that is read later.
    ends_there = offsets_by_leader(target, copies.values(), LATEST)
    starts = offsets_by_leader(source, copies, EARLIEST)
    ends = offsets_by_leader(source, copies, LATEST)
    return {
        here: ends_there[copy]
        for here, copy in copies.items()
        if copy in ends_there and here in starts and starts[here] == ends.get(here)
    }
