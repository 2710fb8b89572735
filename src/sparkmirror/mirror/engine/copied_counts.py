"""Counts of copied records and bytes that never fall and count none twice.

A pump tells how much it has copied since it began, and its name is its own: a task that is tried again is another pump.
So the count sums up each pump's largest figure. Reports may be late, repeated, or missing.
"""

from __future__ import annotations

import threading

counting = threading.RLock()
"""One lock for all counts.

A scrape between two steps of a change would see records twice, and the next scrape a counter that falls.
"""


class CopiedCounts:
    """Records and bytes that a flow's or a partition's pumps and queries copied."""

    __slots__ = ("_former", "_newest", "_pumps", "_records", "_size", "changes")

    def __init__(self) -> None:
        self.changes = 0
        """Number of times the counts grew."""
        self._records = self._size = 0
        self._newest = 0
        """The newest round's number."""
        self._pumps: dict[str, tuple[int, int]] = {}
        """Largest records and bytes for each pump in the newest round."""
        self._former: dict[str, tuple[int, int]] = {}
        """Counts from the pumps in the round before.

        Its pumps may have been cancelled and live on for seconds.
        """

    def add(self, records: int, size: int) -> None:
        """Add new records and bytes from a query, which belongs to no round."""
        if not (records or size):
            return
        with counting:
            self._records += records
            self._size += size
            self.changes += 1

    def take(self, round_number: int, pump: str, records: int, size: int) -> tuple[int, int]:
        """Take a pump's count of what it has copied since it began.

        Return the new records and bytes. A round lasts longer than the former round's pumps live.
        """
        with counting:
            if round_number > self._newest:
                self._former = self._pumps if round_number == self._newest + 1 else {}
                self._newest, self._pumps = round_number, {}
            if round_number < self._newest - 1:
                return 0, 0
            pumps = self._pumps if round_number == self._newest else self._former
            known_records, known_size = pumps.get(pump, (0, 0))
            grown = max(records - known_records, 0), max(size - known_size, 0)
            if any(grown):
                pumps[pump] = known_records + grown[0], known_size + grown[1]
                self._records += grown[0]
                self._size += grown[1]
                self.changes += 1
            return grown

    @property
    def total(self) -> tuple[int, int]:
        with counting:
            return self._records, self._size
