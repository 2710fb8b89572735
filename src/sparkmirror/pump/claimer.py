"""Claims for batches that need a claim before they are sent (invariant 3).

A batch that continues the records before needs no claim, because the last claim continues without end. A new claim
begins with a batch after a gap, with gaps inside, or from another leader epoch at the source; the last case makes
KIP-320 work over restarts. One record claims one fetch answer's batches, or those in one piece in which the answer is
made ready.
"""

from __future__ import annotations

from sparkmirror.exact.durable.claims import AnnouncedBatch, Claim, chained
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.position.route import PartitionPair, PartitionReading
from sparkmirror.kafka.wire.splice import Run
from sparkmirror.pump.batch import Batch, PendingClaim


class Claimer:
    """Makes one partition's claims, in the order of the batches."""

    def __init__(self, route: PartitionPair, identity: Identity, incarnation: int, *, changed: bool = False) -> None:
        """Prepare the claims; with `changed` transforms change the records on the way."""
        self._changed = changed
        self._route = route
        self._identity = identity
        self._incarnation = incarnation
        self._reading: PartitionReading | None = None
        self._due = True
        self._heals = False
        """True if the target lost confirmed records.

        Then the first claim says so, and announces a single batch.
        """
        self._leader_epoch = -1
        self._draft: list[Batch] = []
        self._announced = 0
        """Number of the draft's batches to announce.

        The last announced batch is the last batch that needs a claim; the draft's later batches only continue.
        """
        self.announced_to = -1
        """Sequence after the last batch that a claim has announced so far."""
        self.follows = -1
        """Upstream offset after the last noted record."""

    def start(self, reading: PartitionReading, follows: int, *, due: bool) -> None:
        """Continue from a position.

        With `due` the first batch is claimed even if no gap is before the batch. So is the first batch after records
        that were changed, if these are not, and the other way round.
        """
        self._reading = reading
        last = reading.position.last_claim
        self._due = due or (last is not None and last.changed != self._changed)
        self._heals = reading.position.lost > 0
        self._leader_epoch = reading.position.leader_epoch
        self._draft = []
        self.follows = follows

    def claim_start(self, sequence: int, downstream: int) -> PendingClaim:
        """Return a claim that the partition starts here, before any batch is known."""
        return PendingClaim(self._claim_of(sequence, downstream, -1, (Run(self.follows, 0),), ()))

    def note(self, batch: Batch) -> PendingClaim | None:
        """Note a queued batch; return the claim for the batches before if it ends here."""
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

    def finish(self) -> PendingClaim | None:
        """Return the claim needed by the batches noted since the last claim, if any."""
        batches, self._draft = self._draft[: self._announced], []
        if not batches:
            return None
        first = batches[0]
        claim = PendingClaim(
            self._claim_of(
                first.sequence,
                first.downstream,
                first.leader_epoch,
                chained(batch.runs for batch in batches),
                tuple(batch.announced for batch in batches),
                heals=self._heals,
            )
        )
        self._heals = False
        self.announced_to = max(self.announced_to, claim.claim.sequence + claim.claim.announced)
        first.claim = claim
        batches[-1].completes = claim
        return claim

    def forget(self) -> None:
        """Forget the noted batches, which were dropped and will be noted again."""
        self._draft = []

    def _claim_of(
        self,
        sequence: int,
        downstream: int,
        leader_epoch: int,
        runs: tuple[Run, ...],
        batches: tuple[AnnouncedBatch, ...],
        *,
        heals: bool = False,
    ) -> Claim:
        assert self._reading is not None  # noqa: S101 - start sets the reading before
        self._incarnation += 1
        return Claim(
            target_topic_id=self._reading.target_topic_id,
            partition=self._route.partition,
            sequence=sequence,
            incarnation=self._incarnation,
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.producer_epoch,
            source_topic_id=self._reading.source_topic_id,
            source_leader_epoch=leader_epoch,
            downstream=downstream,
            runs=runs,
            batches=batches,
            heals=heals,
            changed=self._changed,
        )
