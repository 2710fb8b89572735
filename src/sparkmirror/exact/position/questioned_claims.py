"""Claims that need evidence from the target's log.

There are two kinds: unconfirmed claims, and confirmed claims on records that the target may have lost. A pump that
finds confirmed records lost marks its next claim (`Claim.heals`). Once the marked claim has a batch in the log, the log
decides again on all confirmed claims from the marked claim's sequence on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sparkmirror.exact.durable.claims import Claim, ClaimKey
from sparkmirror.exact.position.judged_claims import JudgedClaim
from sparkmirror.exact.position.matching import Match, MatchedLog, TargetLog, matches

Evidence = Mapping[ClaimKey, MatchedLog]
"""Log's batches at each claim, by claim key."""


def questioned(claims: Iterable[Claim]) -> list[Claim]:
    """Return the claims that need evidence from the log.

    Each claim's downstream offset is where its batches may begin in the log.
    """
    claims = list(claims)
    healing = [claim for claim in claims if claim.heals and not claim.confirmed]
    first = min((claim.sequence for claim in healing), default=None)
    asked = [claim for claim in claims if claim.batches and (not claim.confirmed or _reaches(claim, first))]
    return [at_lowest_offset(claim, healing) for claim in asked] if healing else asked


def at_lowest_offset(claim: Claim, healing: Iterable[Claim]) -> Claim:
    """Return the claim with the lowest offset at which its batches may be.

    The claim is no farther behind a healing claim than the two claims' sequences are apart. Where the target has lost
    foreign records, too, the records behind are copied again nearer to the front.
    """
    ahead = [
        healer.downstream + claim.sequence - healer.sequence for healer in healing if healer.sequence <= claim.sequence
    ]
    lowest = min(ahead, default=claim.downstream)
    return dataclasses.replace(claim, downstream=lowest) if lowest < claim.downstream else claim


class SortedClaims(NamedTuple):
    """One partition's claims, sorted for judgement.

    The last three fields have claims only if the target lost confirmed records.
    """

    certain: list[Claim]
    """Claims that need no evidence."""
    asked: list[JudgedClaim]
    """Claims that need evidence, not judged yet."""
    doubted: tuple[Claim, ...] = ()
    """Claims in doubt, as confirmed before the loss.

    The claims that the log does not show are false.
    """
    shortened: tuple[Claim, ...] = ()
    """Beginnings of claims in doubt, before the first healing claim.

    The beginnings stay confirmed.
    """
    healing: tuple[Claim, ...] = ()
    """Healing claims that make the arbitration judge the claims in doubt again."""


def sort_claims(claims: Iterable[Claim], evidence: Evidence, log: TargetLog) -> SortedClaims:
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
    certain: list[Claim] = []
    asked: list[JudgedClaim] = []
    doubted: list[Claim] = []
    shortened: list[Claim] = []
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


def _batches_below(claim: Claim, sequence: int) -> int:
    """Return how many batches in a claim are wholly below a sequence."""
    end = claim.sequence
    for index, batch in enumerate(claim.batches):
        end += batch.records
        if end > sequence:
            return index
    return len(claim.batches)


def _reaches(claim: Claim, sequence: int | None) -> bool:
    """Tell whether a claim announced a record at or behind a sequence."""
    return sequence is not None and claim.sequence + max(claim.announced, 1) > sequence
