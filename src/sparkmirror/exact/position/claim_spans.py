"""Spans: the parts of claims that the arbitration has found true so far."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from sparkmirror.exact.durable.claims import Claim, RunsBySequence, joined
from sparkmirror.exact.position.judged_claims import JudgedBatch, of_one_pump
from sparkmirror.kafka.wire.splice import Run


@dataclass(slots=True, kw_only=True)
class Span:
    """A claim's announced batches that follow each other in the log.

    A span without batches is the claim as it is.
    """

    claim: Claim
    batches: list[JudgedBatch]
    shared: bool
    """True if another pump may have sent some of the batches."""
    shift: int | None = field(init=False)
    """Offset less sequence of the span's records, as far as the log shows."""
    _whole: RunsBySequence = field(init=False)
    _in_log: tuple[int, RunsBySequence] | None = field(default=None, init=False)
    """Batch count, and these batches' runs."""

    def __post_init__(self) -> None:
        self.shift = self.batches[0].shift if self.batches else None
        self._whole = RunsBySequence(self.claim)

    def end(self) -> int:
        """Return the sequence after the records that are known to be true."""
        if not self.batches:
            return self.claim.sequence + self._whole.announced
        last = self.batches[-1]
        return last.sequence + last.records

    def runs_at(self, sequence: int, count: int) -> tuple[Run, ...]:
        """Return the runs for `count` records from `sequence` on, by this span alone.

        Further batches that the claim announces are left out: nothing is known about them.
        """
        if not self.batches:
            return tuple(self._whole.at(sequence, count))
        if self._in_log is None or self._in_log[0] != len(self.batches):
            known = self.claim.part(self.batches[0].nth, self.batches[-1].nth + 1, 0, confirmed=False)
            self._in_log = len(self.batches), RunsBySequence(known)
        return tuple(self._in_log[1].at(sequence, count))

    def holds(self, other: Claim) -> bool:
        """Tell whether this span already says all that a confirmed claim says."""
        mine, count = self.claim, other.announced
        same_shift = other.downstream - other.sequence == mine.downstream - mine.sequence
        if self.batches or not same_shift or other.sequence + count > self.end():
            return False
        begins = self.runs_at(other.sequence, 1)[0].upstream
        return other.upstream == begins and other.runs_at(other.sequence, count) == self.runs_at(other.sequence, count)

    def announces_next(self, batch: JudgedBatch) -> bool:
        return bool(self.batches) and batch.claim is self.claim and batch.nth == self.batches[-1].nth + 1

    def is_interrupted_before(self, batch: JudgedBatch) -> bool:
        """Tell whether foreign records lie between the span and the batch."""
        return batch.shift is not None and self.shift not in (None, batch.shift)

    def extend(self, batch: JudgedBatch) -> None:
        self.batches.append(batch)
        self.shift = batch.shift if self.shift is None else self.shift

    def requires_claim_of(self, batch: JudgedBatch) -> bool:
        """Tell whether every pump must have claimed other records in the batch's place.

        Else a pump may have gone on from this span, and written other records there without a claim.
        """
        announced_more = self.end() == batch.sequence < self.claim.sequence + max(self._whole.announced, 1)
        return not self.shared and (announced_more or of_one_pump(self.claim, batch.claim))


class BelievedRuns:
    """Runs for any records, by claims sorted by sequence.

    Each claim counts until the next claim.
    """

    def __init__(self, claims: Sequence[Claim]) -> None:
        self._sequences = [claim.sequence for claim in claims]
        self._runs = [RunsBySequence(claim) for claim in claims]

    def at(self, sequence: int, count: int) -> tuple[Run, ...]:
        covered: list[Run] = []
        at, end = max(bisect_right(self._sequences, sequence) - 1, 0), sequence + count
        for index in range(at, len(self._sequences)):
            following = self._sequences[index + 1] if index + 1 < len(self._sequences) else end
            start, stop = max(self._sequences[index], sequence), min(end, following)
            if start >= end:
                break
            if start < stop:
                covered += self._runs[index].at(start, stop - start)
        return joined(covered)
