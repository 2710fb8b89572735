"""Retract claims on records that the target's log has deleted (invariant 3).

The retraction keeps the segments topic bounded. The newest claim that begins below the log's start stays: that claim
covers the records at the log's start and after.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from sparkmirror.chunks import chunks
from sparkmirror.config import FlowConfig
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import Claim, Retracted, TargetPartition, segments_topic
from sparkmirror.exact.durable.place_expiry import delete_expired
from sparkmirror.exact.durable.query_places import plans_topic
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.list_offsets import EARLIEST, list_offsets
from sparkmirror.kafka.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.kafka.wire.error_codes import ErrorCode

_AT_ONCE = 10_000
"""Number of claims to retract at a time."""
_WITHOUT_QUERIES = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED}
"""Errors of the plans topic for a flow without queries."""


class ClaimExpiry:
    """Duty that retracts one flow's expired claims, and deletes its queries' places.

    `remotes` gives the target topics that the flow copies into.
    """

    def __init__(self, flow: FlowConfig, remotes: Callable[[], Iterable[str]]) -> None:
        self._remotes = remotes
        self._client = ClusterClient(flow.target, f"{flow.name}|sparkmirror-tidy")
        self._topic = segments_topic(flow.source.alias)
        self._plans = TopicLog(self._client, plans_topic(flow.source.alias), may_be_absent=True)
        self._placed: Mapping[TargetPartition, int] = {}
        """Starts of the logs below which no places are left."""

    def run(self) -> None:
        """Read where all target logs start, and retract claims below.

        Raises `ConnectionError`.
        """
        starts = log_starts(self._client, set(self._remotes()))
        retract_expired(ClaimLog(TopicLog(self._client, self._topic)), starts)
        if starts != self._placed:
            try:
                delete_expired(self._plans, starts)
            except LogUnavailable as error:
                if error.code not in _WITHOUT_QUERIES:
                    raise
            self._placed = starts

    def close(self) -> None:
        self._client.close()


class _Columns:
    """One target partition's confirmed claims, 24 bytes each."""

    __slots__ = ("downstreams", "incarnations", "sequences")

    def __init__(self) -> None:
        self.sequences, self.incarnations, self.downstreams = array("q"), array("q"), array("q")

    def add(self, claim: Claim) -> None:
        self.sequences.append(claim.sequence)
        self.incarnations.append(claim.incarnation)
        self.downstreams.append(claim.downstream)


def log_starts(client: ClusterClient, topics: Iterable[str]) -> dict[TargetPartition, int]:
    """Return where each partition's log starts in these topics.

    Partitions without a leader, or with an error, are left out.
    """
    starts: dict[TargetPartition, int] = {}
    described = client.metadata(topics)
    by_leader: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for topic in described.values():
        for index, partition in topic.partitions.items():
            if partition.leader >= 0:
                by_leader[partition.leader][topic.name].append(index)
    for leader, partitions in by_leader.items():
        for (name, index), listed in list_offsets(client, leader, partitions, EARLIEST).items():
            if not listed.error:
                starts[described[name].topic_id, index] = listed.offset
    return starts


def retract_expired(claim_log: ClaimLog, log_starts: Mapping[TargetPartition, int]) -> int:
    """Retract confirmed claims wholly below their log's start. Return how many.

    `log_starts` has the starts by target topic id and partition; claims of further partitions are left alone.
    """
    retracted = 0
    for home in range(claim_log.homes):
        for partition, claims in _read(claim_log, home, log_starts).items():
            doomed = _below(partition, claims, log_starts[partition])
            for chunk in chunks(doomed, _AT_ONCE):
                claim_log.revise((), chunk)
            retracted += len(doomed)
    return retracted


def _read(
    claim_log: ClaimLog, home: int, log_starts: Mapping[TargetPartition, int]
) -> Mapping[TargetPartition, _Columns]:
    columns: dict[TargetPartition, _Columns] = defaultdict(_Columns)
    gone: set[tuple[TargetPartition, int, int]] = set()
    for record in claim_log.history(home):
        partition = record.target_topic_id, record.partition
        if log_starts.get(partition, 0) <= 0:
            continue
        if isinstance(record, Retracted):
            gone.add((partition, record.sequence, record.incarnation))
        elif record.confirmed and record.downstream < log_starts[partition]:
            columns[partition].add(record)
    for partition, claims in columns.items():
        kept = _Columns()
        for sequence, incarnation, downstream in zip(
            claims.sequences, claims.incarnations, claims.downstreams, strict=True
        ):
            if (partition, sequence, incarnation) not in gone:
                kept.sequences.append(sequence)
                kept.incarnations.append(incarnation)
                kept.downstreams.append(downstream)
        columns[partition] = kept
    return columns


def _below(partition: TargetPartition, claims: _Columns, log_start: int) -> list[Retracted]:
    """Return retractions for all claims but the newest, which covers the log's start.

    A claim that was confirmed twice is in the columns twice.
    """
    newest = max(claims.sequences, default=0)
    doomed = {name for name in zip(claims.sequences, claims.incarnations, strict=True) if name[0] < newest}
    return [Retracted(partition[0], partition[1], sequence, incarnation) for sequence, incarnation in sorted(doomed)]
