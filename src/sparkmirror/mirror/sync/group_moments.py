"""Times when groups' offsets were last at the target, partition by partition.

A consumer that keeps up with its producers is always a little ahead of the copy, in some partition. So a turn is good
for a partition if the copy has reached the group's offset from that turn, or from the turn before. Each partition's
last good turn counts by itself.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from sparkmirror.kafka.wire.topic_partition import TopicPartition


class GroupMoments:
    """Times of one duty's last good turns, for each group and source partition."""

    def __init__(self) -> None:
        self._offsets: dict[str, Mapping[TopicPartition, int]] = {}
        """Offsets from the last turn."""
        self._good_ms: dict[str, dict[TopicPartition, int]] = {}

    def turn(
        self, offsets: Mapping[str, Mapping[TopicPartition, int]], reached: Mapping[TopicPartition, int]
    ) -> dict[str, int]:
        """Take in a turn; return when each group's offsets were last at the target, in ms.

        Both parameters have source offsets: the next offsets that each group reads, and the offset up to which each
        partition is copied, if that is known. A group with a partition without a good turn is left out.
        """
        now_ms = int(time.time() * 1000)
        good_ms: dict[str, dict[TopicPartition, int]] = {}
        for group, positions in offsets.items():
            before, last_good_ms = self._offsets.get(group, {}), self._good_ms.get(group, {})
            good_ms[group] = {}
            for partition, offset in positions.items():
                if reached.get(partition, -1) >= min(offset, before.get(partition, offset)):
                    good_ms[group][partition] = now_ms
                elif partition in last_good_ms:
                    good_ms[group][partition] = last_good_ms[partition]
        self._offsets, self._good_ms = dict(offsets), good_ms
        return {
            group: min(good_ms[group].values())
            for group, positions in offsets.items()
            if positions and len(good_ms[group]) == len(positions)
        }
