"""One of a flow's partitions, and its leaders' answers."""

from __future__ import annotations

from dataclasses import dataclass

from sparkmirror.exact.durable.losses import LossKind
from sparkmirror.exact.position.cause import Cause
from sparkmirror.exact.position.decision import Position
from sparkmirror.kafka.wire.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionPair:
    """One of a flow's partitions, with its topic at the source and at the target.

    The partition number is the same on both sides.
    """

    source_topic: str
    target_topic: str
    partition: int

    @property
    def source(self) -> TopicPartition:
        return self.source_topic, self.partition

    @property
    def target(self) -> TopicPartition:
        return self.target_topic, self.partition


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReading:
    """A partition as read on both sides: what the leaders answered just now."""

    position: Position
    resume_at: int | None
    """Upstream offset to fetch next; None: no record was ever copied.

    The offset is the position's, unless a loss is stepped over.
    """
    source_topic_id: bytes
    source_leader: int
    source_leader_epoch: int
    source_start: int
    source_end: int
    """Offset up to which the source may be read.

    The high watermark, or with `read_committed` the last stable offset.
    """
    target_topic_id: bytes
    target_leader: int
    read_at: float
    """Time when the target's leader was asked, by the reader's clock.

    The position is not younger.
    """
    replicated: bool = True
    """True if all records before the position are below the high watermark (R10).

    The high watermark is the target's.
    """
    compacted: bool = False
    """True if the source's cleaner may remove records.

    Two pumps may then see different logs.
    """


@dataclass(frozen=True, slots=True)
class Refusal:
    """Reason for which a partition can't be read now.

    With `transient` the trouble may pass by itself, and the caller asks again soon.
    """

    reason: str
    transient: bool = False
    loss: LossKind | None = None
    """Loss that halts the partition; the loss is in the ledger already."""
    cause: Cause = Cause.OTHER
