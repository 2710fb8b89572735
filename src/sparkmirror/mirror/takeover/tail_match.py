"""Search for the last source record that MirrorMaker 2 wrote into a target's log.

Pure: the search only compares records. MirrorMaker 2 stores the offset of the last record that it knows to be copied
(`mm2.md` 2.2), at intervals: when it is killed, its target continues after the stored offset. The appended records are
known to be:

- record by record, the records that follow at the source;
- after a restart, a new batch right after an offset that was stored. Stored offsets only grow, so the batch begins at
  or before the offset that is stored now, and the last run has got at least as far as the stored offset;
- perhaps a whole batch a second time, because its producer is not idempotent by default.

All readings of the target's tail that agree with these rules are followed at once. If the readings end with different
source records, the end is unknown, and guessing is forbidden.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby
from typing import NamedTuple

from sparkmirror.errors import HandledError

ANY_TIME = -1
"""Time for a record whose timestamp says nothing.

Either the source has no timestamp, or the target's broker stamps records itself.
"""

MOST_READINGS = 4_000_000

_BEFORE = -1
"""A reading's place before the source records that were read.

The record there may look like anything.
"""


class LogRecord(NamedTuple):
    """A record of either log."""

    offset: int
    timestamp: int
    content: bytes
    """Key, value and headers, or their digest."""
    batch: int = 0
    """Base offset of the record's batch."""


class Unclear(HandledError):
    """Too many readings to follow."""


def possible_ends(
    stored: int,
    source: Sequence[Sequence[LogRecord]],
    tail: Sequence[LogRecord],
    pinned: int | None = None,
    *,
    anywhere: bool = False,
) -> set[int]:
    """Return the upstream offsets that may be the last copied.

    The stored offset stands for every end up to it. `source` holds stretches from the source's log, in order, each
    without omissions. The first stretch begins before the stored offset, as far as the log does, and the stretches go
    on as far as the target may. `tail` are the target's last records. `pinned` is the tail's first record's upstream
    offset; if unknown, the tail must begin before the source's stretches do, or `anywhere`: the target's log may begin
    after the stored offset's copy. Empty if MirrorMaker 2 can't have written the tail. Raises `Unclear`.
    """
    return _Readings(stored, source).follow(tail, pinned, anywhere)


class _Readings:
    """Possible readings of a tail, each identified by a source record's index."""

    def __init__(self, stored: int, source: Sequence[Sequence[LogRecord]]) -> None:
        self._stored = stored
        self._records = [record for stretch in source for record in stretch]
        self._last_of_stretch = {end - 1 for end in accumulate(map(len, source))}
        self._known = sum(record.offset <= stored for record in self._records)
        self._alike: dict[bytes, list[int]] = defaultdict(list)
        for index, record in enumerate(self._records):
            self._alike[record.content].append(index)
        self._budget = MOST_READINGS

    def follow(self, tail: Sequence[LogRecord], pinned: int | None, anywhere: bool) -> set[int]:
        if not tail:
            return set()
        at = self._at_first(tail[0], pinned, anywhere)
        batch_before: list[LogRecord] = []
        entered_before: set[int] = set()
        for _, records in groupby(tail, key=_batch):
            batch = list(records)
            for nth, record in enumerate(batch):
                if record is not tail[0]:
                    going_on = self._like(record, (index + 1 for index in at - self._last_of_stretch))
                    before = at & {_BEFORE}
                    if not nth:
                        repeated = entered_before if _same(batch_before, batch) else ()
                        before = self._begun_again(record, min(max(at), self._known)).union(repeated)
                    at = going_on | before
                if not nth:
                    entered = at
                self._budget -= len(at) + 1
                if not at or self._budget < 0:
                    return self._give_up(at)
            batch_before, entered_before = batch, entered
        return self._ends(at)

    def _at_first(self, record: LogRecord, pinned: int | None, anywhere: bool) -> set[int]:
        alike = self._alike.get(record.content, ())
        if pinned is None:
            return {_BEFORE, *self._like(record, alike if anywhere else (0,))}
        return self._like(record, (index for index in alike if self._records[index].offset == pinned))

    def _begun_again(self, record: LogRecord, furthest: int) -> set[int]:
        """Return possible starts for a new run: after an offset that was stored by then."""
        alike = self._alike.get(record.content, ())
        resumed = alike[: bisect_right(alike, furthest)]
        self._budget -= len(resumed)
        return {_BEFORE, *self._like(record, resumed)}

    def _like(self, record: LogRecord, indexes: Iterable[int]) -> set[int]:
        """Return the source records of which a record may be a copy."""
        matches = set()
        for index in indexes:
            if index < len(self._records):
                source_record = self._records[index]
                same_time = source_record.timestamp == record.timestamp or ANY_TIME in (
                    source_record.timestamp,
                    record.timestamp,
                )
                if same_time and source_record.content == record.content:
                    matches.add(index)
        return matches

    def _give_up(self, at: set[int]) -> set[int]:
        if at:
            raise Unclear
        return set()

    def _ends(self, at: set[int]) -> set[int]:
        beyond = {self._records[index].offset for index in at if index >= self._known}
        not_beyond = self._known - 1 in at  # `_BEFORE` if no record up to the stored offset was read
        return beyond | {self._stored} if not_beyond else beyond


def _batch(record: LogRecord) -> int:
    return record.batch


def _same(left: Sequence[LogRecord], right: Sequence[LogRecord]) -> bool:
    return len(left) == len(right) and all(
        (first.timestamp, first.content) == (second.timestamp, second.content)
        for first, second in zip(left, right, strict=True)
    )
