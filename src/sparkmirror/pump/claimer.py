"""Which batches need a claim before they are sent (invariant 3).

One that goes on where the record before it ended needs none: the segment that is open goes on without end. One
after a gap, or with gaps inside, or of another leader epoch of the source (so that KIP-320 works over
restarts), begins a new segment. What one fetch answer brings is claimed by one record, or by one for
each piece in which it is made ready.
"""

from __future__ import annotations

from itertools import chain

from sparkmirror.durable.claims import AnnouncedBatch, Segment, joined
from sparkmirror.durable.identity import Identity
from sparkmirror.position.route import Bearings, PartitionPair
from sparkmirror.pump.batch import Batch, Claim
from sparkmirror.wire.splice import Run


class Claimer:
    """One partition's claims, in the order of its batches."""

    def __init__(self, route: PartitionPair, identity: Identity, incarnation: int) -> None:
        self._route = route
        self._identity = identity
        self._incarnation = incarnation
        self._bearings: Bearings | None = None
        self._due = True
        self._heals = False
        """The target lost what was confirmed; the first claim says so, and announces one batch."""
        self._leader_epoch = -1
        self._draft: list[Batch] = []
        self._announced = 0
        """Of the draft: so many batches, up to the last one that is no mere continuation."""
        self.follows = -1
        """The upstream offset after the last record noted."""

    def start(self, bearings: Bearings, upstream: int, *, due: bool) -> None:
        """Go on from a position; `due`: what comes first is claimed, also if it goes on without a gap."""
        self._bearings = bearings
        self._due = due
        self._heals = bearings.position.lost > 0
        self._leader_epoch = bearings.position.leader_epoch
        self._draft = []
        self.follows = upstream

    def claim_start(self, sequence: int, downstream: int) -> Claim:
        """That the partition starts here, before there is anything to send."""
        return Claim(self._segment(sequence, downstream, -1, (Run(self.follows, 0),), ()))

    def note(self, batch: Batch) -> Claim | None:
        """A batch that is queued; returns the claim of those before it, if that has to end here."""
        finished = None
        if batch.leader_epoch != self._leader_epoch or (self._heals and self._draft):
            finished = self.finish()
            self._due = True
        runs = batch.runs
        if self._due or runs[0].upstream != self.follows or len(runs) > 1:
            self._draft.append(batch)
            self._announced = len(self._draft)
        elif self._draft:
            self._draft.append(batch)
        self._due = False
        self._leader_epoch = batch.leader_epoch
        self.follows = runs[-1].upstream + runs[-1].length
        return finished

    def finish(self) -> Claim | None:
        """The claim that the batches noted since the last one need, if any."""
        batches, self._draft = self._draft[: self._announced], []
        if not batches:
            return None
        first = batches[0]
        claim = Claim(
            self._segment(
                first.sequence,
                first.downstream,
                first.leader_epoch,
                joined(chain.from_iterable(batch.runs for batch in batches)),
                tuple(batch.announced for batch in batches),
                heals=self._heals,
            )
        )
        self._heals = False
        first.claim = claim
        batches[-1].completes = claim
        return claim

    def forget(self) -> None:
        """What was noted is dropped, and will be noted again."""
        self._draft = []

    def _segment(
        self,
        sequence: int,
        downstream: int,
        leader_epoch: int,
        runs: tuple[Run, ...],
        batches: tuple[AnnouncedBatch, ...],
        *,
        heals: bool = False,
    ) -> Segment:
        assert self._bearings is not None  # noqa: S101 - start came first
        self._incarnation += 1
        return Segment(
            target_topic_id=self._bearings.target_topic_id,
            partition=self._route.partition,
            sequence=sequence,
            incarnation=self._incarnation,
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.producer_epoch,
            source_topic_id=self._bearings.source_topic_id,
            source_leader_epoch=leader_epoch,
            downstream=downstream,
            runs=runs,
            batches=batches,
            heals=heals,
        )
