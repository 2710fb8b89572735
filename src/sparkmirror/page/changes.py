"""Rows of a table as they change: what viewers are sent each second instead of the table.

A table of 10,000 rows that all move is not sent each second: at most `MOST` rows are, first those whose state is
another one, then those that wait longest. Nobody's state is late for it; figures are, by seconds, and the page asks for
the rows that it shows (`Changes.newest`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Row = tuple[object, ...]
"""What a row shows. The first is its state."""

MOST = 800
"""About 80 KB."""


@dataclass(frozen=True, slots=True)
class Delta:
    """What changed: rows with their number before them, numbers of rows that are no more."""

    rows: list[list[object]]
    gone: list[int]
    waiting: int = 0
    """Rows that have changed, and are sent later."""


class Changes:
    """One table, from second to second."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._numbers: dict[str, int] = {}
        self._next = 0
        self._sent: dict[str, Row] = {}
        self._newest: Mapping[str, Row] = {}
        self._sent_at: dict[str, int] = {}
        self._anew: set[str] = set()
        """Rows that some viewer has from elsewhere: they are sent to all, though they may be as they were sent."""
        self._turn = 0

    def look(self, rows: Mapping[str, Row]) -> Delta:
        """What viewers are to be sent, so that they know these rows."""
        first = not self._sent
        self._turn += 1
        self._newest = rows
        gone = [self._numbers.pop(key) for key in [key for key in self._numbers if key not in rows]]
        for old in self._sent.keys() - rows.keys():
            del self._sent[old], self._sent_at[old]
        changed = [key for key, row in rows.items() if self._sent.get(key) != row or key in self._anew]
        waiting = 0
        if not first and len(changed) > self._most:
            changed.sort(key=lambda key: (not self._is_other(key, rows[key]), self._sent_at.get(key, 0)))
            urgent = sum(self._is_other(key, rows[key]) for key in changed)
            waiting = len(changed) - max(urgent, self._most)
            del changed[max(urgent, self._most) :]
        for key in changed:
            self._sent[key] = rows[key]
            self._sent_at[key] = self._turn
            self._anew.discard(key)
        return Delta([self._numbered(key, rows[key]) for key in changed], gone, waiting)

    def all(self) -> Delta:
        """All rows as they were sent last, for a viewer that knows none."""
        return Delta([self._numbered(key, row) for key, row in self._sent.items()], [])

    def newest(self, numbers: Iterable[int]) -> list[list[object]]:
        """Rows as they are now, for one viewer that shows them."""
        keys = {number: key for key, number in self._numbers.items()}
        asked = [keys[number] for number in numbers if number in keys]
        self._anew.update(asked)
        return [self._numbered(key, self._newest[key]) for key in asked if key in self._newest]

    def _is_other(self, key: str, row: Row) -> bool:
        sent = self._sent.get(key)
        return sent is None or sent[0] != row[0]

    def _numbered(self, key: str, row: Row) -> list[object]:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self._next
            self._next += 1
        return [number, *row]
