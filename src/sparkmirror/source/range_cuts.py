"""Ranges of offsets cut for tasks, and bounded for a micro-batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import ceil

from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.source.source_logs import OffsetRange


def cut(ranges: Sequence[OffsetRange], fewest: int | None, most: int | None) -> list[OffsetRange]:
    """Return the ranges without empty ones, cut into about `fewest` equal parts.

    There are more parts if a part would have more than `most` offsets.
    """
    full = [each for each in ranges if each.first < each.end]
    total = sum(each.end - each.first for each in full)
    parts: list[OffsetRange] = []
    for each in full:
        size = each.end - each.first
        count = max(round((fewest or 0) * size / total), 1)
        if most is not None:
            count = max(count, ceil(size / most))
        count = min(count, size)
        bounds = [each.first + size * number // count for number in range(count + 1)]
        parts += [replace(each, first=first, end=end) for first, end in pairwise(bounds)]
    return parts


def bounded(
    start: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], most: int
) -> dict[TopicPartition, int]:
    """Return ends with about `most` offsets in all, each partition in proportion.

    A partition with offsets left gets one at least, as by Spark's Kafka source: none waits for ever.
    """
    left = {at: max(end - start.get(at, end), 0) for at, end in ends.items()}
    total = sum(left.values())
    if total <= most:
        return dict(ends)
    return {at: end if not left[at] else end - left[at] + max(left[at] * most // total, 1) for at, end in ends.items()}
