"""The log arbitrates between claims (R14): which of them happened.

Confirmed claims did. The others are judged by the batches that lie in the target's log: a claim is true
as far as the batches that it announced are there, one after the other from its sequence on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sparkmirror.offsets.segments import AnnouncedBatch, Segment
from sparkmirror.wire.batches import CODEC_MASK, DELETE_HORIZON_BIT, TIMESTAMP_TYPE_BIT


class StoredBatch(NamedTuple):
    """A batch of ours as it lies in the target's log."""

    sequence: int
    """Of its first record; not wrapped."""
    offset: int
    span: int
    """How many sequences it spans; one that was compacted keeps them all."""
    records: int
    attributes: int
    crc: int
    base_timestamp: int


Evidence = Mapping[int, Sequence[StoredBatch] | None]
"""By a claim's incarnation: our batches from its sequence on, up to one more than it announces.

Empty: the log has gone past that sequence, but no batch begins there. None: what was there the cleaner has removed.
No entry: the log does not reach there (yet, or no more).
"""


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


def unsettled(claims: Iterable[Segment]) -> list[Segment]:
    """The claims that need evidence from the log."""
    return [claim for claim in claims if not claim.confirmed and claim.batches]


def arbitrate(claims: Iterable[Segment], evidence: Evidence, log_start: int = 0) -> Ruling:
    """Judge all claims of one producer id and epoch on one target partition.

    What lay below `log_start`, or was removed by the cleaner, can't be judged any more: claims on it that agree are
    believed.
    """
    by_sequence: dict[int, list[Segment]] = defaultdict(list)
    for claim in claims:
        by_sequence[claim.sequence].append(claim)
    true: list[Segment] = []
    confirmed: list[Segment] = []
    false: list[Segment] = []
    for _, rivals in sorted(by_sequence.items()):
        asked = unsettled(rivals)
        settled = [claim for claim in rivals if claim.confirmed]
        if settled:
            true.append(min(settled, key=_incarnation))
            false += asked
            continue
        known = [claim for claim in asked if evidence.get(claim.incarnation) is not None]
        found = [_found(claim, evidence[claim.incarnation] or ()) for claim in known]
        longest = max((claim.announced for claim in found if claim is not None), default=0)
        best = [claim for claim in found if claim is not None and claim.announced == longest]
        gone = [claim for claim in asked if _is_gone(claim, evidence, log_start)]
        believed = best or gone
        if len({claim.runs for claim in believed}) > 1:
            return Ruling((), undecided=_undecidable(believed))
        if best:
            true.append(best[0])
            false += [claim for claim in known if claim.incarnation != best[0].incarnation]
            if best[0].confirmed:
                confirmed.append(best[0])
            continue
        false += known
        starts = [claim for claim in rivals if not claim.batches]
        if gone:
            true.append(gone[0])
        elif starts:
            true.append(min(starts, key=_upstream))
    return Ruling(tuple(true), tuple(confirmed), tuple(false))


def _found(claim: Segment, stored: Sequence[StoredBatch]) -> Segment | None:
    """The claim as far as it is in the log; confirmed, if nothing more of it can come."""
    at = {batch.sequence: batch for batch in stored}
    end = max((batch.sequence + batch.span for batch in stored), default=0)
    matched = 0
    sequence = claim.sequence
    for announced in claim.batches:
        if sequence >= end or not _is_there(announced, sequence, at):
            break
        sequence += announced.records
        matched += 1
    if not matched:
        return None
    return claim.first(matched, stored[0].offset, confirmed=matched == len(claim.batches) or sequence < end)


def _is_there(announced: AnnouncedBatch, sequence: int, at: Mapping[int, StoredBatch]) -> bool:
    """Whether the batch is in the log, or was: a cleaner leaves a hole where it removed a whole one."""
    if sequence in at:
        return _is(announced, at[sequence])
    end = sequence + announced.records
    return not any(start < end and sequence < start + batch.span for start, batch in at.items())


def _is_gone(claim: Segment, evidence: Evidence, log_start: int) -> bool:
    """Whether the log had what would tell, and has it no more."""
    if claim.incarnation in evidence:
        return evidence[claim.incarnation] is None
    return claim.downstream < log_start


def _is(announced: AnnouncedBatch, there: StoredBatch) -> bool:
    """Whether a stored batch is the announced one.

    The CRC tells, unless the broker stamped or compressed anew, or its cleaner went over it.
    """
    if announced.records != there.span:
        return False
    if there.records != there.span or there.attributes & DELETE_HORIZON_BIT:
        return True
    if there.attributes & TIMESTAMP_TYPE_BIT or there.attributes & CODEC_MASK != announced.codec:
        return announced.base_timestamp == there.base_timestamp
    return announced.crc == there.crc


def _undecidable(claims: Sequence[Segment]) -> str:
    return (
        f"rival pumps claimed source offsets {' and '.join(str(claim.upstream) for claim in claims[:2])} for sequence "
        f"{claims[0].sequence}, and the target's log can't tell any more which of them was copied"
    )


def _incarnation(claim: Segment) -> int:
    return claim.incarnation


def _upstream(claim: Segment) -> int:
    return claim.upstream
