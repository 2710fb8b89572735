"""A batch on its way from source to target, and the claim that must be durable before it is sent."""

from __future__ import annotations

from sparkmirror.durable.claims import AnnouncedBatch, Segment
from sparkmirror.wire.batches import CODEC_MASK
from sparkmirror.wire.buffers import Frame
from sparkmirror.wire.splice import Run


class Claim:
    """A segment on its way into the segments topic."""

    __slots__ = ("asked", "durable", "segment")

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.asked = False
        self.durable = False


class Batch:
    """A batch that can be sent once it bears our producer id and sequence (`place`)."""

    __slots__ = (
        "attributes",
        "base_timestamp",
        "claim",
        "completes",
        "count",
        "crc",
        "downstream",
        "follows",
        "frame",
        "leader_epoch",
        "max_timestamp",
        "next_upstream",
        "runs",
        "sent_at",
        "sequence",
        "view",
    )

    def __init__(
        self,
        frame: Frame,
        view: memoryview,
        attributes: int,
        runs: tuple[Run, ...],
        count: int,
        next_upstream: int,
        base_timestamp: int,
        max_timestamp: int,
        leader_epoch: int,
    ) -> None:
        self.frame = frame
        """Holds `view`; the receiver's to release."""
        self.view = view
        self.attributes = attributes
        self.runs = runs
        """Where its records come from upstream."""
        self.count = count
        self.next_upstream = next_upstream
        self.base_timestamp = base_timestamp
        self.max_timestamp = max_timestamp
        self.leader_epoch = leader_epoch
        """Of the source's partition when its leader took the batch; -1: not known."""
        self.sequence = self.downstream = self.crc = self.follows = -1
        self.claim: Claim | None = None
        """It must be durable before this batch is sent."""
        self.completes: Claim | None = None
        """Whose last announced batch this is."""
        self.sent_at = 0.0

    def place(self, sequence: int, downstream: int, crc: int, follows: int) -> None:
        """Where it belongs at the target; `follows` is the upstream offset after the record before it."""
        self.sequence = sequence
        self.downstream = downstream
        self.crc = crc
        self.follows = follows

    @property
    def upstream(self) -> int:
        """Of its first record."""
        return self.runs[0].upstream

    @property
    def announced(self) -> AnnouncedBatch:
        """As a claim announces it."""
        codec = self.attributes & CODEC_MASK
        return AnnouncedBatch(self.count, codec, self.crc, self.base_timestamp, self.max_timestamp)
