"""The log arbitrates between claims (R14): which of the batches that they announce happened.

Confirmed claims did. The others are judged batch by batch: one in the log is its claim's, wherever in the claim
it stands, for a rival may have taken the place of the batch before it. What a claim announced counts until the log
shows something else; then its last run goes on until the next batch that is in the log and in a claim.

Where a batch can't be recognized any more (`Match.POSSIBLE`), a claim is believed unless somebody else may have
written there: a rival that claimed other records for it, or one that went on without a claim from the claim
before. The latter can't be where that claim announced a batch that did not come (the next pump must then claim
what it sends), nor where it is the same pump's (which knows what it claimed; and a pump claims what it sends first
after an unclean takeover).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import NamedTuple

from sparkmirror.offsets.matching import Match, Seen, TargetLog, matches, stored_at
from sparkmirror.offsets.segments import Segment, first_of, joined
from sparkmirror.wire.splice import Run

Evidence = Mapping[int, Seen]
"""By a claim's incarnation."""

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
    undecided: str = ""
    """Why it can't be told, if it can't."""
    wait: bool = False
    """It can be told soon."""


class _Piece(NamedTuple):
    """One announced batch of a claim."""

    claim: Segment
    nth: int
    sequence: int
    runs: tuple[Run, ...]
    match: Match
    lead: int | None
    """Its offset less its sequence, if it is in the log."""


@dataclass(slots=True)
class _Place:
    """What is claimed for one sequence."""

    confirmed: list[Segment] = field(default_factory=list)
    """If they differ, the target lost what the older ones were confirmed by."""
    starts: list[Segment] = field(default_factory=list)
    pieces: list[_Piece] = field(default_factory=list)


@dataclass(slots=True)
class _Stretch:
    """Announced batches of one claim that are in the log one after the other; no pieces: the claim as it is."""

    claim: Segment
    pieces: list[_Piece]

    def end(self) -> int:
        """The sequence after what is known to be true."""
        if not self.pieces:
            return self.claim.sequence + self.claim.announced
        last = self.pieces[-1]
        return last.sequence + self.claim.batches[last.nth].records

    def holds(self, other: _Stretch) -> bool:
        """Whether a confirmed claim says nothing that isn't known already."""
        mine, its = self.claim, other.claim
        known = its.runs_at(its.sequence, its.announced) == mine.runs_at(its.sequence, its.announced)
        known = known and its.upstream == mine.upstream_of(its.sequence)
        same_lead = its.downstream - its.sequence == mine.downstream - mine.sequence
        return not self.pieces and other.end() <= self.end() and same_lead and known

    def goes_on_with(self, piece: _Piece) -> bool:
        return bool(self.pieces) and piece.claim is self.claim and piece.nth == self.pieces[-1].nth + 1


def unsettled(claims: Iterable[Segment]) -> list[Segment]:
    """The claims that need evidence from the log."""
    return [claim for claim in claims if not claim.confirmed and claim.batches]


def arbitrate(claims: Iterable[Segment], evidence: Evidence, log: TargetLog) -> Ruling:
    """Judge all claims of one producer id and epoch on one target partition."""
    places: dict[int, _Place] = defaultdict(_Place)
    judged: dict[int, list[_Piece]] = {}
    asked: list[Segment] = []
    for claim in claims:
        place = places[claim.sequence]
        if claim.confirmed:
            place.confirmed.append(claim)
        elif not claim.batches:
            place.starts.append(claim)
        else:
            asked.append(claim)
            judged[claim.incarnation] = _pieces(claim, evidence.get(claim.incarnation, Seen()), log)
            for piece in judged[claim.incarnation]:
                places[piece.sequence].pieces.append(piece)
    if any(piece.match is Match.UNREAD for pieces in judged.values() for piece in pieces):
        return Ruling((), undecided="its newest records are not below the high watermark yet", wait=True)
    stretches: list[_Stretch] = []
    for _, place in sorted(places.items()):
        reason = _decide(place, stretches, judged)
        if reason:
            return Ruling((), undecided=reason)
    ruling = _ruling(stretches, judged, asked)
    settled = [stretch.claim for stretch in stretches if stretch.claim.confirmed]
    for place in places.values():
        for piece in place.pieces:
            if piece.match is Match.POSSIBLE and not _agrees(piece, place, settled, ruling.true):
                return Ruling((), undecided=_undecidable([piece]))
    return ruling


def _pieces(claim: Segment, seen: Seen, log: TargetLog) -> list[_Piece]:
    pieces = []
    sequence = claim.sequence
    for index, match in enumerate(matches(claim, seen, log)):
        there = stored_at(sequence, seen)
        lead = None if there is None or match < Match.POSSIBLE else there.offset - there.sequence
        count = claim.batches[index].records
        pieces.append(_Piece(claim, index, sequence, claim.runs_at(sequence, count), match, lead))
        sequence += count
    return pieces


def _decide(place: _Place, stretches: list[_Stretch], judged: Mapping[int, Sequence[_Piece]]) -> str:
    """Go on at the next sequence for which there are claims; returns why that can't be told, if it can't."""
    before = stretches[-1] if stretches else None
    best = max((piece.match for piece in place.pieces), default=Match.NO)
    if place.confirmed and not (best is Match.SURE and _overrule(place.pieces, place.confirmed[-1])):
        settled = _Stretch(_confirmed(place.confirmed), [])
        if before is None or not before.holds(settled):
            stretches.append(settled)
        return ""
    if best < Match.POSSIBLE:
        if place.starts and before is None:
            stretches.append(_Stretch(min(place.starts, key=_upstream), []))
        return ""
    rivals = [piece for piece in place.pieces if piece.match is best]
    if best >= Match.LIKELY and len({piece.runs for piece in rivals}) > 1:
        return _undecidable(rivals)
    chosen = max(rivals, key=lambda piece: (before is not None and before.goes_on_with(piece), _ahead(piece, judged)))
    if before is None:
        stretches.append(_Stretch(chosen.claim, [chosen]))
        return ""
    if before.goes_on_with(chosen):
        before.pieces.append(chosen)
        return ""
    overlap = min(before.end() - chosen.sequence, _count(chosen))
    if overlap > 0:
        if best is Match.POSSIBLE or before.claim.runs_at(chosen.sequence, overlap) == first_of(chosen.runs, overlap):
            return ""
    elif best is Match.POSSIBLE:
        if before.claim.runs_at(chosen.sequence, _count(chosen)) == chosen.runs:
            return ""  # whoever wrote it
        if not _believed(chosen, before):
            return _undecidable(rivals)
    stretches.append(_Stretch(chosen.claim, [chosen]))
    return ""


def _confirmed(claims: Sequence[Segment]) -> Segment:
    """The last one, or one that says the same and more."""
    last = claims[-1]
    same = [claim for claim in claims if claim.runs_at(last.sequence, last.announced) == joined(last.runs)]
    return max(same, key=_announced, default=last)


def _overrule(pieces: Iterable[_Piece], confirmed: Segment) -> bool:
    """Whether the log shows others than those by which a claim was once confirmed."""
    sure = [piece for piece in pieces if piece.match is Match.SURE]
    return all(confirmed.runs_at(piece.sequence, _count(piece)) != piece.runs for piece in sure)


def _believed(piece: _Piece, before: _Stretch) -> bool:
    """Whether nobody can have gone on from the claim before and written other records there, without a claim."""
    claim = before.claim
    announced_more = before.end() == piece.sequence < claim.sequence + max(claim.announced, 1)
    return announced_more or 0 < piece.claim.incarnation - claim.incarnation < ONE_PUMP


def _ruling(stretches: Sequence[_Stretch], judged: Mapping[int, Sequence[_Piece]], asked: Iterable[Segment]) -> Ruling:
    true: list[Segment] = []
    confirmed: list[Segment] = []
    kept: set[int] = set()
    for stretch in stretches:
        if not stretch.pieces:
            true.append(stretch.claim)
            continue
        claim, first, last = stretch.claim, stretch.pieces[0], stretch.pieces[-1]
        ahead = [piece.match for piece in judged[claim.incarnation][last.nth + 1 :]]
        stop = len(claim.batches) if ahead and ahead[0] is Match.OPEN else last.nth + 1
        expected = claim.downstream - claim.sequence
        lead = next((piece.lead for piece in stretch.pieces if piece.lead is not None), expected)
        settled = Match.OPEN not in ahead
        part = claim.part(first.nth, stop, first.sequence + lead, confirmed=settled)
        true.append(part)
        if settled:
            confirmed.append(part)
        if first.nth == 0:
            kept.add(claim.incarnation)
    false = [
        claim
        for claim in asked
        if claim.incarnation not in kept and all(piece.match is not Match.OPEN for piece in judged[claim.incarnation])
    ]
    return Ruling(tuple(true), tuple(confirmed), tuple(false))


def _agrees(piece: _Piece, place: _Place, settled: Sequence[Segment], true: Sequence[Segment]) -> bool:
    """Whether what may have been written there is what is believed, or is known not to have been."""
    count = _count(piece)
    if place.confirmed or any(one.match >= Match.LIKELY for one in place.pieces):
        return True
    for claim in settled:
        known = claim.sequence + claim.announced
        if claim.sequence < piece.sequence < known:
            overlap = min(known - piece.sequence, count)
            if claim.runs_at(piece.sequence, overlap) != first_of(piece.runs, overlap):
                return True
    return _told(true, piece.sequence, count) == piece.runs


def _told(true: Sequence[Segment], sequence: int, count: int) -> tuple[Run, ...]:
    """The runs of so many records from a sequence on, by claims in order."""
    runs: list[Run] = []
    for claim, following in zip_longest(true, true[1:]):
        start = max(claim.sequence, sequence)
        end = min(sequence + count, following.sequence if following else sequence + count)
        if start < end:
            runs += claim.runs_at(start, end - start)
    return joined(runs)


def _ahead(piece: _Piece, judged: Mapping[int, Sequence[_Piece]]) -> int:
    """How many more batches of its claim follow."""
    following = judged[piece.claim.incarnation][piece.nth + 1 :]
    return next((count for count, one in enumerate(following) if one.match < Match.POSSIBLE), len(following))


def _count(piece: _Piece) -> int:
    return piece.claim.batches[piece.nth].records


def _undecidable(pieces: Sequence[_Piece]) -> str:
    offsets = " or ".join(str(upstream) for upstream in sorted({piece.runs[0].upstream for piece in pieces}))
    return (
        f"rival pumps may have copied different records as sequence {pieces[0].sequence}: source offset {offsets}, or "
        "others; the target's log can't tell any more"
    )


def _announced(claim: Segment) -> int:
    return claim.announced


def _upstream(claim: Segment) -> int:
    return claim.upstream
