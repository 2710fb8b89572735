"""Next records in many of a cluster's partitions, for a comparison.

A leader that doesn't answer costs only the led partitions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sparkmirror.kafka.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.kafka.cluster.list_offsets import EARLIEST, offsets_by_leader
from sparkmirror.kafka.cluster.log_range import LogBatch, RangeUnread
from sparkmirror.kafka.cluster.log_samples import batches_from
from sparkmirror.kafka.wire.batches import TIMESTAMP_TYPE_BIT
from sparkmirror.kafka.wire.pieces import readable_pieces
from sparkmirror.kafka.wire.records import NotChanged, RecordChange
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.migrate.sample_comparison import SampleRecord


@dataclass(frozen=True, slots=True)
class Samples:
    """Records by partition; a partition has records or a reason."""

    samples: dict[TopicPartition, list[SampleRecord]] = field(default_factory=dict)
    """Records in order: as many as asked for, or all up to the log's end."""
    reasons: dict[TopicPartition, str] = field(default_factory=dict)
    """Reasons why partitions can't be read."""
    deleted: set[TopicPartition] = field(default_factory=set)
    """Partitions whose records at the wanted offset are deleted."""


def _unchanged(_: TopicPartition) -> RecordChange | None:
    return None


class SampleReader:
    """Reader for one cluster; `change` returns the copy's change to a partition."""

    def __init__(
        self,
        client: ClusterClient,
        *,
        read_committed: bool = False,
        change: Callable[[TopicPartition], RecordChange | None] = _unchanged,
    ) -> None:
        self._client = client
        self._read_committed = read_committed
        self._change = change

    def read(self, wanted: Mapping[TopicPartition, int], counts: Mapping[TopicPartition, int]) -> Samples:
        """Read `counts` records of each partition from the wanted offset on.

        Raises `ClusterUnreachable` if no broker tells the leaders.
        """
        taken = Samples(samples={at: [] for at in wanted if not counts[at]})
        asked = {at: offset for at, offset in wanted.items() if counts[at]}
        topics = self._client.metadata({topic for topic, _ in asked}) if asked else {}
        by_leader: dict[int, dict[TopicPartition, int]] = defaultdict(dict)
        for at, offset in asked.items():
            partition = topics[at[0]].partitions.get(at[1])
            if partition is None or partition.leader < 0:
                taken.reasons[at] = f"{_name(at)} has no leader at {self._client.config.alias} now"
            else:
                by_leader[partition.leader][at] = offset
        for led in by_leader.values():
            try:
                self._read_led(topics, led, counts, taken)
            except (ConnectionError, NotChanged, ValueError) as error:
                reason = " ".join(str(error).split())
                taken.reasons.update({at: reason for at in led if at not in taken.reasons})
        return taken

    def _read_led(
        self,
        topics: Mapping[str, TopicLeaders],
        led: Mapping[TopicPartition, int],
        counts: Mapping[TopicPartition, int],
        taken: Samples,
    ) -> None:
        """Read the partitions of one leader."""
        starts = offsets_by_leader(self._client, led, EARLIEST)
        for at, offset in led.items():
            if starts.get(at, 0) > offset:
                taken.deleted.add(at)
                taken.reasons[at] = (
                    f"the records of {_name(at)} from offset {offset} on are deleted at {self._client.config.alias},"
                    f" where its log starts at {starts[at]} now"
                )
        readable = {at: offset for at, offset in led.items() if at not in taken.deleted}
        got: dict[TopicPartition, list[SampleRecord]] = {at: [] for at in readable}
        batches = batches_from(
            self._client,
            topics,
            readable,
            read_committed=self._read_committed,
            damaged=_damaged,
            more=lambda at, _: len(got[at]) < counts[at],
        )
        for at, batch, _ in batches:
            records = self._records(at, batch, readable[at])
            got[at] += records[: counts[at] - len(got[at])]
        taken.samples.update(got)

    def _records(self, at: TopicPartition, batch: LogBatch, first: int) -> list[SampleRecord]:
        change = self._change(at)
        stamped = bool(batch.header.attributes & TIMESTAMP_TYPE_BIT)
        records: list[SampleRecord] = []
        for piece in readable_pieces(batch.header, batch.view):
            piece.drop_before(first)
            if change is not None:
                change(piece, 0)
            columns = zip(piece.offsets, piece.timestamps, piece.bodies, strict=True)
            records += [SampleRecord(offset, body, timestamp, stamped) for offset, timestamp, body in columns]
        return records


def _damaged(at: TopicPartition, error: ValueError) -> None:
    raise RangeUnread(f"{_name(at)}: {error}") from error


def _name(at: TopicPartition) -> str:
    return f"{at[0]}-{at[1]}"
