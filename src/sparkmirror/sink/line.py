"""One partition in an attempt: records in the log, and rows to append."""

from __future__ import annotations

import dataclasses
from collections import Counter, deque
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sparkmirror.arrow.byte_columns import ByteColumn, HeaderColumn
from sparkmirror.arrow.row_columns import RowColumns
from sparkmirror.sink.order import GoneRows
from sparkmirror.sink.overlaps import overlaps

RowNumbers = npt.NDArray[np.int64]


class RowSelection(NamedTuple):
    """Some rows of an Arrow batch, by number."""

    columns: RowColumns
    numbers: RowNumbers


class Flight(NamedTuple):
    """Rows of the record batch that is under way; one at a time."""

    columns: RowColumns
    numbers: RowNumbers


class PartitionLine:
    """State of one partition in an attempt.

    `theirs` are records of earlier attempts, as digests, that no row has matched yet. While there are any, other rows
    wait: if the attempts differ, nothing more is appended. Where rows may be gone (`GoneRows`), order tells which: all
    earlier records behind the gone ones must be the first rows, in one way only. Where a source is compacted, too, the
    first unmatched row shows the gone rows: the rest of `theirs`.
    """

    def __init__(self, batch_bytes: int, leave: GoneRows | None = None, *, is_ordered: bool = False) -> None:
        self.batch_bytes = batch_bytes
        """Largest record batch before compression."""
        self.next = 0
        """Next sequence: the number of the batch's records known in the log."""
        self.theirs: Counter[int] = Counter()
        self.waiting: list[RowSelection] = []
        """Rows to append, in order."""
        self.flight: Flight | None = None
        self.earlier = 0
        """Rows that earlier attempts had appended."""
        self.first_offset = self.last_offset = -1
        self.is_stamped = False
        """True if the broker replaces timestamps, so that digests leave them out."""
        self.gone: Counter[int] = Counter()
        """Records of earlier attempts whose rows are gone."""
        self.is_held = False
        """True if no row is appended behind `gone`."""
        self.counted = 0 if leave is None else leave.counted
        """Number of earlier attempts' records that the log must have."""
        self._leave = leave
        self._is_ordered = is_ordered
        self._learned: list[tuple[int, int]] = []
        """Digests of earlier attempts' records, and of their keys, in order."""
        self._unplaced: list[RowSelection] = []
        """Rows that wait until order tells which earlier records are gone."""
        self._digests: list[int] = []
        """Digests of `_unplaced`."""
        self._ordered: deque[int] = deque()
        """Digests that the next rows must have, as `theirs` in order."""
        self._matched: set[int] = set()
        """Digests of matched rows of a compacted source."""
        self._places: dict[int, int] = {}
        """Place of each digest among a compacted source's earlier records."""
        self._matched_to = -1
        """Place of the last matched row among these records."""
        self._is_compacted = leave is not None and leave.is_compacted
        self._is_changed = False
        """True if the rows' order is not that of the earlier records."""
        self.is_in_doubt = False
        """True if equal rows hide which earlier records are gone."""

    @property
    def is_due(self) -> bool:
        """True if a batch may be sent."""
        is_refused = self.is_in_doubt or self._is_changed
        return bool(self.waiting) and not self.theirs and self.flight is None and not is_refused

    def add(self, rows: RowSelection) -> None:
        """Take rows to append, as far as no earlier attempt has appended them."""
        if self._leave is not None and not self._is_compacted:
            self._unplaced.append(rows)
            self._digests += self._digests_of(rows)
            self._place(is_all=False)
            return
        is_open = self.theirs or self._leave or self.gone or self._matched
        left = self._unmatched(rows) if is_open else rows
        if len(left.numbers) and not self.is_held:
            self.waiting.append(left)

    def learn(self, rows: Iterable[RowColumns], *, with_time: bool, count: int, place: tuple[int, int]) -> None:
        """Note records that another attempt appended from `next` on.

        `place` has their first and last offset.
        """
        for each in rows:
            digests = each.digests(with_time and not self.is_stamped).tolist()
            self.theirs.update(digests)
            if self._leave is None and self._is_ordered:
                self._ordered.extend(digests)
            if self._leave is not None:
                self._places = {}
                self._learned += zip(digests, _keys(each), strict=True)
        first_offset, last_offset = place
        self.next += count
        self._reach(first_offset, last_offset)

    def acknowledge(self, base_offset: int) -> None:
        """Note that the flight is appended at this offset."""
        flight, self.flight = self._flying, None
        self.next += len(flight.numbers)
        self._reach(base_offset, base_offset + len(flight.numbers) - 1)

    def shrink(self) -> bool:
        """Halve the batches after a refusal by size; False for a single row."""
        if len(self._flying.numbers) == 1:
            return False
        self.batch_bytes //= 2
        return True

    def reconsider(self) -> None:
        """Match the flight and all other rows to `theirs` again, in doubt."""
        flight = [] if self.flight is None else [RowSelection(*self.flight)]
        rows = [*flight, *self.waiting]
        self.flight, self.waiting = None, []
        for each in rows:
            self.add(each)

    def settle(self) -> None:
        """Decide which earlier records are gone, now that all rows are here."""
        if self._is_compacted:
            self._let_go()
        elif self._leave is not None:
            self._place(is_all=True)

    def finish(self) -> int:
        """Return the number of earlier records without a row; 0: all rows are appended.

        Rows that are gone don't count, but if nothing tells which are gone.
        """
        self.settle()
        if self.is_in_doubt or self._is_changed:
            return max(self.theirs.total() + self.gone.total(), 1)
        if not self.theirs and (self.waiting or self.flight):
            raise ValueError("rows are left")
        return self.theirs.total()

    def _digests_of(self, rows: RowSelection) -> list[int]:
        digests: list[int] = rows.columns.digests(rows.columns.timed and not self.is_stamped)[rows.numbers].tolist()
        return digests

    def _place(self, *, is_all: bool) -> None:
        """Find the one number of gone records with which all others are the first rows.

        Most often the first row tells. With equal rows several numbers may fit: nothing is appended then.
        """
        if self._leave is None:
            return
        learned, rows, leave = [digest for digest, _ in self._learned], self._digests, self._leave
        count = len(learned)
        if is_all or len(rows) >= count:
            fitting = [count - kept for kept in overlaps(learned, rows[:count]) if count - kept <= leave.most]
        elif rows:
            fitting = [at for at, digest in enumerate(learned[: leave.most + 1]) if digest == rows[0]]
            fitting += [count] if count <= leave.most else []
            if len(fitting) > 1:
                return
        else:
            return
        self._leave = None
        self.is_in_doubt, self._is_changed = len(fitting) > 1, not fitting
        if len(fitting) == 1:
            (gone,) = fitting
            self.gone, self.theirs = Counter(learned[:gone]), Counter(learned[gone:])
            self._ordered.extend(learned[gone:])
            self.is_held = not leave.is_told and gone == count
        unplaced, self._unplaced, self._digests = self._unplaced, [], []
        for each in unplaced:
            self.add(each)

    def _unmatched(self, rows: RowSelection) -> RowSelection:
        left = []
        for number, digest in zip(rows.numbers.tolist(), self._digests_of(rows), strict=True):
            if self._ordered:
                self._is_changed |= self._ordered.popleft() != digest
            if digest not in self.theirs:
                if self._is_compacted:
                    self._let_go()
                    self.is_in_doubt |= digest in self.gone or digest in self._matched
                left.append(number)
                continue
            if self._is_compacted:
                self.is_in_doubt |= digest in self._matched or (
                    self._leave is not None and self._may_be_another(digest)
                )
                self._matched.add(digest)
            self.earlier += 1
            self.theirs[digest] -= 1
            if not self.theirs[digest]:
                del self.theirs[digest]
        return RowSelection(rows.columns, np.array(left, np.int64))

    def _may_be_another(self, digest: int) -> bool:
        """Tell whether a row may only be equal to an earlier record, and not its row.

        Records are equal, or the row comes behind a later record's row.
        """
        if not self._places:
            self._places = {learned: place for place, (learned, _) in enumerate(self._learned)}
        place, before = self._places[digest], self._matched_to
        self._matched_to = place
        return self.theirs[digest] > 1 or place < before

    def _let_go(self) -> None:
        """Take a compacted source's unmatched records for gone, once, if order allows.

        All later rows are new rows: earlier attempts appended the first rows, in order.
        """
        leave, self._leave = self._leave, None
        if leave is None or self.theirs.total() > leave.most or not self._may_be_gone():
            return
        self.gone, self.theirs = self.theirs, Counter()
        self.is_held = not leave.is_told and not self.earlier

    def _may_be_gone(self) -> bool:
        """Tell whether a source may lack the unmatched rows.

        A source deletes the first records; compaction deletes records before others with the same key.
        """
        kept_keys: set[int] = set()
        for digest, key in self._learned:
            if digest in self.theirs and key in kept_keys:
                return False
            if digest not in self.theirs:
                kept_keys.add(key)
        return True

    @property
    def _flying(self) -> Flight:
        if self.flight is None:
            raise ValueError("no batch is under way")
        return self.flight

    def _reach(self, first_offset: int, last_offset: int) -> None:
        self.first_offset = first_offset if self.first_offset < 0 else min(self.first_offset, first_offset)
        self.last_offset = max(self.last_offset, last_offset)


def _keys(rows: RowColumns) -> list[int]:
    """Return a number for each row's key."""
    bare = dataclasses.replace(rows, value=ByteColumn.nulls(rows.count), headers=HeaderColumn.none(rows.count))
    keys: list[int] = bare.digests(with_time=False).tolist()
    return keys
