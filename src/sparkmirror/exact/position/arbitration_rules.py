"""Arbitration rules, tried in order at each sequence with claims (R14).

The first rule that applies decides. A rule presumes that no rule before it in `RULES` applies, and changes nothing.
`Seam` is what a rule sees: the claims and batches at the sequence, and the span before. A decision begins a span,
extends the span before, finds nothing new, or says why the log can't decide.

1. What is confirmed counts: `is_confirmed_already`, `is_confirmed`; but for `log_overrules`.
2. Without a batch in the log a start may count: `begins_at_start`, `begins_where_operator_set`, `has_no_batch`.
3. Among rival batches one counts, if the log shows which: `has_undecidable_rivals`.
4. A batch that the log shows, or may have shown, continues from the span before in one of these ways:
   `goes_on_after_foreign_records`, `goes_on`, `repeats_records_before`, `may_have_gone_on_without_claim`.
5. A batch that continues in no such way: `may_have_been_replaced`, `counts_from_here_on`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from sparkmirror.exact.durable.claims import Claim, first_of, joined
from sparkmirror.exact.position.claim_spans import Span
from sparkmirror.exact.position.judged_claims import JudgedBatch, of_one_pump
from sparkmirror.exact.position.matching import Match


@dataclass(slots=True)
class Candidates:
    """Claims and announced batches at the same sequence."""

    confirmed: list[Claim] = field(default_factory=list)
    """Confirmed claims at the sequence.

    If the claims differ, the target lost the records by which the older claims were confirmed.
    """
    starts: list[Claim] = field(default_factory=list)
    batches: list[JudgedBatch] = field(default_factory=list)

    @property
    def altered(self) -> bool:
        """True if an operator had the copy continue here, at another upstream offset.

        Then no pump has gone on from the claim before.
        """
        return any(start.altered for start in self.starts)


@dataclass(frozen=True, slots=True)
class NewSpan:
    """Decision that a claim counts from here on, as a whole or from a batch on."""

    claim: Claim
    batch: JudgedBatch | None
    """First batch; None: the claim counts as it is."""
    shared: bool
    """True if another pump may have sent the batch."""


@dataclass(frozen=True, slots=True)
class NextBatch:
    """Decision that the span before continues with its claim's next batch."""

    batch: JudgedBatch
    shared: bool
    """True if another pump may have sent the batch."""


@dataclass(frozen=True, slots=True)
class NothingNew:
    """Decision that the span before continues as it did."""

    shared: bool = False
    """True if another pump may have sent the span's last batch."""


@dataclass(frozen=True, slots=True)
class Undecidable:
    """Decision that the log can't tell."""

    reason: str


Decision = NewSpan | NextBatch | NothingNew | Undecidable
Rule = Callable[["Seam"], Decision | None]


class Seam:
    """Sequence with claims, and the span before the sequence."""

    def __init__(self, before: Span | None, candidates: Candidates) -> None:
        self.before = before
        """Span before; None at the first sequence with claims."""
        self.candidates = candidates
        self.best = max((batch.match for batch in candidates.batches), default=Match.NO)

    @cached_property
    def rivals(self) -> Sequence[JudgedBatch]:
        """Batches that the log shows with the greatest certainty."""
        return [batch for batch in self.candidates.batches if batch.match is self.best]

    @cached_property
    def batch(self) -> JudgedBatch:
        """Rival whose claim the log shows farthest.

        The next batch of the span before comes first.
        """
        before = self.before
        return max(self.rivals, key=lambda batch: (before is not None and before.announces_next(batch), batch.ahead))

    @cached_property
    def shared(self) -> bool:
        """True if the rivals are from several pumps."""
        return not all(of_one_pump(self.batch.claim, rival.claim) for rival in self.rivals)

    @cached_property
    def confirmed(self) -> Claim | None:
        """Confirmed claim that counts, unless the log shows other batches."""
        return None if not self.candidates.confirmed or log_overrules(self) else _newest(self.candidates.confirmed)

    @cached_property
    def announced_next(self) -> Span | None:
        """Span before, if the batch is the next that the span's claim announces.

        Behind records that another pump may have sent, only a batch that the log shows is the next.
        """
        before = self.before
        if before is None or not before.announces_next(self.batch):
            return None
        return before if self.best >= Match.LIKELY or not before.shared else None


def decide(seam: Seam) -> Decision:
    """Decide at the next sequence with claims, by the first rule that applies."""
    return next(decision for rule in RULES if (decision := rule(seam)) is not None)


def log_overrules(seam: Seam) -> bool:
    """Tell whether the log surely shows other batches than the newest confirmed claim."""
    confirmed = seam.candidates.confirmed[-1]
    return seam.best is Match.SURE and all(
        confirmed.runs_at(batch.sequence, batch.records) != batch.runs for batch in seam.rivals
    )


def is_confirmed_already(seam: Seam) -> Decision | None:
    """Apply where the span before says all that the confirmed claim says."""
    holds = seam.confirmed is not None and seam.before is not None and seam.before.holds(seam.confirmed)
    return NothingNew() if holds else None


def is_confirmed(seam: Seam) -> Decision | None:
    """Apply where a claim is confirmed: the claim counts as it is."""
    claim = seam.confirmed
    if claim is None:
        return None
    shared = claim.shared or not all(of_one_pump(claim, other) for other in seam.candidates.confirmed)
    return NewSpan(claim, None, shared)


def begins_at_start(seam: Seam) -> Decision | None:
    """Apply where nothing was claimed before a start.

    Among several starts the lowest upstream offset counts: it loses nothing. Of the starts of turns the last counts:
    in an earlier turn without a record nothing was copied.
    """
    return _lowest(seam.candidates.starts) if seam.best < Match.POSSIBLE and seam.before is None else None


def begins_where_operator_set(seam: Seam) -> Decision | None:
    """Apply where an operator set the upstream offset.

    Such a start counts behind other claims, too.
    """
    return _lowest([start for start in seam.candidates.starts if start.altered]) if seam.best < Match.POSSIBLE else None


def has_no_batch(seam: Seam) -> Decision | None:
    """Apply where the log has none of the announced batches."""
    return NothingNew() if seam.best < Match.POSSIBLE else None


def has_undecidable_rivals(seam: Seam) -> Decision | None:
    """Apply where the log shows batches that differ with the same certainty."""
    differ = seam.best >= Match.LIKELY and len({rival.runs for rival in seam.rivals}) > 1
    return Undecidable(undecidable(seam.rivals)) if differ else None


def goes_on_after_foreign_records(seam: Seam) -> Decision | None:
    """Apply where foreign records lie between a claim's batches.

    A new span begins behind the foreign records.
    """
    before = seam.announced_next
    if before is None or not before.is_interrupted_before(seam.batch):
        return None
    return NewSpan(seam.batch.claim, seam.batch, before.shared or seam.shared)


def goes_on(seam: Seam) -> Decision | None:
    """Apply to the next batch that the span's claim announces."""
    return NextBatch(seam.batch, seam.shared) if seam.announced_next is not None else None


def repeats_records_before(seam: Seam) -> Decision | None:
    """Apply where the span before already has the batch's first records.

    The batch counts all the same if the log shows that it has other records.
    """
    before, batch = seam.before, seam.batch
    if before is None or (overlap := min(before.end() - batch.sequence, batch.records)) <= 0:
        return None
    same = seam.best is Match.POSSIBLE or before.runs_at(batch.sequence, overlap) == first_of(batch.runs, overlap)
    return NothingNew(shared=not of_one_pump(before.claim, batch.claim)) if same else None


def may_have_gone_on_without_claim(seam: Seam) -> Decision | None:
    """Apply where the span before would have the batch's records if it continued.

    Then another pump may have sent the same batch without a claim.
    """
    before, batch = seam.before, seam.batch
    goes_on_alike = before is not None and before.runs_at(batch.sequence, batch.records) == batch.runs
    return NewSpan(batch.claim, batch, shared=True) if goes_on_alike else None


def may_have_been_replaced(seam: Seam) -> Decision | None:
    """Apply where a pump may have written other records there without a claim.

    The log no longer shows the batch, and a pump may have gone on from the span before.
    """
    if seam.before is None or seam.best is not Match.POSSIBLE or seam.candidates.altered:
        return None
    return None if seam.before.requires_claim_of(seam.batch) else Undecidable(undecidable(seam.rivals))


def counts_from_here_on(seam: Seam) -> Decision | None:
    """Apply to each other batch: a partition's first batch, and a batch after a gap."""
    return NewSpan(seam.batch.claim, seam.batch, seam.shared)


RULES: tuple[Rule, ...] = (
    is_confirmed_already,
    is_confirmed,
    begins_at_start,
    begins_where_operator_set,
    has_no_batch,
    has_undecidable_rivals,
    goes_on_after_foreign_records,
    goes_on,
    repeats_records_before,
    may_have_gone_on_without_claim,
    may_have_been_replaced,
    counts_from_here_on,
)


def undecidable(batches: Sequence[JudgedBatch]) -> str:
    """Return why the log can't decide on one sequence's batches."""
    offsets = " or ".join(str(upstream) for upstream in sorted({batch.runs[0].upstream for batch in batches}))
    return (
        f"rival pumps may have copied different records as sequence {batches[0].sequence}: source offset {offsets}, or "
        "others; the target's log can't tell any more"
    )


def _lowest(starts: Sequence[Claim]) -> NewSpan | None:
    """Return the last turn's start, else the start with the lowest upstream offset.

    None without any start.
    """
    if turns := [start for start in starts if start.turn]:
        return NewSpan(max(turns, key=_upstream), None, shared=False)
    return NewSpan(min(starts, key=_upstream), None, shared=len(starts) > 1) if starts else None


def _newest(claims: Sequence[Claim]) -> Claim:
    """Return the last claim, or a longer claim that says the same."""
    last = claims[-1]
    if len(claims) == 1:
        return last
    same = [claim for claim in claims if claim.runs_at(last.sequence, last.announced) == joined(last.runs)]
    return max(same, key=_announced, default=last)


def _announced(claim: Claim) -> int:
    return claim.announced


def _upstream(claim: Claim) -> int:
    return claim.upstream
