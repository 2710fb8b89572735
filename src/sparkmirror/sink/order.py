"""The order to a task: batch, producer and rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sparkmirror.config import ClusterConfig
from sparkmirror.kafka.wire.codecs import Codec
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.sink.agreement import MicroBatch

BATCH_BYTES = 900_000
"""Largest record batch before compression: by default brokers take 1 MB."""
STATE_MS = 86_400_000
"""Kafka's default time for which brokers remember a producer (KIP-854)."""
MARGIN_MS = 3_600_000
"""Margin by which records must be younger than the oldest remembered ones.

An attempt is supposed to end within an hour of the order: nothing enforces that.
"""
_LOOK_MS = MARGIN_MS // 2
"""Time for which brokers remember all attempts, with clocks that differ."""


class GoneRows(NamedTuple):
    """Leave for one partition: rows of earlier attempts that no attempt makes now.

    Only for queries with a row for each record, in the records' order.
    """

    most: int
    is_told: bool = True
    """False: no row is appended behind such rows alone, for rows between may be lost."""
    is_compacted: bool = False
    """True if such rows may also be between others, before rows with the same key."""
    counted: int = 0
    """Number of earlier attempts' records by which losses are told."""


class AppendOrder(NamedTuple):
    """The driver's order to each task."""

    cluster: ClusterConfig
    batch: MicroBatch
    producer_id: int
    codec: Codec
    topic: str = ""
    """Topic of all rows; empty if rows name theirs."""
    state_ms: int = STATE_MS
    """Time for which brokers remember a producer after its newest record's timestamp."""
    first_attempt_ms: int = 0
    """Time of the batch's first attempt, at the earliest."""
    is_repeated: bool = False
    """True if the batch was perhaps attempted before, however short ago."""
    batch_bytes: int = BATCH_BYTES
    """Largest record batch to begin with; less where a topic takes less."""
    gone: Mapping[TopicPartition, GoneRows] | None = None
    is_ordered: bool = False
    """True if all attempts have a partition's rows in the same order."""
    begins: Mapping[TopicPartition, int] | None = None
    """Target offsets before which the batch has no records, where they are known."""
    agreed_to: int = -1
    """Control topic's offset from which on a fence stops the attempt; -1: none does."""

    @property
    def producer_epoch(self) -> int:
        return self.batch.producer_epoch

    def may_be_forgotten(self, now_ms: int) -> bool:
        """True if brokers may have forgotten an earlier attempt."""
        return now_ms > self.first_attempt_ms + _LOOK_MS

    @property
    def oldest_ms(self) -> int:
        """Earliest timestamp of earlier attempts' records."""
        return self.first_attempt_ms - self.state_ms


class AppendedRange(NamedTuple):
    """A task's result for one partition."""

    topic: str
    partition: int
    records: int
    """Number of the batch's records in the partition, whoever appended them."""
    first_offset: int
    last_offset: int
    earlier: int = 0
    """Number of records that earlier attempts had appended."""
    gone: int = 0
    """Number of earlier attempts' records without a row, as `AppendOrder.gone` allows."""
    is_held: bool = False
    """True if the rows wait until a loss before the rows is told."""

    @property
    def is_fresh(self) -> bool:
        """True if this attempt appended records."""
        return self.records > self.earlier + self.gone
