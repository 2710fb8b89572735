"""One partition in an attempt: records in the log, and rows to append."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sparkmirror.arrow.row_columns import RowColumns

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
    wait: if the attempts differ, nothing more is appended.
    """

    def __init__(self, batch_bytes: int) -> None:
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

    @property
    def is_due(self) -> bool:
        """True if a batch may be sent."""
        return bool(self.waiting) and not self.theirs and self.flight is None

    def add(self, rows: RowSelection) -> None:
        """Take rows to append, as far as no earlier attempt has appended them."""
        left = self._unmatched(rows) if self.theirs else rows
        if len(left.numbers):
            self.waiting.append(left)

    def learn(self, digests: Iterable[int], count: int, first_offset: int, last_offset: int) -> None:
        """Note records that another attempt appended from `next` on."""
        self.theirs.update(digests)
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
        """Return the number of earlier records without a row; 0: all rows are appended."""
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
                left.append(number)
                continue
            self.earlier += 1
            self.theirs[digest] -= 1
            if not self.theirs[digest]:
                del self.theirs[digest]
        return RowSelection(rows.columns, np.array(left, np.int64))

    @property
    def _flying(self) -> Flight:
        if self.flight is None:
            raise ValueError("no batch is under way")
        return self.flight

    def _reach(self, first_offset: int, last_offset: int) -> None:
        self.first_offset = first_offset if self.first_offset < 0 else min(self.first_offset, first_offset)
        self.last_offset = max(self.last_offset, last_offset)
