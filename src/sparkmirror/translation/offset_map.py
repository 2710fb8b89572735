"""The exact offset map of one target partition: upstream to downstream and back, for any offset.

Made from the true claims of the partition, with bounded memory (`runs`). An answer takes microseconds.

Where the source's log was cut and written anew, or the topic created anew, several claims speak of the same upstream
offsets. Going downstream the newest counts: a claim that goes back to an upstream offset says that what the source
once had from there on is no more. Going upstream every record keeps the offset that it was copied from.

A claim that goes back may also mean that the same records were copied again: at an operator's word, or by mistake.
Leader epochs tell it apart: what has one offset and one leader epoch is one record (KIP-101).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Self

from sparkmirror.durable.claims import Segment
from sparkmirror.translation.run_table import DOWNSTREAM, MEMORY_RUNS, UPSTREAM, RunTable
from sparkmirror.wire.topic_ids import NO_ID, same_topic


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


class Disowned(NamedTuple):
    """Target offsets [first, end) hold what the source had from an offset on before its log was cut there."""

    upstream: int
    first: int
    end: int


class Twice(NamedTuple):
    """Records of the source, offsets growing by one, that the target holds at `first` and further on at `again`."""

    upstream: int
    records: int
    first: int
    again: int


class _Epoch(NamedTuple):
    """From an upstream offset of a stretch on, records have this leader epoch; -1: not known."""

    stretch: int
    upstream: int
    epoch: int


class _MapPiece(NamedTuple):
    """A run, or the part of it that has one leader epoch."""

    upstream: int
    end: int
    downstream: int
    epoch: int


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


class _Settled(NamedTuple):
    """How far the map is known for good."""

    runs: int
    """Of the table."""
    restarts: tuple[_Restart, ...]
    epochs: tuple[_Epoch, ...]
    source_topic_id: bytes
    last: CopiedRun
    """Not in the table yet: what follows may go on from it."""


class OffsetMap:
    """Build it with `build`, or grow it with `settle` and `renew`; it may hold a file, so close it.

    What it says of claims that may still change is told anew by each `renew`; the rest stays as it is.
    """

    def __init__(self, memory_runs: int = MEMORY_RUNS) -> None:
        self._table = RunTable(memory_runs)
        self._settled = _Settled(0, (_Restart(0, _EVERYTHING),), (), NO_ID, _NOTHING)
        self._restarts: Sequence[_Restart] = ()
        self._epochs: Sequence[_Epoch] = ()
        self._stretches: Sequence[_Stretch] = ()
        self._stretch_starts: Sequence[int] = ()
        self.copied = Copied(0, 0, 0)

    @classmethod
    def build(cls, claims: Iterable[Segment], copied: Copied, *, memory_runs: int = MEMORY_RUNS) -> Self:
        """Read the true claims of a partition, which come by growing sequence.

        Of claims for the same sequence the last counts. Those past what is copied announce what was never sent.
        """
        offsets = cls(memory_runs)
        offsets.renew(claims, copied)
        return offsets

    def settle(self, claims: Iterable[Segment], end: int) -> None:
        """Take in the next claims for good; the last one counts until the sequence `end`. Then `renew` is due."""
        self._settled = self._append(claims, end)

    def renew(self, claims: Iterable[Segment], copied: Copied) -> None:
        """Take in all claims that follow the settled ones, in place of those given before, and what is copied."""
        after = self._append(claims, copied.records)
        if after.last.records:
            self._table.append(*after.last)
        self._table.seal()
        self._restarts = after.restarts[1:]
        self._epochs = after.epochs
        self._stretches = _stretches(self._table, after.restarts, copied.upstream)
        self._stretch_starts = [stretch.start for stretch in self._stretches]
        self.copied = copied

    def _append(self, claims: Iterable[Segment], records: int) -> _Settled:
        """Put runs behind the settled ones."""
        table = self._table
        _, restarts, known_epochs, source_topic_id, last = self._settled
        table.cut(self._settled.runs)
        found, epochs = list(restarts), list(known_epochs)
        for claim, end in _with_ends(claims, records):
            recreated = not same_topic(claim.source_topic_id, source_topic_id)
            source_topic_id = claim.source_topic_id
            if last.records and (recreated or claim.upstream < last.upstream + last.records):
                table.append(*last)
                last = _NOTHING
                found.append(_Restart(len(table), _EVERYTHING if recreated else claim.upstream))
            epoch = _Epoch(len(found) - 1, claim.upstream, claim.source_leader_epoch)
            if not epochs or epochs[-1]._replace(upstream=epoch.upstream) != epoch:
                epochs.append(epoch)
            for run in _runs_of(claim, end - claim.sequence):
                if run[:2] == (last.upstream + last.records, last.downstream + last.records):
                    last = last._replace(records=last.records + run.records)
                    continue
                if last.records:
                    table.append(*last)
                last = run
        return _Settled(len(table), tuple(found), tuple(epochs), source_topic_id, last)

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

    def end_below(self, downstream: int) -> int:
        """The target offset after the last of our records below `downstream`; 0: there is none."""
        index = self._table.find(DOWNSTREAM, downstream - 1, 0, len(self._table))
        if index < 0:
            return 0
        _, start, count = self._table.row(index)
        return min(start + count, downstream)

    def began_anew(self, upstream: int, downstream: int) -> bool:
        """Whether the source's log was copied anew, from `upstream` or before, behind this place of the target."""
        return any(
            restart.upstream <= upstream
            and restart.first < len(self._table)
            and self._table.row(restart.first)[DOWNSTREAM] > downstream
            for restart in self._restarts
        )

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

    def disowned(self) -> list[Disowned]:
        """Copies, among those of what the source has, of what it had at the same offsets before; in order."""
        found = []
        for stretch, following in pairwise(self._stretches):
            upstream, downstream, count = self._table.row(stretch.end - 1)
            first = downstream + min(count, following.start - upstream)
            end = self._table.row(following.first)[DOWNSTREAM]
            if stretch.end < following.first or count > following.start - upstream:
                found.append(Disowned(following.start, first, end))
        return found

    def twice(self) -> Iterator[Twice]:
        """Records that were copied more than once; not those of an earlier topic, or of a log that was cut since."""
        stretches = [_Restart(0, _EVERYTHING), *self._restarts]
        for later, restart in enumerate(stretches):
            if restart.upstream == _EVERYTHING:
                continue
            for earlier in range(later - 1, -1, -1):
                yield from _common(self._pieces(earlier, restart.upstream), self._pieces(later, restart.upstream))
                if stretches[earlier].upstream == _EVERYTHING:
                    break

    def _pieces(self, stretch: int, upstream: int) -> Iterator[_MapPiece]:
        """The copies of one stretch at or above an upstream offset, by growing offsets."""
        firsts = [0, *(restart.first for restart in self._restarts), len(self._table)]
        epochs = [(epoch.upstream, epoch.epoch) for epoch in self._epochs if epoch.stretch == stretch]
        row = max(self._table.find(UPSTREAM, upstream, firsts[stretch], firsts[stretch + 1]), firsts[stretch])
        for index in range(row, firsts[stretch + 1]):
            start, downstream, records = self._table.row(index)
            number = max(bisect_right(epochs, start, key=lambda epoch: epoch[0]) - 1, 0)
            while start < (end := start + records):
                following = epochs[number + 1][0] if number + 1 < len(epochs) else end
                piece_end = min(end, following)
                if piece_end > upstream:
                    skipped = max(upstream - start, 0)
                    yield _MapPiece(start + skipped, piece_end, downstream + skipped, epochs[number][1])
                start, downstream, records = piece_end, downstream + piece_end - start, end - piece_end
                number += 1

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


def _common(earlier: Iterator[_MapPiece], later: Iterator[_MapPiece]) -> Iterator[Twice]:
    """What both have with the same offset and leader epoch."""
    first, again = next(earlier, None), next(later, None)
    while first is not None and again is not None:
        start, end = max(first.upstream, again.upstream), min(first.end, again.end)
        if start < end and first.epoch == again.epoch:
            yield Twice(
                start,
                end - start,
                first.downstream + start - first.upstream,
                again.downstream + start - again.upstream,
            )
        if first.end <= again.end:
            first = next(earlier, None)
        else:
            again = next(later, None)


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
