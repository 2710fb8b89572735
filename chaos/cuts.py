"""What the source took back after it had been copied: it stays in the copy, where the loss ledger says.

For logs without gaps only: there the record at place n of the copy has the source's offset n, and an offset is a
record. So it can be told exactly what the ledger has to name, without asking the mirror's own map.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from chaos.records import Log, LoggedRecord


class Cut(NamedTuple):
    """The source's log was cut at `first` when it had been copied to `end`; what came then follows at `downstream`."""

    first: int
    end: int
    downstream: int


class Division(NamedTuple):
    """A copy without what the source took back."""

    rest: Log
    taken_back: int
    """How many records are left out."""
    wrong: Sequence[tuple[Cut, int]]
    """Cuts whose `end` is not where the copy was, and where it was."""


def without_taken_back(copy: Log, cuts: Sequence[Cut]) -> Division:
    """Leave out what the cuts name; they come in the order of their places in the copy."""
    standing: list[LoggedRecord] = []
    taken_back = place = 0
    wrong: list[tuple[Cut, int]] = []
    for cut in cuts:
        while place < len(copy) and copy[place].offset < cut.downstream:
            standing.append(copy[place])
            place += 1
        if len(standing) != cut.end:
            wrong.append((cut, len(standing)))
        taken_back += len(standing[cut.first :])
        del standing[cut.first :]
    return Division([*standing, *copy[place:]], taken_back, wrong)
