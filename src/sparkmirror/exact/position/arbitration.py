"""Decide between claims by the target's log (R14).

Confirmed claims are true. All further claims are judged batch by batch. A batch in the log belongs to the claim that
announces the batch, even if the claim's batches before are not in the log: a rival pump may have written there. A claim
counts for its announced batches up to the first batch that the log shows not to be there. From there on the claim's
last run continues, until the next batch that the log has and a claim announces. `arbitration_rules` has the decision at
each sequence, as a rule table.

If a batch can't be recognized any more (`Match.POSSIBLE`), its claim is believed unless another pump may have written
different records there. Such a pump is

1. a rival pump that claimed different records there, or
2. a pump that continued from the claim before, without a claim.

Case 2 is impossible if only a single pump can have sent the records before, and

- the same pump announced the batch: the pump knows its own claims, and sends nothing else there; or
- the claim before announced records there that did not come: the next pump must then claim its first batch.

Neither holds where two pumps may have sent the same batches (`Claim.shared`). After an unclean takeover a pump claims
its first batch, so a continuation without a claim always comes from the pump that made the claim before, or from
its clean successor.

The target's log can lose confirmed records all the same: `questioned_claims` has the claims that this puts in doubt.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sparkmirror.exact.durable.claims import Claim, ClaimKey, RunsBySequence
from sparkmirror.exact.position.arbitration_rules import (
    Candidates,
    NewSpan,
    NextBatch,
    NothingNew,
    Seam,
    Undecidable,
    decide,
    undecidable,
)
from sparkmirror.exact.position.claim_spans import BelievedRuns, Span
from sparkmirror.exact.position.judged_claims import JudgedBatch, JudgedClaim, judge
from sparkmirror.exact.position.matching import Match, TargetLog
from sparkmirror.exact.position.questioned_claims import Evidence, SortedClaims, at_lowest_offset, sort_claims


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """Decision on a partition's claims."""

    true: tuple[Claim, ...]
    """True claims by sequence, a single claim for each.

    Each claim counts until the next claim's sequence.
    """
    confirmed: tuple[Claim, ...] = ()
    """True claims that are known to be true only now, to be written again."""
    false: tuple[Claim, ...] = ()
    """Claims that did not happen and never will, to be retracted.

    Claims on deleted records are retracted by `durable.claim_expiry`.
    """
    moved: tuple[Claim, ...] = ()
    """Unconfirmed claims with a lower downstream offset than claimed.

    Records before these claims were lost, so the batches may lie nearer to the log's front.
    """
    healed: tuple[Claim, ...] = ()
    """Healing claims from `confirmed`, to be written last.

    Once written as confirmed, a healing claim causes no claim to be judged again.
    """
    undecided: str = ""
    """Reason for which the log can't decide; empty if the log has decided."""
    wait: bool = False
    """True if the log can decide soon."""


def arbitrate(claims: Iterable[Claim], evidence: Evidence, log: TargetLog) -> Ruling:
    """Judge all claims under one producer id and epoch on one target partition."""
    claims_by_kind = sort_claims(claims, evidence, log)
    candidates = _candidates(claims_by_kind, log)
    asked = claims_by_kind.asked
    if any(batch.match is Match.UNREAD for judged in asked for batch in judged.batches):
        return Ruling(true=(), undecided="its newest records are not below the high watermark yet", wait=True)
    spans: list[Span] = []
    for _, competing in sorted(candidates.items()):
        reason = _extend(spans, competing)
        if reason:
            return Ruling(true=(), undecided=reason)
    ruling = _ruling(spans, asked)
    contrary = _first_contrary(candidates, BelievedRuns(ruling.true))
    if contrary is not None:
        return Ruling(true=(), undecided=undecidable([contrary]))
    return _with_doubted(ruling, claims_by_kind)


def _candidates(claims: SortedClaims, log: TargetLog) -> Mapping[int, Candidates]:
    confirmed = [RunsBySequence(claim) for claim in claims.certain if claim.confirmed]
    candidates: dict[int, Candidates] = defaultdict(Candidates)
    for claim in claims.certain:
        competing = candidates[claim.sequence]
        (competing.confirmed if claim.confirmed else competing.starts).append(claim)
    for judged in claims.asked:
        judge(judged, log, confirmed)
        for batch in judged.batches:
            candidates[batch.sequence].batches.append(batch)
    return candidates


def _extend(spans: list[Span], candidates: Candidates) -> str:
    """Decide at the next sequence with claims, and extend `spans` by the decision.

    Return the reason if the log can't decide, else an empty string.
    """
    before = spans[-1] if spans else None
    match decide(Seam(before, candidates)):
        case Undecidable(reason):
            return reason
        case NewSpan(claim, batch, shared):
            spans.append(Span(claim=claim, batches=[] if batch is None else [batch], shared=shared))
        case NextBatch(batch, shared) if before is not None:
            before.extend(batch)
            before.shared |= shared
        case NothingNew(shared) if before is not None:
            before.shared |= shared
    return ""


def _ruling(spans: Sequence[Span], asked: Iterable[JudgedClaim]) -> Ruling:
    true: list[Claim] = []
    confirmed: list[Claim] = []
    kept: set[ClaimKey] = set()
    for span in spans:
        if not span.batches:
            true.append(span.claim)
            continue
        claim, first, last = span.claim, span.batches[0], span.batches[-1]
        ahead = [batch.match for batch in last.judged.batches[last.nth + 1 :]]
        stop = len(claim.batches) if ahead and ahead[0] is Match.OPEN else last.nth + 1
        shift = claim.downstream - claim.sequence if span.shift is None else span.shift
        complete = Match.OPEN not in ahead
        part = claim.part(first.nth, stop, first.sequence + shift, confirmed=complete, shared=span.shared)
        true.append(part)
        if complete:
            confirmed.append(part)
        if first.nth == 0:
            kept.add(claim.key)
    # Only a confirmed claim decides between two pumps that may have sent the same batches: until then both claims stay.
    spared = len(confirmed) < sum(bool(span.batches) for span in spans)
    false = [
        judged.claim
        for judged in asked
        if judged.claim.key not in kept and _has_failed(judged.batches, even_in_part=not spared)
    ]
    return Ruling(true=tuple(true), confirmed=tuple(confirmed), false=tuple(false))


def _has_failed(batches: Iterable[JudgedBatch], *, even_in_part: bool) -> bool:
    """Tell whether none of a claim's batches can come any more.

    With `even_in_part` a claim with batches in the log fails, too: these batches may be another pump's.
    """
    return all(batch.match is Match.NO or (even_in_part and batch.match is not Match.OPEN) for batch in batches)


def _first_contrary(candidates: Mapping[int, Candidates], believed: BelievedRuns) -> JudgedBatch | None:
    """Return a possible batch that the ruling contradicts, if any.

    A batch agrees if the ruling has the batch's records there, or if another batch is known to be there.
    """
    for competing in candidates.values():
        if any(batch.match >= Match.LIKELY for batch in competing.batches):
            continue
        for batch in competing.batches:
            if batch.match is Match.POSSIBLE and believed.at(batch.sequence, batch.records) != batch.runs:
                return batch
    return None


def _with_doubted(ruling: Ruling, claims: SortedClaims) -> Ruling:
    """Return the ruling with the claims that a loss at the target has put in doubt."""
    rewritten = {claim.key for claim in (*claims.shortened, *ruling.confirmed)}
    gone = [claim for claim in claims.doubted if claim.key not in rewritten]
    decided = rewritten | {claim.key for claim in ruling.false}
    undecided = (judged.claim for judged in claims.asked if not judged.sent and judged.claim.key not in decided)
    nearer = ((claim, at_lowest_offset(claim, claims.healing)) for claim in undecided)
    return dataclasses.replace(
        ruling,
        confirmed=(*claims.shortened, *ruling.confirmed),
        false=(*ruling.false, *gone),
        moved=tuple(moved for claim, moved in nearer if moved is not claim),
        healed=tuple(claim for claim in ruling.confirmed if claim.heals),
    )
