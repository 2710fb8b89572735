"""A table's changed rows, sent to viewers each second instead of the whole table.

If all rows in a table with 10,000 change, at most `MOST` are sent each second: first the rows with a new state, which
are all sent even if more than `MOST`, then the rows that wait longest. So a new state is never late. Figures are late
by seconds, and the page asks for the rows on its screen (`Changes.newest`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Row = tuple[object, ...]
"""A row's cells; the first cell is the row's state."""

MOST = 800
"""Most rows in a message: about 80 KB."""


@dataclass(frozen=True, slots=True)
class Delta:
    """A table's changes.

    `rows` are changed rows, each after its number; `gone` are the removed rows' numbers.
    """

    rows: list[list[object]]
    gone: list[int]
    waiting: int = 0
    """Number of changed rows that are sent later."""


class Changes:
    """One table's rows as viewers know them, updated each second."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._numbers: dict[str, int] = {}
        self._next = 0
        self._sent: dict[str, Row] = {}
        self._newest: Mapping[str, Row] = {}
        self._sent_at: dict[str, int] = {}
        self._again: set[str] = set()
        """Row keys that a viewer has fetched by `newest`.

        The next `look` sends these rows to all viewers, even if equal to the rows sent last.
        """
        self._turn = 0

    def look(self, rows: Mapping[str, Row]) -> Delta:
        """Return the changes to send so that viewers know these rows."""
        first = not self._sent
        self._turn += 1
        self._newest = rows
        gone = [self._numbers.pop(key) for key in [key for key in self._numbers if key not in rows]]
        for old in self._sent.keys() - rows.keys():
            del self._sent[old], self._sent_at[old]
        changed = [key for key, row in rows.items() if self._sent.get(key) != row or key in self._again]
        waiting = 0
        if not first and len(changed) > self._most:
            changed.sort(key=lambda key: (not self._is_other(key, rows[key]), self._sent_at.get(key, 0)))
            urgent = sum(self._is_other(key, rows[key]) for key in changed)
            waiting = len(changed) - max(urgent, self._most)
            del changed[max(urgent, self._most) :]
        for key in changed:
            self._sent[key] = rows[key]
            self._sent_at[key] = self._turn
            self._again.discard(key)
        return Delta([self._numbered(key, rows[key]) for key in changed], gone, waiting)

    def all(self) -> Delta:
        """Return all rows as sent last, for a viewer without any rows."""
        return Delta([self._numbered(key, row) for key, row in self._sent.items()], [])

    def newest(self, numbers: Iterable[int]) -> list[list[object]]:
        """Return the rows that one viewer shows, in their present state."""
        keys = {number: key for key, number in self._numbers.items()}
        asked = [keys[number] for number in numbers if number in keys]
        self._again.update(asked)
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
