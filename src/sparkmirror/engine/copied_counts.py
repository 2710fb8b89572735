"""Counts of copied records and bytes that never fall and count nothing twice.

A pump tells how much it has copied since it began, and its name is its own: a task that is tried again is another pump.
So the count is the sum of each pump's largest figure. Reports may be late, repeated, or missing.
"""

from __future__ import annotations

import threading

counting = threading.RLock()
"""Lock of all counts.

A scrape between two steps of a change would see records twice, and the next scrape a counter that falls.
"""


class CopiedCounts:
    """Records and bytes that the pumps of one flow, or of one partition, have copied."""

    __slots__ = ("_closed_bytes", "_closed_records", "_closed_to", "_pumps", "_round", "changes")

    def __init__(self) -> None:
        self.changes = 0
        """Number of times that the counts grew."""
        self._closed_records = self._closed_bytes = 0
        """Counts of the pumps of closed rounds."""
        self._closed_to = -1
        """Newest closed round."""
        self._round = -1
        self._pumps: dict[str, tuple[int, int]] = {}
        """Largest records and bytes of each pump of the open round."""

    def take(self, round_number: int, pump: str, records: int, size: int) -> None:
        """Take a pump's count of what it has copied since it began.

        A later round closes the one before. Its pumps no longer count, even if they were cancelled and live on.
        """
        with counting:
            if round_number > self._round:
                self.close()
                self._round = round_number
            if round_number < self._round or round_number <= self._closed_to:
                return
            known_records, known_size = self._pumps.get(pump, (0, 0))
            if records > known_records or size > known_size:
                self._pumps[pump] = max(known_records, records), max(known_size, size)
                self.changes += 1

    def close(self) -> None:
        """Close the newest round."""
        with counting:
            self._closed_records, self._closed_bytes = self.total
            self._closed_to = self._round
            self._pumps.clear()

    @property
    def total(self) -> tuple[int, int]:
        """All records, and all bytes."""
        with counting:
            return (
                self._closed_records + sum(records for records, _ in self._pumps.values()),
                self._closed_bytes + sum(size for _, size in self._pumps.values()),
            )
