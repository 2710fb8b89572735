"""The segments topic as a pump uses it: claims appended, claims read, the identity agreed.

What was read is kept in memory and only the rest is read at the next refresh; the topic is a log, so
that is sound as long as the topic is the same.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence

from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.offsets.segments import (
    Identity,
    Segment,
    home_partition,
    identity_record,
    read_record,
    segment_record,
)

_IDENTITY_PARTITION = 0
_UNIQUE_BYTES = 16

TargetPartition = tuple[bytes, int]
"""Topic id at the target, partition."""


class SegmentLog:
    """Claims and identity of one flow."""

    def __init__(self, log: TopicLog) -> None:
        self._log = log
        self._read_to: dict[int, int] = {}
        self._claims: dict[TargetPartition, dict[tuple[int, int], Segment]] = defaultdict(dict)
        self._proposals: list[tuple[int, Identity]] = []

    def refresh(self, partitions: Iterable[TargetPartition]) -> None:
        """Read what was appended to the homes of these target partitions since the last time."""
        count = self._log.partitions
        for home in {home_partition(topic_id, index, count) for topic_id, index in partitions}:
            self._read_home(home)

    def claims(self, topic_id: bytes, partition: int) -> Sequence[Segment]:
        """All claims read so far for a target partition, rivals' too."""
        return tuple(self._claims.get((topic_id, partition), {}).values())

    def claim(self, segments: Sequence[Segment]) -> None:
        """Make these claims durable. When this returns their first batches may be sent."""
        count = self._log.partitions
        homes: dict[int, list[Segment]] = defaultdict(list)
        for segment in segments:
            homes[home_partition(segment.target_topic_id, segment.partition, count)].append(segment)
        for home, ours in homes.items():
            self._log.append(home, [segment_record(segment) for segment in ours])

    def agree(self, cluster_id: str, proposal: Identity | None) -> Identity | None:
        """The identity that all who ask agree on: the proposal of the lowest offset for this cluster (invariant 7).

        With a proposal it is appended first if there is none yet, and what is then read back counts.
        """
        agreed = self._first_proposal(cluster_id)
        if agreed is None and proposal is not None:
            self._log.append(_IDENTITY_PARTITION, [identity_record(proposal, os.urandom(_UNIQUE_BYTES))])
            agreed = self._first_proposal(cluster_id)
        return agreed

    def _first_proposal(self, cluster_id: str) -> Identity | None:
        self._read_home(_IDENTITY_PARTITION)
        return next((one for _, one in sorted(self._proposals, key=_offset) if one.cluster_id == cluster_id), None)

    def _read_home(self, home: int) -> None:
        entries, self._read_to[home] = self._log.read(home, self._read_to.get(home, 0))
        for offset, key, value in entries:
            match read_record(key, value):
                case Identity() as identity:
                    self._proposals.append((offset, identity))
                case Segment() as segment:
                    claims = self._claims[segment.target_topic_id, segment.partition]
                    claims[segment.sequence, segment.incarnation] = segment


def _offset(proposal: tuple[int, Identity]) -> int:
    return proposal[0]
