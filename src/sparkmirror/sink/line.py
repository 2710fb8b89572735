"""One partition in an attempt: records in the log, and rows to append."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sparkmirror.arrow.byte_columns import ByteColumn, HeaderColumn
from sparkmirror.arrow.row_columns import RowColumns
from sparkmirror.sink.order import GoneRows

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
    wait: if the attempts differ, nothing more is appended. Where rows may be gone (`GoneRows`), the first unmatched
    row shows the gone rows: the rest of `theirs`.
    """

    def __init__(self, batch_bytes: int, leave: GoneRows | None = None) -> None:
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
        self._leave = leave
        self._learned: list[tuple[int, int]] = []
        """Digests of earlier attempts' records, and of their keys, in order."""
        self._is_ambiguous = False
        """True if a row is equal to a gone row."""

    @property
    def is_due(self) -> bool:
        """True if a batch may be sent."""
        return bool(self.waiting) and not self.theirs and self.flight is None and not self._is_ambiguous

    def add(self, rows: RowSelection) -> None:
        """Take rows to append, as far as no earlier attempt has appended them."""
        left = self._unmatched(rows) if self.theirs or self.gone or self._leave else rows
        if len(left.numbers) and not self.is_held:
            self.waiting.append(left)

    def learn(self, rows: Iterable[RowColumns], *, with_time: bool, count: int, place: tuple[int, int]) -> None:
        """Note records that another attempt appended from `next` on.

        `place` has their first and last offset.
        """
        for each in rows:
            digests = each.digests(with_time and not self.is_stamped).tolist()
            self.theirs.update(digests)
            if self._leave is not None:
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

    def finish(self) -> int:
        """Return the number of earlier records without a row; 0: all rows are appended.

        Rows that are gone don't count.
        """
        self._let_go()
        if self._is_ambiguous:
            return max(self.theirs.total() + self.gone.total(), 1)
        if not self.theirs and (self.waiting or self.flight):
            raise ValueError("rows are left")
        return self.theirs.total()

    def _unmatched(self, rows: RowSelection) -> RowSelection:
        with_time = rows.columns.timed and not self.is_stamped
        left = []
        for number, digest in zip(
            rows.numbers.tolist(), rows.columns.digests(with_time)[rows.numbers].tolist(), strict=True
        ):
            if digest not in self.theirs:
                self._let_go()
                self._is_ambiguous |= digest in self.gone
                left.append(number)
                continue
            self.earlier += 1
            self.theirs[digest] -= 1
            if not self.theirs[digest]:
                del self.theirs[digest]
        return RowSelection(rows.columns, np.array(left, np.int64))

    def _let_go(self) -> None:
        """Take the unmatched records for gone, once, if the order allows.

        All later rows are new rows: earlier attempts appended the first rows, in order.
        """
        leave, self._leave = self._leave, None
        if leave is None or self.theirs.total() > leave.most or not self._may_be_gone(leave):
            return
        self.gone, self.theirs = self.theirs, Counter()
        self.is_held = not leave.is_told and not self.earlier

    def _may_be_gone(self, leave: GoneRows) -> bool:
        """Tell whether a source may lack the unmatched rows.

        A source deletes the first records; compaction deletes records before others with the same key.
        """
        if not leave.is_compacted:
            kept = self._learned[len(self._learned) - self.earlier :]
            return not any(digest in self.theirs for digest, _ in kept)
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
