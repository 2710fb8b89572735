"""The exact offset map of one target partition: upstream to downstream and back, for any offset.

Made from the true claims of the partition, with bounded memory (`runs`). An answer takes microseconds.

Where the source's log was cut and written anew, or the topic created anew, several claims speak of the same upstream
offsets. Going downstream the newest counts: a claim that goes back to an upstream offset says that what the source
once had from there on is no more. Going upstream every record keeps the offset that it was copied from.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Self

from sparkmirror.offsets.runs import DOWNSTREAM, MEMORY_RUNS, UPSTREAM, RunTable
from sparkmirror.offsets.segments import Segment


class Copied(NamedTuple):
    """How far the copy of a partition is."""

    records: int
    """The flow's records in the target partition: the next one's sequence."""
    upstream: int
    """Every upstream offset below it was copied, or has no record and never will."""
    downstream: int
    """Where the next record will land."""


class CopiedRun(NamedTuple):
    """Records whose offsets grow by one on both sides."""

    upstream: int
    downstream: int
    records: int


_NOTHING = CopiedRun(0, 0, 0)


class _Restart(NamedTuple):
    """From the run `first` on, what the source had before at or above `upstream` is no more."""

    first: int
    upstream: int


_EVERYTHING = -1


class _Stretch(NamedTuple):
    """Runs [first, end) of the table, the first of which begins upstream at `start`; the next stretch cuts them off."""

    start: int
    first: int
    end: int


class OffsetMap:
    """Build it with `build`; it holds a file where there are many runs, so close it."""

    def __init__(self, table: RunTable, stretches: Sequence[_Stretch], copied: Copied) -> None:
        self._table = table
        self._stretches = stretches
        self._stretch_starts = [stretch.start for stretch in stretches]
        self.copied = copied

    @classmethod
    def build(cls, claims: Iterable[Segment], copied: Copied, *, memory_runs: int = MEMORY_RUNS) -> Self:
        """Read the true claims of a partition, which come by growing sequence.

        Of claims for the same sequence the last counts. Those past what is copied announce what was never sent.
        """
        table = RunTable(memory_runs)
        restarts = [_Restart(0, _EVERYTHING)]
        source_topic_id: bytes | None = None
        last = _NOTHING
        for claim, end in _with_ends(claims, copied.records):
            recreated = claim.source_topic_id != source_topic_id
            source_topic_id = claim.source_topic_id
            if last.records and (recreated or claim.upstream < last.upstream + last.records):
                table.append(*last)
                last = _NOTHING
                restarts.append(_Restart(len(table), _EVERYTHING if recreated else claim.upstream))
            for run in _runs_of(claim, end - claim.sequence):
                if run[:2] == (last.upstream + last.records, last.downstream + last.records):
                    last = last._replace(records=last.records + run.records)
                    continue
                if last.records:
                    table.append(*last)
                last = run
        if last.records:
            table.append(*last)
        table.seal()
        return cls(table, _stretches(table, restarts, copied.upstream), copied)

    def __len__(self) -> int:
        """How many runs there are."""
        return len(self._table)

    @property
    def spilled(self) -> bool:
        """Whether the runs are in a file."""
        return self._table.spilled

    @property
    def upstream_start(self) -> int:
        """The lowest upstream offset that was copied and that the source, as far as claims tell, still has."""
        return self._stretch_starts[0] if self._stretch_starts else self.copied.upstream

    @property
    def downstream_start(self) -> int:
        """Where the first record was copied to, whatever became of it at the source."""
        return self._table.row(0)[DOWNSTREAM] if len(self._table) else self.copied.downstream

    def downstream(self, upstream: int) -> int | None:
        """Where a consumer that would read `upstream` next goes on at the target; None: not copied yet.

        That is the first copied record at or after `upstream`; where only gaps or markers follow, the place of the
        next record to come.
        """
        if upstream >= self.copied.upstream:
            return self.copied.downstream if upstream == self.copied.upstream else None
        number = max(bisect_right(self._stretch_starts, upstream) - 1, 0)
        if number == len(self._stretches):
            return self.copied.downstream
        stretch = self._stretches[number]
        index = self._table.find(UPSTREAM, upstream, stretch.first, stretch.end)
        if index >= stretch.first:
            start, downstream, count = self._table.row(index)
            if upstream < start + count:
                return downstream + upstream - start
        return self._first_downstream(number, index + 1)

    def upstream(self, downstream: int) -> int | None:
        """The upstream offset of the first of our records at or after `downstream`; None: not written yet.

        A foreign record's is that of our next one; past our last record it is the offset to be copied next.
        """
        if downstream > self.copied.downstream:
            return None
        index = self._table.find(DOWNSTREAM, downstream, 0, len(self._table))
        if index >= 0:
            upstream, start, count = self._table.row(index)
            if downstream < start + count:
                return upstream + downstream - start
        return self._table.row(index + 1)[UPSTREAM] if index + 1 < len(self._table) else self.copied.upstream

    def downstream_each(self, upstreams: Sequence[int]) -> list[int | None]:
        """`downstream` of many, in the order given; asked by size, so that each part of the map is read once."""
        answers: list[int | None] = [None] * len(upstreams)
        for index in sorted(range(len(upstreams)), key=upstreams.__getitem__):
            answers[index] = self.downstream(upstreams[index])
        return answers

    def upstream_each(self, downstreams: Sequence[int]) -> list[int | None]:
        """`upstream` of many, as `downstream_each`."""
        answers: list[int | None] = [None] * len(downstreams)
        for index in sorted(range(len(downstreams)), key=downstreams.__getitem__):
            answers[index] = self.upstream(downstreams[index])
        return answers

    def runs(self) -> Iterator[CopiedRun]:
        """All runs by growing downstream offset, also of what the source has no more."""
        for index in range(len(self._table)):
            yield CopiedRun(*self._table.row(index))

    def pass_over(self, upstream: int, downstream: int) -> None:
        """Take in what a receipt says: when the copy ended at `downstream`, nothing was left below `upstream`.

        Claims tell how far records were copied, but not that only markers or aborted data follow. Of another moment
        it says nothing here.
        """
        if downstream == self.copied.downstream and upstream > self.copied.upstream:
            self.copied = self.copied._replace(upstream=upstream)

    def close(self) -> None:
        """Free the file, if there is one."""
        self._table.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _first_downstream(self, number: int, index: int) -> int:
        """Of the first record at or after a run of a stretch."""
        if index >= self._stretches[number].end:
            number += 1
            if number == len(self._stretches):
                return self.copied.downstream
            index = self._stretches[number].first
        return self._table.row(index)[DOWNSTREAM]


def _with_ends(claims: Iterable[Segment], records: int) -> Iterator[tuple[Segment, int]]:
    """Each claim, and the sequence at which it ends: the next one's, or what is copied."""
    held: Segment | None = None
    for claim in claims:
        if claim.sequence > records:
            break
        if held is not None and claim.sequence < held.sequence:
            raise ValueError(f"the claim of sequence {claim.sequence} comes after that of {held.sequence}")
        if held is not None and claim.sequence > held.sequence:
            yield held, claim.sequence
        held = claim
    if held is not None:
        yield held, records


def _runs_of(claim: Segment, left: int) -> Iterator[CopiedRun]:
    """The runs of a claim's first `left` records; its last run has no end of its own."""
    downstream = claim.downstream
    for index, (upstream, announced) in enumerate(claim.runs):
        records = left if index == len(claim.runs) - 1 else min(announced, left)
        if records:
            yield CopiedRun(upstream, downstream, records)
        downstream += records
        left -= records


def _stretches(table: RunTable, restarts: Sequence[_Restart], end: int) -> list[_Stretch]:
    """What the source still has of the runs, by growing upstream offset, below `end`."""
    found: list[_Stretch] = []
    for restart, following in pairwise([*restarts, _Restart(len(table), end)]):
        _cut(table, found, restart.upstream)
        if restart.first < following.first:
            found.append(_Stretch(table.row(restart.first)[UPSTREAM], restart.first, following.first))
    _cut(table, found, end)
    return found


def _cut(table: RunTable, stretches: list[_Stretch], limit: int) -> None:
    """Take away what lies at or above an upstream offset."""
    while stretches and stretches[-1].start >= limit:
        stretches.pop()
    if stretches:
        last = stretches[-1]
        runs_end = table.find(UPSTREAM, limit - 1, last.first, last.end) + 1
        stretches[-1] = last._replace(end=runs_end)
