"""Claims that need evidence from the target's log.

There are two kinds: unconfirmed claims, and confirmed claims on records that the target may have lost. A pump that
finds confirmed records lost marks its next claim (`Segment.heals`). Once a batch of the marked claim is in the log, the
log decides again on all confirmed claims from the marked claim's sequence on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sparkmirror.durable.claims import ClaimKey, Segment
from sparkmirror.position.judged_claims import JudgedClaim
from sparkmirror.position.matching import Match, MatchedLog, TargetLog, matches

Evidence = Mapping[ClaimKey, MatchedLog]
"""Log's batches at each claim, by claim key."""


def questioned(claims: Iterable[Segment]) -> list[Segment]:
    """Return the claims that need evidence from the log.

    The downstream offset of each is the offset from which on the batches may be in the log.
    """
    claims = list(claims)
    healing = [claim for claim in claims if claim.heals and not claim.confirmed]
    first = min((claim.sequence for claim in healing), default=None)
    asked = [claim for claim in claims if claim.batches and (not claim.confirmed or _reaches(claim, first))]
    return [at_lowest_offset(claim, healing) for claim in asked] if healing else asked


def at_lowest_offset(claim: Segment, healing: Iterable[Segment]) -> Segment:
    """Return the claim with the lowest offset at which its batches may lie.

    The claim lies no farther behind a healing claim than the sequences of the two claims are apart.
    Where the target has lost foreign records, too, the records behind are copied again nearer to the front.
    """
    ahead = [
        healer.downstream + claim.sequence - healer.sequence for healer in healing if healer.sequence <= claim.sequence
    ]
    lowest = min(ahead, default=claim.downstream)
    return dataclasses.replace(claim, downstream=lowest) if lowest < claim.downstream else claim


class SortedClaims(NamedTuple):
    """Claims of a partition, sorted for judgement.

    The last three fields have claims only if the target lost confirmed records.
    """

    certain: list[Segment]
    """Claims that need no evidence."""
    asked: list[JudgedClaim]
    """Claims that need evidence, not judged yet."""
    doubted: tuple[Segment, ...] = ()
    """Claims in doubt, as confirmed before the loss.

    The claims that the log does not show are false.
    """
    shortened: tuple[Segment, ...] = ()
    """Beginnings of claims in doubt, before the first healing claim.

    The beginnings stay confirmed.
    """
    healing: tuple[Segment, ...] = ()
    """Healing claims because of which the claims in doubt are judged anew."""


def sort_claims(claims: Iterable[Segment], evidence: Evidence, log: TargetLog) -> SortedClaims:
    """Take the confirmation from records behind the first healing claim.

    Only healing claims that may be in the log count.
    """
    claims = list(claims)
    healing = tuple(
        claim
        for claim in claims
        if claim.heals and not claim.confirmed
        if matches(claim, evidence.get(claim.key, MatchedLog()), log)[0].match >= Match.POSSIBLE
    )
    first = min((claim.sequence for claim in healing), default=None)
    certain: list[Segment] = []
    asked: list[JudgedClaim] = []
    doubted: list[Segment] = []
    shortened: list[Segment] = []
    for claim in claims:
        seen = evidence.get(claim.key, MatchedLog())
        if not (claim.confirmed and _reaches(claim, first)):
            if claim.confirmed or not claim.batches:
                certain.append(claim)
            else:
                asked.append(JudgedClaim(claim=claim, seen=seen, sent=False))
            continue
        assert first is not None  # noqa: S101 - no claim reaches None
        doubted.append(claim)
        kept = _batches_below(claim, first)
        if claim.sequence < first:
            runs = claim.runs_at(claim.sequence, first - claim.sequence)
            shortened.append(dataclasses.replace(claim, runs=runs, batches=claim.batches[:kept]))
            certain.append(shortened[-1])
        if kept < len(claim.batches):
            begins = claim.downstream + sum(batch.records for batch in claim.batches[:kept])
            part = claim.part(kept, len(claim.batches), begins, confirmed=False, shared=claim.shared)
            asked.append(JudgedClaim(claim=dataclasses.replace(part, heals=False), seen=seen, sent=True))
    return SortedClaims(certain, asked, tuple(doubted), tuple(shortened), healing)


def _batches_below(claim: Segment, sequence: int) -> int:
    """Return the number of a claim's batches that lie wholly below a sequence."""
    end = claim.sequence
    for index, batch in enumerate(claim.batches):
        end += batch.records
        if end > sequence:
            return index
    return len(claim.batches)


def _reaches(claim: Segment, sequence: int | None) -> bool:
    """Tell whether a claim announced a record at or behind a sequence."""
    return sequence is not None and claim.sequence + max(claim.announced, 1) > sequence
