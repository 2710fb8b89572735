"""Claims judged batch by batch against the target's log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sparkmirror.exact.durable.claims import Claim, RunsBySequence, first_of
from sparkmirror.exact.position.matching import Match, MatchedLog, TargetLog, matches
from sparkmirror.kafka.wire.splice import Run

ONE_PUMP = 1 << 32
"""Incarnation distance below which two claims are from the same pump.

A pump counts its incarnations up from a random start.
"""


@dataclass(slots=True, eq=False, kw_only=True)
class JudgedClaim:
    """Claim, the log's batches there, and the finding on each announced batch."""

    claim: Claim
    seen: MatchedLog
    sent: bool
    """True if all batches were sent: a batch that is not in the log never comes."""
    batches: list[JudgedBatch] = field(default_factory=list)
    ahead: list[int] = field(default_factory=list)
    """Next batches that may be in the log, too, counted for each batch."""


class JudgedBatch(NamedTuple):
    """A claim's announced batch, with what the log shows about it."""

    judged: JudgedClaim
    nth: int
    sequence: int
    runs: tuple[Run, ...]
    match: Match
    shift: int | None
    """The batch's offset less sequence, if the batch is in the log."""

    @property
    def claim(self) -> Claim:
        return self.judged.claim

    @property
    def records(self) -> int:
        return self.claim.batches[self.nth].records

    @property
    def ahead(self) -> int:
        """Number of the claim's next batches that may be in the log, too."""
        return self.judged.ahead[self.nth]


def judge(judged: JudgedClaim, log: TargetLog, confirmed: Sequence[RunsBySequence]) -> None:
    """Note the finding on each batch that a claim announces.

    A batch that a confirmed claim excludes is not in the log.
    """
    claim = judged.claim
    sequence = claim.sequence
    matched = zip(matches(claim, judged.seen, log), claim.batch_runs(), strict=True)
    for index, ((match, there), runs) in enumerate(matched):
        shift = None if there is None or match < Match.POSSIBLE else there.offset - there.sequence
        if match is Match.OPEN and judged.sent:
            match = Match.NO
        batch = JudgedBatch(judged, index, sequence, runs, match, shift)
        if match is Match.POSSIBLE and any(_excludes(claimed, batch) for claimed in confirmed):
            batch = batch._replace(match=Match.NO)
        judged.batches.append(batch)
        sequence += batch.records
    judged.ahead = _ahead(judged.batches)


def of_one_pump(claim: Claim, other: Claim) -> bool:
    return abs(claim.incarnation - other.incarnation) < ONE_PUMP


def _excludes(confirmed: RunsBySequence, batch: JudgedBatch) -> bool:
    """Tell whether a confirmed claim excludes an announced batch.

    The confirmed claim begins inside the batch, or had other records there.
    """
    end, claim = batch.sequence + batch.records, confirmed.claim
    if claim.sequence <= batch.sequence:
        overlap = min(claim.sequence + confirmed.announced, end) - batch.sequence
        return overlap > 0 and tuple(confirmed.at(batch.sequence, overlap)) != first_of(batch.runs, overlap)
    return claim.sequence < end


def _ahead(batches: Sequence[JudgedBatch]) -> list[int]:
    """Return, for each batch in a claim, how many next batches the log has.

    Batches that may be in the log are counted, too.
    """
    counts = [0] * len(batches)
    for index in range(len(batches) - 2, -1, -1):
        counts[index] = counts[index + 1] + 1 if batches[index + 1].match >= Match.POSSIBLE else 0
    return counts
