"""The offset map of one target partition, as claims and the log tell it.

Final claims go into the map for good; the newest claims are kept, and judged again at each refresh. Without I/O:
`map_keeper` reads claims and logs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sparkmirror.exact.durable.claim_log import KEPT_CLAIMS
from sparkmirror.exact.durable.claims import Claim, ClaimKey, Retracted
from sparkmirror.exact.durable.noted_progress import ReportedProgress
from sparkmirror.exact.maps.offset_map import Copied, OffsetMap
from sparkmirror.exact.position.arbitration import arbitrate
from sparkmirror.exact.position.decision import appended, unwrap
from sparkmirror.exact.position.matching import TargetLog
from sparkmirror.exact.position.questioned_claims import Evidence, questioned
from sparkmirror.kafka.cluster.log_tail import LastBatch
from sparkmirror.kafka.cluster.range_reader import OffsetBounds
from sparkmirror.kafka.wire.topic_ids import NO_ID, same_topic

MEMORY_RUNS = 20_000
"""Most runs of one map in memory, 24 bytes each; longer maps use a file."""


class Unmapped(NamedTuple):
    """Reason why a partition has no map now."""

    reason: str


NOTHING_YET = Unmapped("nothing was copied yet")
NO_PLACES = Unmapped(
    "a query makes the rows: only one that selects and filters, and keeps topic, partition and offset, has places that "
    "translate, as long as no other producer writes there"
)
PLACES_UNKNOWN = Unmapped("where a query's records are is not known: the target's log is shorter than was told")
CLAIMS_LOST = Unmapped("the segments topic lost claims on copied records, so where they came from is not known")


class LogBounds(NamedTuple):
    """A target partition's log start, and its high watermark."""

    start: int
    end: int


class ForeignRange(NamedTuple):
    """Target offsets [first, end) that a foreign mirror wrote before this flow began.

    This flow began at source offset `upstream`, after these target offsets.
    """

    upstream: int
    first: int
    end: int

    @property
    def reason(self) -> str:
        """Reason why an offset in the range has no known translation."""
        return (
            f"this flow began at offset {self.upstream} of the source and {self.end} of the target; target "
            "offsets of records that another mirror copied earlier are not known"
        )


class PartitionMap:
    """One target partition's map, as the last refresh left it.

    With `at_once`, no claim is final before all claims were read, because some of the newest claims have lower
    sequences than older claims.
    """

    def __init__(self, *, at_once: bool = False) -> None:
        self.offsets = OffsetMap(MEMORY_RUNS)
        self.log = LogBounds(0, 0)
        self._claims: dict[ClaimKey, Claim] = {}
        self._fold_above = 2 * KEPT_CLAIMS
        self._floor = 0
        """Sequence below which the map is final."""
        self._due = True
        """True if claims are new, or no map exists yet."""
        self._late: list[Claim] = []
        """Claims that came below the floor; they must agree with the map."""
        self._at_once = at_once
        self._broken = False
        self._starts: dict[ClaimKey, Claim] = {}
        """Claims on this flow's starts after foreign records."""
        self._ended: dict[ClaimKey, Claim] = {}
        """Claims behind which other claims were lost."""
        self.source_topic_id = NO_ID
        """The last copied record's source topic id, once a map is made."""

    def downstream(self, upstream: int) -> int | None:
        """Translate a consumer's next offset to the target; `None` if not copied yet.

        The result is never outside the target's log: offsets removed by retention are passed over.
        """
        offset = self.offsets.downstream(upstream)
        return None if offset is None else max(offset, self.log.start)

    def passed_over(self, upstream: int) -> OffsetBounds | None:
        """Return the source offsets from `upstream` on that `downstream` passes over.

        The target has deleted their copies, or the flow began after them. The source may never have had a record
        there: gaps before the first copied record look the same. `None`: it passes over none, or there is no answer.
        """
        offset = self.offsets.downstream(upstream)
        if offset is None or self.foreign_range(upstream=upstream) is not None:
            return None
        is_before_a_start = upstream < self.offsets.upstream_start or any(
            upstream < start.upstream and start.downstream <= offset for start in self._starts.values()
        )
        if offset >= self.log.start and not is_before_a_start:
            return None
        following = self.offsets.present_upstream(max(offset, self.log.start))
        end = self.offsets.copied.upstream if following is None else following
        return OffsetBounds(upstream, end) if upstream < end else None

    def upstream(self, downstream: int) -> int | None:
        """Translate a copy consumer's next offset back to the source.

        `None` if `downstream` is not written yet. See `OffsetMap.present_upstream`.
        """
        return self.offsets.present_upstream(downstream)

    def foreign_range(self, *, upstream: int | None = None, downstream: int | None = None) -> ForeignRange | None:
        """Return the foreign range that may hold an offset's copy.

        Return `None` if the map's answer is complete.
        """
        for start in self._starts.values():
            first = self.offsets.end_below(start.downstream)
            if first == start.downstream or start.downstream <= self.log.start:
                continue
            if upstream is not None and upstream < start.upstream:
                offset = self.offsets.downstream(upstream)
                passes_over = offset is None or offset >= start.downstream
                passes_over = passes_over and not self.offsets.began_again(upstream, start.downstream)
            else:
                passes_over = downstream is not None and first <= downstream < start.downstream
            if passes_over:
                return ForeignRange(start.upstream, first, start.downstream)
        return None

    @property
    def others(self) -> tuple[ForeignRange, ...]:
        """Ranges that foreign mirrors copied between this flow's records, in order."""
        between = [
            ForeignRange(start.upstream, self.offsets.end_below(start.downstream), start.downstream)
            for start in self._starts.values()
        ]
        return tuple(sorted(stretch for stretch in between if 0 < stretch.first < stretch.end))

    def is_of_another_turn(self, upstream: int) -> bool:
        """True if a reader at a source offset reads the opposite flow's copies.

        Or it has just read them. Then the position at the target is not for this flow to set (M5).
        """
        turns = [start for start in self._starts.values() if start.turn]
        ended = any(
            start.upstream == upstream and self.offsets.end_below(start.downstream) != start.downstream
            for start in turns
        )
        return ended or (bool(turns) and self.foreign_range(upstream=upstream) is not None)

    def foreign_from(self, first: int) -> int | None:
        """Return how many target offsets from `first` on are not this flow's records.

        The flow's records there follow a start at or behind `first`; None if the claims do not tell.
        """
        copied = self.offsets.copied
        if copied.downstream <= first:
            return max(self.log.end - first, 0)
        starts = [start for start in self._starts.values() if start.downstream >= first]
        if not starts:
            return None
        begin = min(starts, key=_downstream)
        between = (copied.downstream - copied.records) - (begin.downstream - begin.sequence)
        return begin.downstream - first + between + self.log.end - copied.downstream

    @property
    def begins(self) -> int:
        """Downstream offset of this flow's last start; later records are at or after it."""
        return max((start.downstream for start in self._starts.values()), default=0)

    @property
    def lowest_upstream(self) -> int:
        """Lowest source offset that this flow can have copied; 0 if its claims don't tell.

        Starts tell, since claims on deleted records expire.
        """
        first = min(self._starts.values(), key=_sequence, default=None)
        if first is None or not first.begins_copy or not same_topic(first.source_topic_id, self.source_topic_id):
            return 0
        return min(self.offsets.upstream_start, *(start.upstream for start in self._starts.values()))

    @property
    def deleted_to(self) -> int:
        """Source offset after the flow's last record that the target deleted; 0: none."""
        foreign = self.foreign_range(downstream=self.log.start)
        if foreign is not None:  # where its records came from is not known
            last = self.upstream(foreign.first - 1) if foreign.first else None
            return 0 if last is None else last + 1
        at_start = self.upstream(self.log.start) if self.log.start < self.end else None
        return self.offsets.copied.upstream if at_start is None else at_start

    @property
    def taken_over(self) -> bool:
        """True if this flow's first start here continued a foreign mirror's copy."""
        return any(start.downstream <= self.offsets.downstream_start for start in self._starts.values())

    @property
    def end(self) -> int:
        """Downstream offset after the last copied record."""
        return self.offsets.copied.downstream

    @property
    def broken(self) -> bool:
        """True if final claims turned out false: the target has lost records."""
        return self._broken

    def take(self, record: Claim | Retracted) -> None:
        """Take in the segments topic's next record about this partition."""
        self._ended.pop(record.key, None)
        if isinstance(record, Claim) and record.ended:
            self._ended[record.key] = record
        if isinstance(record, Claim) and record.is_start:
            self._starts[record.key] = record
        elif isinstance(record, Claim) and record.heals:
            self._starts = {key: start for key, start in self._starts.items() if start.downstream <= record.downstream}
        if isinstance(record, Retracted):
            self._starts.pop(record.key, None)
            self._due |= self._claims.pop(record.key, None) is not None
        elif record.sequence >= self._floor:
            self._claims[record.key] = record
            self._due = True
            if len(self._claims) > self._fold_above and not self._at_once:
                self._fold_claims()
                # No claim after an open claim can become final: a new try with each claim would be quadratic.
                self._fold_above = max(2 * len(self._claims), 2 * KEPT_CLAIMS)
        else:
            self._late.append(record)
            self._broken |= record.heals
            self._due = True

    @property
    def _has_gap(self) -> bool:
        """True if the log has records that no claim covers: no offset in it is safe."""
        return any(claim.downstream + claim.announced >= self.log.start for claim in self._ended.values())

    def _fold_claims(self) -> None:
        """Make the oldest claims final, up to a confirmed claim without open ones before."""
        confirmed = sorted({claim.sequence for claim in self._claims.values() if claim.confirmed})
        first_open = min((claim.sequence for claim in questioned(self._claims.values())), default=None)
        floors = confirmed[:-KEPT_CLAIMS]
        floor = max((sequence for sequence in floors if first_open is None or sequence <= first_open), default=0)
        if floor <= self._floor:
            return
        oldest = [key for key in self._claims if key[0] < floor]
        claims = [self._claims.pop(key) for key in oldest]
        self.offsets.fold(arbitrate(claims, {}, TargetLog(0, 0, None)).true, floor)
        self._floor = floor

    def open_claims(self) -> list[Claim]:
        """Return the claims that only the log can decide."""
        return questioned(self._claims.values())

    def bound(self, log: LogBounds) -> None:
        """Take in the log's present bounds."""
        self._due |= log.end != self.log.end
        self._broken |= log.end < self.offsets.copied.downstream
        self.log = log

    def stands(self, reached: ReportedProgress | None) -> bool:
        """Return True if the map is up to date, if need be by a pump's report."""
        if self.open_claims() or self._broken or self._has_gap:
            return False
        if reached is not None and (copied := self._at(reached)) is not None:
            if self._due or copied != self.offsets.copied:
                self._renew(arbitrate(self._claims.values(), {}, TargetLog(*self.log, None)).true, copied)
            return True
        return not self._due

    def _at(self, reached: ReportedProgress) -> Copied | None:
        """Return the progress at the time of a pump's report.

        Return `None` if the report contradicts the claims.
        """
        if reached.downstream > self.log.end or reached.downstream < self.offsets.copied.downstream:
            return None
        claims = sorted(self._claims.values(), key=_sequence)
        started = [claim for claim in claims if claim.downstream <= reached.downstream]
        if not started:
            return None
        records = started[-1].sequence + reached.downstream - started[-1].downstream
        before = [claim for claim in started if claim.sequence < records + claim.altered]
        upstream = (before[-1] if before else claims[0]).next_upstream(records)
        return Copied(records, reached.upstream, reached.downstream) if upstream <= reached.upstream else None

    def judge(self, evidence: Evidence, tail: LastBatch | None, reached: ReportedProgress | None) -> Unmapped | None:
        """Let the log decide the open claims; return the reason if undecidable."""
        claims = list(self._claims.values())
        sequence = appended(tail.last_sequence if tail else None, self.log.end, claims)
        ruling = arbitrate(claims, evidence, TargetLog(*self.log, sequence))
        if ruling.undecided:
            return Unmapped(ruling.undecided)
        if self._has_gap:
            return CLAIMS_LOST
        for claim in ruling.false:
            self._claims.pop(claim.key, None)
        for claim in ruling.confirmed:
            self._claims[claim.key] = claim
        if not ruling.true:
            return NOTHING_YET
        copied = copied_below(ruling.true, tail, self.log.end)
        if (
            tail is None
            and reached is not None
            and reached.downstream == self.log.end
            and ruling.true[-1].upstream <= reached.upstream < copied.upstream
        ):
            return Unmapped(
                "a foreign producer wrote to the target, where all records are deleted: known again when more is copied"
            )
        self._renew(ruling.true, copied)
        if reached is not None:
            self.offsets.pass_over(reached.upstream, reached.downstream)
        return None

    def _renew(self, claims: Sequence[Claim], copied: Copied) -> None:
        self.offsets.renew(claims, copied)
        if claims:
            self.source_topic_id = claims[-1].source_topic_id
        self._broken |= any(self.offsets.upstream(late.downstream) != late.upstream for late in self._late)
        self._late.clear()
        self._at_once = self._due = False

    @property
    def empty(self) -> bool:
        """True if no claim was ever made."""
        return not self._claims

    def known_records(self) -> list[tuple[int, int]]:
        """Return records that a map made again must know: upstream and downstream offset.

        These are the newest claims' first records, and the last record.
        """
        end = self.offsets.copied.downstream
        known = [
            (claim.upstream, claim.downstream)
            for claim in self._claims.values()
            if claim.confirmed and claim.downstream < end
        ]
        upstream = self.offsets.upstream(end - 1) if end > self.offsets.downstream_start else None
        return known if upstream is None else [*known, (upstream, end - 1)]

    def close(self) -> None:
        """Free the map's file, if any."""
        self.offsets.close()


def copied_below(claims: Sequence[Claim], tail: LastBatch | None, high_watermark: int) -> Copied:
    """Return the copy's progress.

    The flow's last batch below the high watermark tells the progress; without such a batch, the end of the log does.
    """
    newest = claims[-1]
    expected = max(newest.sequence + high_watermark - newest.downstream, 0)
    if tail is not None:
        records = unwrap(tail.last_sequence + 1, near=expected)
        downstream = tail.next_offset
    elif newest.turn:  # whatever lies behind the start of a turn may be a later turn's
        records, downstream = newest.sequence, newest.downstream
    elif newest.is_start:  # all records after a start are foreign
        records, downstream = newest.sequence, high_watermark
    else:
        records, downstream = expected, high_watermark
    covering = [claim for claim in claims if claim.sequence < records + claim.altered]
    upstream = (covering[-1] if covering else claims[0]).next_upstream(records)
    return Copied(records, upstream, downstream)


def _sequence(claim: Claim) -> int:
    return claim.sequence


def _downstream(claim: Claim) -> int:
    return claim.downstream
