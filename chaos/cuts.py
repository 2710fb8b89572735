"""What the source took back after it had been copied: it stays in the copy, where the loss ledger says.

The ledger is the mirror's word, so it counts only where the nemesis has seen the cut, and what it names must be what
the nemesis found in the source's log right before. For logs without gaps only: there the record at place n of the copy
has the source's offset n, and an offset is a record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from chaos.records import Log, LoggedRecord


class Cut(NamedTuple):
    """What the ledger says: the source's log was cut at `first` when it had been copied to `end`; what came then
    follows at `downstream`."""

    first: int
    end: int
    downstream: int


class Election(NamedTuple):
    """What the nemesis knows of an unclean election at the source: the log was cut at `first`, and held this before."""

    first: int
    before: Log


class Wrong(NamedTuple):
    """An entry that isn't right."""

    cut: Cut
    copied: int | None
    """Where the copy was, which is not the cut's `end`; None: the source's log was not cut there."""


class TakenBack(NamedTuple):
    """What an entry names, in a copy."""

    records: Log
    """As they are in the copy."""
    truth: Log
    """As the source had them."""


class Division(NamedTuple):
    """A copy without what the source took back."""

    rest: Log
    taken_back: Sequence[TakenBack]
    wrong: Sequence[Wrong]


def without_taken_back(copy: Log, cuts: Sequence[Cut], elections: Sequence[Election]) -> Division:
    """Leave out what the cuts name; they come in the order of their places in the copy, the elections in theirs."""
    standing: list[LoggedRecord] = []
    found: list[TakenBack] = []
    wrong: list[Wrong] = []
    left = list(elections)
    place, last = 0, None
    for cut in cuts:
        arrived = place
        while place < len(copy) and copy[place].offset < cut.downstream:
            standing.append(copy[place])
            place += 1
        if last is not None and place == arrived and (last.first, last.end) == (cut.first, cut.end):
            continue  # named again behind a marker of the mirror's own fence, for its place is in the ledger's key
        seen = [number for number, one in enumerate(left) if one.first == cut.first]
        if not seen:
            wrong.append(Wrong(cut, None))
            continue
        if len(standing) != cut.end:
            wrong.append(Wrong(cut, len(standing)))
        used = seen[0]
        if records := standing[cut.first :]:
            branch, truth = _truth(records, standing, cut.first, left[: seen[-1] + 1], used)
            found.append(TakenBack(records, truth))
            used = next(number for number in seen if number >= branch)
        del standing[cut.first :]
        del left[: used + 1]
        last = cut
    return Division([*standing, *copy[place:]], found, wrong)


def _truth(records: Log, standing: Log, first: int, elections: Sequence[Election], otherwise: int) -> tuple[int, Log]:
    """What the source had of what was taken back, and before which of the elections.

    Before an election nothing may have been copied too far, and there may be another one before the mirror continues.
    So it is any of those logs that has just these records; else that of the last election, and what came later.
    """
    names = [record.id for record in records]
    for number, election in enumerate(elections):
        had = election.before[first : len(standing)]
        if [record.id for record in had] == names:
            return number, had
    before = elections[-1].before
    return otherwise, [*before[first : len(standing)], *_later(records[max(len(before) - first, 0) :], before)]


def _later(records: Log, before: Log) -> Log:
    """Of records that came after the nemesis looked, its producers' next ones, each once."""
    known = {record.id for record in before}
    writers = {_writer(record.id) for record in before}
    later: dict[str, LoggedRecord] = {}
    for record in records:
        if record.id not in known and _writer(record.id) in writers:
            later.setdefault(record.id, record)
    return list(later.values())


def _writer(name: str) -> str:
    """Producer and partition in a record's name."""
    return name.rpartition("-")[0]
