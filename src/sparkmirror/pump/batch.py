"""Batch on the way from source to target, with the claim to be durable before."""

from __future__ import annotations

from sparkmirror.exact.durable.claims import AnnouncedBatch, Claim
from sparkmirror.kafka.wire.batches import CODEC_MASK
from sparkmirror.kafka.wire.buffers import Frame
from sparkmirror.kafka.wire.splice import Run


class PendingClaim:
    """Claim on the way into the segments topic."""

    __slots__ = ("claim", "durable")

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.durable = False


class Batch:
    """Batch that is ready to be sent once `place` has set the sequence.

    The header then has the flow's producer id and the sequence, too (`wire.batches.rewrite`).
    """

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
        """Frame that holds `view`, to be released by the batch's receiver."""
        self.view = view
        self.attributes = attributes
        self.runs = runs
        """The records' upstream offsets."""
        self.count = count
        self.next_upstream = next_upstream
        self.base_timestamp = base_timestamp
        self.max_timestamp = max_timestamp
        self.leader_epoch = leader_epoch
        """Source partition's leader epoch when the leader took the batch; -1: unknown."""
        self.sequence = self.downstream = self.crc = self.follows = -1
        self.claim: PendingClaim | None = None
        """Claim to be durable before this batch is sent, if any."""
        self.completes: PendingClaim | None = None
        """Claim whose last announced batch is this batch, if any."""
        self.sent_at = 0.0

    def place(self, sequence: int, downstream: int, crc: int, follows: int) -> None:
        """Set the batch's place at the target.

        `follows` is the upstream offset after the record before the batch.
        """
        self.sequence = sequence
        self.downstream = downstream
        self.crc = crc
        self.follows = follows

    @property
    def upstream(self) -> int:
        """The first record's upstream offset."""
        return self.runs[0].upstream

    @property
    def heals(self) -> bool:
        """True if the batch is the first after confirmed records were lost at the target."""
        return self.claim is not None and self.claim.claim.heals

    @property
    def announced(self) -> AnnouncedBatch:
        codec = self.attributes & CODEC_MASK
        return AnnouncedBatch(self.count, codec, self.crc, self.base_timestamp, self.max_timestamp)
