"""One target partition's exact offset map, upstream to downstream and back.

The map answers for any offset. It is made from the partition's true claims, with bounded memory (`run_table`). An
answer takes microseconds.

If the source's log was cut and written again, or the topic was created again, several claims name the same upstream
offsets. Going downstream the newest claim counts: a claim that goes back to an upstream offset says that the source's
earlier records from that offset on no longer exist. Going upstream, every record keeps the upstream offset from which
it was copied.

A claim that goes back may also mean that the same records were copied again, at an operator's word or by mistake.
Leader epochs distinguish the two cases: records with the same offset and leader epoch are the same record (KIP-101).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Self

from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.maps.run_table import DOWNSTREAM, MEMORY_RUNS, UPSTREAM, RunTable
from sparkmirror.kafka.wire.topic_ids import NO_ID, same_topic


class Copied(NamedTuple):
    """Point where a partition's copy ends, as the true claims and the log prove it.

    With the record count, which no report has: claims count records.
    """

    records: int
    """The flow's record count in the target partition: the next sequence."""
    upstream: int
    """Upstream offset below which all records are copied.

    Offsets below without a copy have no record and never will.
    """
    downstream: int
    """Downstream offset at which the next record will land."""


class CopiedRun(NamedTuple):
    """Records whose offsets grow by one on both sides."""

    upstream: int
    downstream: int
    records: int


_NOTHING = CopiedRun(0, 0, 0)


class Disowned(NamedTuple):
    """Target offsets [first, end) whose records the source has lost by a cut.

    The source's log was cut at the upstream offset `upstream`.
    """

    upstream: int
    first: int
    end: int


class Twice(NamedTuple):
    """Source records that the target holds twice: at `first`, and later at `again`.

    The records' offsets grow by one.
    """

    upstream: int
    records: int
    first: int
    again: int


class _Epoch(NamedTuple):
    """Leader epoch of a stretch's records from an upstream offset on; -1 if unknown."""

    stretch: int
    upstream: int
    epoch: int


class _MapPiece(NamedTuple):
    """A run, or the part of a run that has one leader epoch."""

    upstream: int
    end: int
    downstream: int
    epoch: int


class _Restart(NamedTuple):
    """Point from which the source's earlier records at or above `upstream` are gone.

    `first` is the number of the first run after the point.
    """

    first: int
    upstream: int


_EVERYTHING = -1


class _Stretch(NamedTuple):
    """Runs [first, end) of the table, up to the next restart.

    The first run begins upstream at `start`; the next stretch cuts the runs off.
    """

    start: int
    first: int
    end: int


class _FinalPart(NamedTuple):
    """The map's final part."""

    runs: int
    """The table's run count."""
    restarts: tuple[_Restart, ...]
    epochs: tuple[_Epoch, ...]
    source_topic_id: bytes
    last: CopiedRun
    """Last run, not in the table yet: the next claim may continue the run."""


class OffsetMap:
    """Offset map with open and final claims; close it, because it may hold a file.

    `build` makes a map; `fold` and `renew` let a map grow. Each `renew` replaces the answers from claims that may still
    change; the final part stays.
    """

    def __init__(self, memory_runs: int = MEMORY_RUNS) -> None:
        self._table = RunTable(memory_runs)
        self._final = _FinalPart(0, (_Restart(0, _EVERYTHING),), (), NO_ID, _NOTHING)
        self._restarts: Sequence[_Restart] = ()
        self._epochs: Sequence[_Epoch] = ()
        self._stretches: Sequence[_Stretch] = ()
        self._stretch_starts: Sequence[int] = ()
        self.copied = Copied(0, 0, 0)

    @classmethod
    def build(cls, claims: Iterable[Claim], copied: Copied, *, memory_runs: int = MEMORY_RUNS) -> Self:
        """Build a map from a partition's true claims, by growing sequence.

        Among claims for the same sequence the last counts. Claims past the copied records announce records that were
        never sent.
        """
        offsets = cls(memory_runs)
        offsets.renew(claims, copied)
        return offsets

    def fold(self, claims: Iterable[Claim], end: int) -> None:
        """Take in the next claims for good; then call `renew`.

        The last claim counts until the sequence `end`.
        """
        self._final = self._append(claims, end)

    def renew(self, claims: Iterable[Claim], copied: Copied) -> None:
        """Replace the open claims by all claims after the final ones; set the progress."""
        after = self._append(claims, copied.records)
        if after.last.records:
            self._table.append(*after.last)
        self._table.seal()
        self._restarts = after.restarts[1:]
        self._epochs = after.epochs
        self._stretches = _stretches(self._table, after.restarts, copied.upstream)
        self._stretch_starts = [stretch.start for stretch in self._stretches]
        self.copied = copied

    def _append(self, claims: Iterable[Claim], records: int) -> _FinalPart:
        """Append runs after the final ones."""
        table = self._table
        _, restarts, known_epochs, source_topic_id, last = self._final
        table.cut(self._final.runs)
        grown, epochs = list(restarts), list(known_epochs)
        for claim, end in _with_ends(claims, records):
            recreated = not same_topic(claim.source_topic_id, source_topic_id)
            source_topic_id = claim.source_topic_id
            if last.records and (recreated or claim.upstream < last.upstream + last.records):
                table.append(*last)
                last = _NOTHING
                grown.append(_Restart(len(table), _EVERYTHING if recreated else claim.upstream))
            epoch = _Epoch(len(grown) - 1, claim.upstream, claim.source_leader_epoch)
            if not epochs or epochs[-1]._replace(upstream=epoch.upstream) != epoch:
                epochs.append(epoch)
            for run in _runs_of(claim, end - claim.sequence):
                if run[:2] == (last.upstream + last.records, last.downstream + last.records):
                    last = last._replace(records=last.records + run.records)
                    continue
                if last.records:
                    table.append(*last)
                last = run
        return _FinalPart(len(table), tuple(grown), tuple(epochs), source_topic_id, last)

    def __len__(self) -> int:
        return len(self._table)

    @property
    def spilled(self) -> bool:
        """True if the runs are in a file."""
        return self._table.spilled

    @property
    def upstream_start(self) -> int:
        """Lowest copied upstream offset that the source still has, by the claims."""
        return self._stretch_starts[0] if self._stretch_starts else self.copied.upstream

    @property
    def downstream_start(self) -> int:
        """The first copied record's downstream offset, even if gone at the source."""
        return self._table.row(0)[DOWNSTREAM] if len(self._table) else self.copied.downstream

    def downstream(self, upstream: int) -> int | None:
        """Translate a consumer's next offset to the target; `None` if not copied yet.

        The result is the target offset of the first copied record at or after `upstream`; if only gaps or markers
        follow, the offset that the next record will get.
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
        """Return the upstream offset of this flow's first record at or after `downstream`.

        Return `None` if `downstream` is not written yet. A foreign record gets the upstream offset of this flow's next
        record; an offset past the last record gets the upstream offset to be copied next.
        """
        if downstream > self.copied.downstream:
            return None
        index = self._table.find(DOWNSTREAM, downstream, 0, len(self._table))
        if index >= 0:
            upstream, start, count = self._table.row(index)
            if downstream < start + count:
                return upstream + downstream - start
        return self._table.row(index + 1)[UPSTREAM] if index + 1 < len(self._table) else self.copied.upstream

    def present_upstream(self, downstream: int) -> int | None:
        """Translate a copy consumer's next offset; `None` if not written yet.

        The result is the upstream offset of the first record at or after `downstream` that the source still has; if
        none follows, the upstream offset to be copied next. Records that the source has lost since, by a cut or because
        the topic was created again, have no place in the source's present log: a consumer that stopped among their
        copies has yet to read all that was copied after them.
        """
        if downstream > self.copied.downstream:
            return None
        table, stretches = self._table, self._stretches
        number = bisect_right(stretches, downstream, key=lambda stretch: table.row(stretch.first)[DOWNSTREAM]) - 1
        following = stretches[number + 1].start if number + 1 < len(stretches) else self.copied.upstream
        if number < 0:
            return following
        stretch = stretches[number]
        index = table.find(DOWNSTREAM, downstream, stretch.first, stretch.end)
        upstream, start, count = table.row(index)
        if downstream < start + count:
            return min(upstream + downstream - start, following)
        return table.row(index + 1)[UPSTREAM] if index + 1 < stretch.end else following

    def end_below(self, downstream: int) -> int:
        """Return the target offset after this flow's last record below `downstream`.

        Return 0 if there is no such record.
        """
        index = self._table.find(DOWNSTREAM, downstream - 1, 0, len(self._table))
        if index < 0:
            return 0
        _, start, count = self._table.row(index)
        return min(start + count, downstream)

    def began_again(self, upstream: int, downstream: int) -> bool:
        """Tell whether the source's log was copied again after a place at the target.

        The place is `downstream`; the repeated copy begins at `upstream` or before.
        """
        return any(
            restart.upstream <= upstream
            and restart.first < len(self._table)
            and self._table.row(restart.first)[DOWNSTREAM] > downstream
            for restart in self._restarts
        )

    def downstream_each(self, upstreams: Sequence[int]) -> list[int | None]:
        """Translate many upstream offsets; answers are in the order given.

        The map is asked by growing offset, so that each part is read once.
        """
        answers: list[int | None] = [None] * len(upstreams)
        for index in sorted(range(len(upstreams)), key=upstreams.__getitem__):
            answers[index] = self.downstream(upstreams[index])
        return answers

    def upstream_each(self, downstreams: Sequence[int]) -> list[int | None]:
        """Translate many downstream offsets, like `downstream_each`."""
        answers: list[int | None] = [None] * len(downstreams)
        for index in sorted(range(len(downstreams)), key=downstreams.__getitem__):
            answers[index] = self.upstream(downstreams[index])
        return answers

    def runs(self) -> Iterator[CopiedRun]:
        """Yield all runs by growing downstream offset, including runs gone at the source."""
        for index in range(len(self._table)):
            yield CopiedRun(*self._table.row(index))

    def disowned(self) -> list[Disowned]:
        """Return copies of records lost when the source's log was cut, in order.

        Copies are returned only if they are among copies whose records the source has; the source has newer records at
        the same offsets.
        """
        copies = []
        for stretch, following in pairwise(self._stretches):
            upstream, downstream, count = self._table.row(stretch.end - 1)
            first = downstream + min(count, following.start - upstream)
            end = self._table.row(following.first)[DOWNSTREAM]
            if stretch.end < following.first or count > following.start - upstream:
                copies.append(Disowned(following.start, first, end))
        return copies

    def twice(self) -> Iterator[Twice]:
        """Yield records that were copied more than once.

        Records from an earlier topic, and from a log that was cut since, are left out.
        """
        stretches = [_Restart(0, _EVERYTHING), *self._restarts]
        for later, restart in enumerate(stretches):
            if restart.upstream == _EVERYTHING:
                continue
            for earlier in range(later - 1, -1, -1):
                yield from _common(self._pieces(earlier, restart.upstream), self._pieces(later, restart.upstream))
                if stretches[earlier].upstream == _EVERYTHING:
                    break

    def _pieces(self, stretch: int, upstream: int) -> Iterator[_MapPiece]:
        """Yield one stretch's copies at or above an upstream offset, by growing offset."""
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
        """Take in the report that only markers or aborted data follow the last record.

        A receipt says: when the copy ended at `downstream`, no record was left below `upstream`. Claims tell how far
        records were copied, but not that only markers or aborted data follow. A receipt from a different moment changes
        nothing here.
        """
        if downstream == self.copied.downstream and upstream > self.copied.upstream:
            self.copied = self.copied._replace(upstream=upstream)

    def close(self) -> None:
        """Free the file, if any."""
        self._table.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _first_downstream(self, number: int, index: int) -> int:
        """Return the downstream offset of the first record at or after a run.

        `number` is the run's stretch.
        """
        if index >= self._stretches[number].end:
            number += 1
            if number == len(self._stretches):
                return self.copied.downstream
            index = self._stretches[number].first
        return self._table.row(index)[DOWNSTREAM]


def _common(earlier: Iterator[_MapPiece], later: Iterator[_MapPiece]) -> Iterator[Twice]:
    """Yield records that two stretches share: same offset, same leader epoch."""
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


def _with_ends(claims: Iterable[Claim], records: int) -> Iterator[tuple[Claim, int]]:
    """Yield each claim with its end: the next claim's sequence, or `records`."""
    held: Claim | None = None
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


def _runs_of(claim: Claim, left: int) -> Iterator[CopiedRun]:
    """Yield the runs of a claim's first `left` records; the claim's last run is open."""
    downstream = claim.downstream
    for index, (upstream, announced) in enumerate(claim.runs):
        records = left if index == len(claim.runs) - 1 else min(announced, left)
        if records:
            yield CopiedRun(upstream, downstream, records)
        downstream += records
        left -= records


def _stretches(table: RunTable, restarts: Sequence[_Restart], end: int) -> list[_Stretch]:
    """Return the stretches that the source still has below `end`, by upstream offset."""
    kept: list[_Stretch] = []
    for restart, following in pairwise([*restarts, _Restart(len(table), end)]):
        _cut(table, kept, restart.upstream)
        if restart.first < following.first:
            kept.append(_Stretch(table.row(restart.first)[UPSTREAM], restart.first, following.first))
    _cut(table, kept, end)
    return kept


def _cut(table: RunTable, stretches: list[_Stretch], limit: int) -> None:
    """Remove the runs at or above an upstream offset."""
    while stretches and stretches[-1].start >= limit:
        stretches.pop()
    if stretches:
        last = stretches[-1]
        runs_end = table.find(UPSTREAM, limit - 1, last.first, last.end) + 1
        stretches[-1] = last._replace(end=runs_end)
