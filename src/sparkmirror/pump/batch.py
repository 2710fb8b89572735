"""A batch on its way from source to target, and the claim that must be durable before it is sent."""

from __future__ import annotations

from sparkmirror.offsets.segments import AnnouncedBatch, Segment
from sparkmirror.pump.intake import Prepared
from sparkmirror.wire.batches import CODEC_MASK


class Claim:
    """A segment on its way into the segments topic."""

    __slots__ = ("asked", "durable", "segment")

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.asked = False
        self.durable = False


class Batch:
    """A batch, already rewritten; `view` is what is sent."""

    __slots__ = (
        "base_timestamp",
        "claim",
        "codec",
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

    def __init__(self, prepared: Prepared, sequence: int, downstream: int, crc: int, follows: int) -> None:
        self.frame = prepared.frame
        self.view = prepared.view
        self.runs = prepared.runs
        self.count = prepared.records
        self.next_upstream = prepared.next_upstream
        self.base_timestamp = prepared.base_timestamp
        self.max_timestamp = prepared.max_timestamp
        self.leader_epoch = prepared.leader_epoch
        self.codec = prepared.attributes & CODEC_MASK
        self.sequence = sequence
        self.downstream = downstream
        self.crc = crc
        self.follows = follows
        """The upstream offset after the record before it: a gap, if it is not our own first one."""
        self.claim: Claim | None = None
        """It must be durable before this batch is sent."""
        self.completes: Claim | None = None
        """Whose last announced batch this is."""
        self.sent_at = 0.0

    @property
    def upstream(self) -> int:
        """Of its first record."""
        return self.runs[0].upstream

    @property
    def announced(self) -> AnnouncedBatch:
        return AnnouncedBatch(self.count, self.codec, self.crc, self.base_timestamp, self.max_timestamp)
