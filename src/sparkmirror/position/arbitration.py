"""The log arbitrates between claims (R14): which of the batches that they announce happened.

Confirmed claims did. The others are judged batch by batch: one in the log is its claim's, wherever in the claim
it stands, for a rival may have taken the place of the batch before it. What a claim announced counts until the log
shows something else; then its last run goes on until the next batch that is in the log and in a claim.

Where a batch can't be recognized any more (`Match.POSSIBLE`), a claim is believed unless somebody else may have
written other records there: a rival that claimed them, or one that went on from the claim before without a claim.
The latter can't be where one pump alone can have sent what is before, and
- it announced the batch itself: it knows what it claimed, and sends nothing else there;
- or it announced something there that did not come: the next pump must then claim what it sends first.
Where two pumps may have sent the same (`Segment.shared`) neither holds. After an unclean takeover a pump claims what it
sends first, so that what goes on without a claim is always of the pump whose claim is before it.

What was confirmed can be lost with the target's log all the same. Who finds that says so with the next claim
(`Segment.heals`); once that one is in the log, the log decides anew on what had been confirmed from there on.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sparkmirror.durable.claims import ClaimKey, RunsBySequence, Segment, first_of, joined
from sparkmirror.position.matching import Match, MatchedLog, TargetLog, matches
from sparkmirror.wire.splice import Run

Evidence = Mapping[ClaimKey, MatchedLog]
"""What the log holds where a claim says that its batches are."""

ONE_PUMP = 1 << 32
"""A pump numbers its claims from a random start on: numbers as near as this are one pump's."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """What became of a partition's claims."""

    true: tuple[Segment, ...]
    """In order of sequence, one a sequence; each counts until the next one's."""
    confirmed: tuple[Segment, ...] = ()
    """Of those, the ones that are known to be true only now: to be written again."""
    false: tuple[Segment, ...] = ()
    """They did not happen and never will: to be retracted."""
    moved: tuple[Segment, ...] = ()
    """Not confirmed; they may be nearer to the front than was claimed, since what lay before them was lost."""
    healed: tuple[Segment, ...] = ()
    """Those of `confirmed` for which others were judged anew: written last, as that is not repeated then."""
    undecided: str = ""
    """Why it can't be told, if it can't."""
    wait: bool = False
    """It can be told soon."""


@dataclass(slots=True, eq=False)
class _Judged:
    """A claim, what the log holds there, and what became of each batch that it announces."""

    claim: Segment
    seen: MatchedLog
    sent: bool
    """All of it was: what is not in the log never comes."""
    pieces: list[_AnnouncedBatch] = field(default_factory=list)
    ahead: list[int] = field(default_factory=list)
    """For each piece how many of the next ones may be in the log, too."""


class _AnnouncedBatch(NamedTuple):
    """One announced batch of a claim."""

    judged: _Judged
    nth: int
    sequence: int
    runs: tuple[Run, ...]
    match: Match
    lead: int | None
    """Its offset less its sequence, if it is in the log."""

    @property
    def claim(self) -> Segment:
        return self.judged.claim


@dataclass(slots=True)
class _Place:
    """What is claimed for one sequence."""

    confirmed: list[Segment] = field(default_factory=list)
    """If they differ, the target lost what the older ones were confirmed by."""
    starts: list[Segment] = field(default_factory=list)
    pieces: list[_AnnouncedBatch] = field(default_factory=list)

    @property
    def altered(self) -> bool:
        """Whether an operator had the copy go on elsewhere here: then nobody has gone on from the claim before."""
        return any(start.altered for start in self.starts)


@dataclass(slots=True)
class _Span:
    """Announced batches of one claim that lie in the log one after the other; no pieces: the claim as it is."""

    claim: Segment
    pieces: list[_AnnouncedBatch]
    shared: bool
    """Another pump may have sent some of it."""
    lead: int | None = field(init=False)
    """What its offsets are ahead of its sequences, as far as the log shows."""
    _whole: RunsBySequence = field(init=False)
    _in_log: tuple[int, RunsBySequence] | None = field(default=None, init=False)
    """How many pieces, and what they hold."""

    def __post_init__(self) -> None:
        self.lead = self.pieces[0].lead if self.pieces else None
        self._whole = RunsBySequence(self.claim)

    def end(self) -> int:
        """The sequence after what is known to be true."""
        if not self.pieces:
            return self.claim.sequence + self._whole.announced
        last = self.pieces[-1]
        return last.sequence + self.claim.batches[last.nth].records

    def runs_at(self, sequence: int, count: int) -> tuple[Run, ...]:
        """What it says of these, if nothing else comes: of the batches ahead that it announces nothing is known."""
        if not self.pieces:
            return tuple(self._whole.at(sequence, count))
        if self._in_log is None or self._in_log[0] != len(self.pieces):
            known = self.claim.part(self.pieces[0].nth, self.pieces[-1].nth + 1, 0, confirmed=False)
            self._in_log = len(self.pieces), RunsBySequence(known)
        return tuple(self._in_log[1].at(sequence, count))

    def holds(self, other: Segment) -> bool:
        """Whether a confirmed claim says nothing that isn't known already."""
        mine, count = self.claim, other.announced
        same_lead = other.downstream - other.sequence == mine.downstream - mine.sequence
        if self.pieces or not same_lead or other.sequence + count > self.end():
            return False
        begins = self.runs_at(other.sequence, 1)[0].upstream
        return other.upstream == begins and other.runs_at(other.sequence, count) == self.runs_at(other.sequence, count)

    def goes_on_with(self, piece: _AnnouncedBatch) -> bool:
        return bool(self.pieces) and piece.claim is self.claim and piece.nth == self.pieces[-1].nth + 1

    def is_interrupted_before(self, piece: _AnnouncedBatch) -> bool:
        """Whether somebody else's records lie between them."""
        return piece.lead is not None and self.lead not in (None, piece.lead)

    def go_on_with(self, piece: _AnnouncedBatch) -> None:
        self.pieces.append(piece)
        self.lead = piece.lead if self.lead is None else self.lead

    def leads_only_to(self, piece: _AnnouncedBatch) -> bool:
        """Whether nobody can have gone on from it and written other records there without a claim."""
        announced_more = self.end() == piece.sequence < self.claim.sequence + max(self._whole.announced, 1)
        return not self.shared and (announced_more or _of_one_pump(self.claim, piece.claim))


def unsettled(claims: Iterable[Segment]) -> list[Segment]:
    """The claims that need evidence from the log, each with the offset from which on it may be there."""
    claims = list(claims)
    healing = [claim for claim in claims if claim.heals and not claim.confirmed]
    first = min((claim.sequence for claim in healing), default=None)
    asked = [claim for claim in claims if claim.batches and (not claim.confirmed or _reaches(claim, first))]
    return [_looked_for(claim, healing) for claim in asked] if healing else asked


def _looked_for(claim: Segment, healing: Iterable[Segment]) -> Segment:
    """The same, but no farther behind the healing claims than it was claimed to be.

    Where the target has lost somebody else's records, too, what lay behind them is copied again farther to the front.
    """
    ahead = [one.downstream + claim.sequence - one.sequence for one in healing if one.sequence <= claim.sequence]
    lowest = min(ahead, default=claim.downstream)
    return dataclasses.replace(claim, downstream=lowest) if lowest < claim.downstream else claim


def arbitrate(claims: Iterable[Segment], evidence: Evidence, log: TargetLog) -> Ruling:
    """Judge all claims of one producer id and epoch on one target partition."""
    settled, asked, doubted, shortened, healing = _judged_anew(claims, evidence, log)
    confirmed = [RunsBySequence(claim) for claim in settled if claim.confirmed]
    places: dict[int, _Place] = defaultdict(_Place)
    for claim in settled:
        place = places[claim.sequence]
        (place.confirmed if claim.confirmed else place.starts).append(claim)
    for judged in asked:
        _judge(judged, log, confirmed)
        for piece in judged.pieces:
            places[piece.sequence].pieces.append(piece)
    if any(piece.match is Match.UNREAD for judged in asked for piece in judged.pieces):
        return Ruling((), undecided="its newest records are not below the high watermark yet", wait=True)
    stretches: list[_Span] = []
    for _, place in sorted(places.items()):
        reason = _decide(place, stretches)
        if reason:
            return Ruling((), undecided=reason)
    ruling = _ruling(stretches, asked)
    told = _Told(ruling.true)
    for place in places.values():
        for piece in place.pieces:
            if piece.match is Match.POSSIBLE and not _agrees(piece, place, told):
                return Ruling((), undecided=_undecidable([piece]))
    rewritten = {claim.key for claim in (*shortened, *ruling.confirmed)}
    gone = [claim for claim in doubted if claim.key not in rewritten]
    healed = tuple(claim for claim in ruling.confirmed if claim.heals)
    settled_keys = rewritten | {claim.key for claim in ruling.false}
    unsettled_yet = (one.claim for one in asked if not one.sent and one.claim.key not in settled_keys)
    nearer = ((claim, _looked_for(claim, healing)) for claim in unsettled_yet)
    return dataclasses.replace(
        ruling,
        confirmed=(*shortened, *ruling.confirmed),
        false=(*ruling.false, *gone),
        moved=tuple(moved for claim, moved in nearer if moved is not claim),
        healed=healed,
    )


class _Anew(NamedTuple):
    """What is to be judged where the target lost what had been confirmed."""

    settled: list[Segment]
    """Claims that need no evidence."""
    asked: list[_Judged]
    """The others, not judged yet."""
    doubted: tuple[Segment, ...] = ()
    """As they were confirmed; those that the log does not show are false."""
    shortened: tuple[Segment, ...] = ()
    """Those of them that begin before: so much is confirmed all the same."""
    healing: tuple[Segment, ...] = ()
    """What the others are judged anew for."""


def _judged_anew(claims: Iterable[Segment], evidence: Evidence, log: TargetLog) -> _Anew:
    """Take the confirmation from what lies behind the first healing claim that may be in the log."""
    claims = list(claims)
    healing = tuple(
        claim
        for claim in claims
        if claim.heals and not claim.confirmed
        if matches(claim, evidence.get(claim.key, MatchedLog()), log)[0].match >= Match.POSSIBLE
    )
    first = min((claim.sequence for claim in healing), default=None)
    settled: list[Segment] = []
    asked: list[_Judged] = []
    doubted: list[Segment] = []
    shortened: list[Segment] = []
    for claim in claims:
        seen = evidence.get(claim.key, MatchedLog())
        if not (claim.confirmed and _reaches(claim, first)):
            if claim.confirmed or not claim.batches:
                settled.append(claim)
            else:
                asked.append(_Judged(claim, seen, sent=False))
            continue
        assert first is not None  # noqa: S101 - it reaches there
        doubted.append(claim)
        kept = _batches_below(claim, first)
        if claim.sequence < first:
            runs = claim.runs_at(claim.sequence, first - claim.sequence)
            shortened.append(dataclasses.replace(claim, runs=runs, batches=claim.batches[:kept]))
            settled.append(shortened[-1])
        if kept < len(claim.batches):
            begins = claim.downstream + sum(batch.records for batch in claim.batches[:kept])
            part = claim.part(kept, len(claim.batches), begins, confirmed=False, shared=claim.shared)
            asked.append(_Judged(dataclasses.replace(part, heals=False), seen, sent=True))
    return _Anew(settled, asked, tuple(doubted), tuple(shortened), healing)


def _batches_below(claim: Segment, sequence: int) -> int:
    """How many of a claim's batches lie wholly below a sequence."""
    end = claim.sequence
    for index, batch in enumerate(claim.batches):
        end += batch.records
        if end > sequence:
            return index
    return len(claim.batches)


def _reaches(claim: Segment, sequence: int | None) -> bool:
    """Whether a claim announced a record at or behind a sequence."""
    return sequence is not None and claim.sequence + max(claim.announced, 1) > sequence


def _judge(judged: _Judged, log: TargetLog, confirmed: Sequence[RunsBySequence]) -> None:
    claim = judged.claim
    sequence = claim.sequence
    found = zip(matches(claim, judged.seen, log), claim.batch_runs(), strict=True)
    for index, ((match, there), runs) in enumerate(found):
        lead = None if there is None or match < Match.POSSIBLE else there.offset - there.sequence
        if match is Match.OPEN and judged.sent:
            match = Match.NO
        piece = _AnnouncedBatch(judged, index, sequence, runs, match, lead)
        if match is Match.POSSIBLE and any(_contradicts(piece, settled) for settled in confirmed):
            piece = piece._replace(match=Match.NO)
        judged.pieces.append(piece)
        sequence += _count(piece)
    judged.ahead = _ahead(judged.pieces)


def _decide(place: _Place, stretches: list[_Span]) -> str:
    """Go on at the next sequence for which there are claims; returns why that can't be told, if it can't."""
    before = stretches[-1] if stretches else None
    best = max((piece.match for piece in place.pieces), default=Match.NO)
    if place.confirmed and not (best is Match.SURE and _overrule(place.pieces, place.confirmed[-1])):
        settled = _confirmed(place.confirmed)
        shared = settled.shared or not all(_of_one_pump(settled, one) for one in place.confirmed)
        if before is None or not before.holds(settled):
            stretches.append(_Span(settled, [], shared))
        return ""
    if best < Match.POSSIBLE:
        # A start counts where nothing is before it; what an operator set, anywhere.
        starts = [start for start in place.starts if before is None or start.altered]
        if starts:
            stretches.append(_Span(min(starts, key=_upstream), [], shared=len(starts) > 1))
        return ""
    rivals = [piece for piece in place.pieces if piece.match is best]
    if best >= Match.LIKELY and len({piece.runs for piece in rivals}) > 1:
        return _undecidable(rivals)
    chosen = max(
        rivals,
        key=lambda piece: (
            before is not None and before.goes_on_with(piece),
            piece.judged.ahead[piece.nth],
        ),
    )
    shared = not all(_of_one_pump(chosen.claim, piece.claim) for piece in rivals)
    if before is None:
        stretches.append(_Span(chosen.claim, [chosen], shared))
        return ""
    if before.goes_on_with(chosen) and (best >= Match.LIKELY or not before.shared):
        if before.is_interrupted_before(chosen):
            stretches.append(_Span(chosen.claim, [chosen], before.shared or shared))
        else:
            before.go_on_with(chosen)
            before.shared |= shared
        return ""
    overlap = min(before.end() - chosen.sequence, _count(chosen))
    if overlap > 0:
        if best is Match.POSSIBLE or before.runs_at(chosen.sequence, overlap) == first_of(chosen.runs, overlap):
            before.shared |= not _of_one_pump(before.claim, chosen.claim)
            return ""
    elif before.runs_at(chosen.sequence, _count(chosen)) == chosen.runs:
        shared = True  # somebody may have gone on from the claim before
    elif best is Match.POSSIBLE and not place.altered and not before.leads_only_to(chosen):
        return _undecidable(rivals)
    stretches.append(_Span(chosen.claim, [chosen], shared))
    return ""


def _confirmed(claims: Sequence[Segment]) -> Segment:
    """The last one, or one that says the same and more."""
    last = claims[-1]
    if len(claims) == 1:
        return last
    same = [claim for claim in claims if claim.runs_at(last.sequence, last.announced) == joined(last.runs)]
    return max(same, key=_announced, default=last)


def _overrule(pieces: Iterable[_AnnouncedBatch], confirmed: Segment) -> bool:
    """Whether the log shows others than those by which a claim was once confirmed."""
    sure = [piece for piece in pieces if piece.match is Match.SURE]
    return all(confirmed.runs_at(piece.sequence, _count(piece)) != piece.runs for piece in sure)


def _of_one_pump(one: Segment, other: Segment) -> bool:
    return abs(one.incarnation - other.incarnation) < ONE_PUMP


def _ruling(stretches: Sequence[_Span], asked: Iterable[_Judged]) -> Ruling:
    true: list[Segment] = []
    confirmed: list[Segment] = []
    kept: set[ClaimKey] = set()
    for stretch in stretches:
        if not stretch.pieces:
            true.append(stretch.claim)
            continue
        claim, first, last = stretch.claim, stretch.pieces[0], stretch.pieces[-1]
        ahead = [piece.match for piece in last.judged.pieces[last.nth + 1 :]]
        stop = len(claim.batches) if ahead and ahead[0] is Match.OPEN else last.nth + 1
        lead = claim.downstream - claim.sequence if stretch.lead is None else stretch.lead
        settled = Match.OPEN not in ahead
        part = claim.part(first.nth, stop, first.sequence + lead, confirmed=settled, shared=stretch.shared)
        true.append(part)
        if settled:
            confirmed.append(part)
        if first.nth == 0:
            kept.add(claim.key)
    # What may have been sent by two is told by a confirmed claim only: until there is one, both stay.
    spared = len(confirmed) < sum(bool(stretch.pieces) for stretch in stretches)
    false = [
        one.claim for one in asked if one.claim.key not in kept and _has_failed(one.pieces, even_in_part=not spared)
    ]
    return Ruling(tuple(true), tuple(confirmed), tuple(false))


def _has_failed(pieces: Iterable[_AnnouncedBatch], *, even_in_part: bool) -> bool:
    """Whether nothing of a claim can come any more; `even_in_part`: what of it is in the log may be another's."""
    return all(piece.match is Match.NO or (even_in_part and piece.match is not Match.OPEN) for piece in pieces)


def _contradicts(piece: _AnnouncedBatch, settled: RunsBySequence) -> bool:
    """Whether a confirmed claim leaves no room for it: one begins inside it, or had other records there."""
    end, confirmed = piece.sequence + _count(piece), settled.segment
    if confirmed.sequence <= piece.sequence:
        overlap = min(confirmed.sequence + settled.announced, end) - piece.sequence
        return overlap > 0 and tuple(settled.at(piece.sequence, overlap)) != first_of(piece.runs, overlap)
    return confirmed.sequence < end


def _agrees(piece: _AnnouncedBatch, place: _Place, told: _Told) -> bool:
    """Whether what may have been written there is what is believed, or is known not to have been."""
    if any(one.match >= Match.LIKELY for one in place.pieces):
        return True
    return told.runs(piece.sequence, _count(piece)) == piece.runs


class _Told:
    """What claims in order of sequence, each of which counts until the next, say of any records."""

    def __init__(self, claims: Sequence[Segment]) -> None:
        self._sequences = [claim.sequence for claim in claims]
        self._runs = [RunsBySequence(claim) for claim in claims]

    def runs(self, sequence: int, count: int) -> tuple[Run, ...]:
        """The runs of so many records from a sequence on."""
        found: list[Run] = []
        at, end = max(bisect_right(self._sequences, sequence) - 1, 0), sequence + count
        for index in range(at, len(self._sequences)):
            following = self._sequences[index + 1] if index + 1 < len(self._sequences) else end
            start, stop = max(self._sequences[index], sequence), min(end, following)
            if start >= end:
                break
            if start < stop:
                found += self._runs[index].at(start, stop - start)
        return joined(found)


def _ahead(pieces: Sequence[_AnnouncedBatch]) -> list[int]:
    """For each batch of a claim how many of the next ones may be in the log."""
    counts = [0] * len(pieces)
    for index in range(len(pieces) - 2, -1, -1):
        counts[index] = counts[index + 1] + 1 if pieces[index + 1].match >= Match.POSSIBLE else 0
    return counts


def _count(piece: _AnnouncedBatch) -> int:
    return piece.claim.batches[piece.nth].records


def _undecidable(pieces: Sequence[_AnnouncedBatch]) -> str:
    offsets = " or ".join(str(upstream) for upstream in sorted({piece.runs[0].upstream for piece in pieces}))
    return (
        f"rival pumps may have copied different records as sequence {pieces[0].sequence}: source offset {offsets}, or "
        "others; the target's log can't tell any more"
    )


def _announced(claim: Segment) -> int:
    return claim.announced


def _upstream(claim: Segment) -> int:
    return claim.upstream
