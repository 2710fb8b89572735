"""Keeping the segments topic bounded: claims on what the target's log no longer has are retracted (invariant 3).

The newest claim that begins below the log's start stays: it covers what comes after it.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.list_offsets import EARLIEST, list_offsets
from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.config import FlowConfig
from sparkmirror.durable.claim_log import SegmentLog, TargetPartition
from sparkmirror.durable.claims import Retracted, Segment, segments_topic

_AT_ONCE = 10_000


class SegmentsTidy:
    """The duty, for one flow. `remotes` gives the target topics that it copies into."""

    def __init__(self, flow: FlowConfig, remotes: Callable[[], Iterable[str]]) -> None:
        self._remotes = remotes
        self._client = ClusterClient(flow.target, f"{flow.name}|sparkmirror-tidy")
        self._topic = segments_topic(flow.source.alias)

    def run(self) -> None:
        """Look at all logs' starts; raises `ConnectionError`."""
        starts = log_starts(self._client, set(self._remotes()))
        retract_expired(SegmentLog(TopicLog(self._client, self._topic)), starts)

    def close(self) -> None:
        """Hang up."""
        self._client.close()


class _Columns:
    """Confirmed claims of one target partition, 24 bytes each."""

    __slots__ = ("downstreams", "incarnations", "sequences")

    def __init__(self) -> None:
        self.sequences, self.incarnations, self.downstreams = array("q"), array("q"), array("q")

    def add(self, claim: Segment) -> None:
        self.sequences.append(claim.sequence)
        self.incarnations.append(claim.incarnation)
        self.downstreams.append(claim.downstream)


def log_starts(client: ClusterClient, topics: Iterable[str]) -> dict[TargetPartition, int]:
    """Where the logs of these topics start; partitions without a leader are left out."""
    found: dict[TargetPartition, int] = {}
    described = client.metadata(topics)
    by_leader: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for topic in described.values():
        for index, partition in topic.partitions.items():
            if partition.leader >= 0:
                by_leader[partition.leader][topic.name].append(index)
    for leader, partitions in by_leader.items():
        for (name, index), listed in list_offsets(client, leader, partitions, EARLIEST).items():
            if not listed.error:
                found[described[name].topic_id, index] = listed.offset
    return found


def retract_expired(segments: SegmentLog, log_starts: Mapping[TargetPartition, int]) -> int:
    """Retract all confirmed claims that lie wholly below their log's start; returns how many they were.

    `log_starts`: by target topic id and partition; others are left alone.
    """
    retracted = 0
    for home in range(segments.homes):
        for where, claims in _read(segments, home, log_starts).items():
            doomed = _below(where, claims, log_starts[where])
            for start in range(0, len(doomed), _AT_ONCE):
                segments.settle((), doomed[start : start + _AT_ONCE])
            retracted += len(doomed)
    return retracted


def _read(
    segments: SegmentLog, home: int, log_starts: Mapping[TargetPartition, int]
) -> Mapping[TargetPartition, _Columns]:
    found: dict[TargetPartition, _Columns] = defaultdict(_Columns)
    gone: set[tuple[TargetPartition, int, int]] = set()
    for one in segments.history(home):
        where = one.target_topic_id, one.partition
        if log_starts.get(where, 0) <= 0:
            continue
        if isinstance(one, Retracted):
            gone.add((where, one.sequence, one.incarnation))
        elif one.confirmed and one.downstream < log_starts[where]:
            found[where].add(one)
    for where, claims in found.items():
        kept = _Columns()
        for sequence, incarnation, downstream in zip(
            claims.sequences, claims.incarnations, claims.downstreams, strict=True
        ):
            if (where, sequence, incarnation) not in gone:
                kept.sequences.append(sequence)
                kept.incarnations.append(incarnation)
                kept.downstreams.append(downstream)
        found[where] = kept
    return found


def _below(where: TargetPartition, claims: _Columns, log_start: int) -> list[Retracted]:
    """All but the newest: the log's start lies in that one. A claim that was confirmed twice stands there twice."""
    newest = max(claims.sequences, default=0)
    doomed = {name for name in zip(claims.sequences, claims.incarnations, strict=True) if name[0] < newest}
    return [Retracted(where[0], where[1], sequence, incarnation) for sequence, incarnation in sorted(doomed)]
