"""One partition of a flow, and what its leaders say of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from sparkmirror.durable.losses import LossKind
from sparkmirror.position.cause import Cause
from sparkmirror.position.decision import Position
from sparkmirror.wire.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionPair:
    """One partition of a flow: its topic there and here; the partition number is the same."""

    source_topic: str
    target_topic: str
    partition: int

    @property
    def source(self) -> TopicPartition:
        return self.source_topic, self.partition

    @property
    def target(self) -> TopicPartition:
        return self.target_topic, self.partition


class Remembered(NamedTuple):
    """What is known of a partition from before, whoever copied it."""

    passed: tuple[int, int] = (-1, -1)
    """Next offsets, upstream and downstream: when the copy ended there, nothing was left before; -1: not known."""
    appended: tuple[bytes, int] = (b"", -1)
    """Target topic id, and its offset after the last record that it has acknowledged; -1: not known."""


NOTHING_KNOWN = Remembered()


@dataclass(frozen=True, slots=True)
class Bearings:
    """Where a partition stands on both sides, as its leaders said just now."""

    position: Position
    resume_at: int | None
    """The upstream offset to fetch next: the position's, unless a loss is stepped over; None: nothing was copied."""
    source_topic_id: bytes
    source_leader: int
    source_leader_epoch: int
    source_start: int
    source_end: int
    """The high watermark."""
    target_topic_id: bytes
    target_leader: int
    read_at: float
    """When the target's leader was asked, by the reader's clock: the position is not younger."""
    replicated: bool = True
    """Everything before the position is below the target's high watermark (R10)."""
    compacted: bool = False
    """The source's cleaner may remove records: two pumps may see different logs."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a partition has no bearings now. `transient`: it may settle by itself, ask again soon."""

    reason: str
    transient: bool = False
    loss: LossKind | None = None
    """The named state that halts it; it is in the ledger already."""
    cause: Cause = Cause.OTHER
