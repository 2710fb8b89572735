"""Choose among equal records on one side: the record that a cleaner took.

The cleaner is the opposite side's. Pure. A cleaner leaves a key's last record, so the reported place is the lowest
(`Lowest`): where the opposite side's offsets have room for a missing record. `Past` remembers some equal records from
before for the purpose.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

MOST_BEHIND = 1024
"""Number of records remembered before a window, about; fewer if records are large."""
_LARGE_BITS = 12
"""Bytes that count as one record, as a power of 2."""


class MatchStep(NamedTuple):
    """An equal record on each side, or a record on one side only."""

    content: Hashable
    offsets: tuple[int, int]
    """Offsets at the source and at the target; -1 if that side has no record."""


class Past:
    """Last steps before a window; equal batches are decompressed only on demand."""

    def __init__(self) -> None:
        self._parts: deque[tuple[int, Callable[[], Sequence[MatchStep]]]] = deque()
        self._size = 0
        self.whole = True
        """True if the steps reach back to the range's first record."""

    def add(self, records: int, size: int, steps: Callable[[], Sequence[MatchStep]], *, cut: bool = False) -> None:
        """Add steps for `records` records with `size` bytes that were passed over.

        With `cut`, the first records are left out of the steps.
        """
        size = max(records, size >> _LARGE_BITS, 1)
        self._parts.append((size, steps))
        self._size += size
        self.whole &= not cut
        while self._size - self._parts[0][0] >= MOST_BEHIND:
            self._size -= self._parts.popleft()[0]
            self.whole = False

    def backwards(self) -> Iterator[MatchStep]:
        """Yield the steps, the last step first."""
        for _, steps in reversed(self._parts):
            yield from reversed(steps())


class Lowest:
    """Lowest places on the opposite side for records without an equal.

    A record's place is the lowest offset where the record could have been. From the end backwards, each record on the
    opposite side with an equal gets the last possible record here as its original: so the records left over are as
    early as possible. A place can have held as many records as the opposite side lacks offsets there.
    """

    def __init__(self, here: int, after: int) -> None:
        self.places: dict[int, int] = {}
        """Record's offset to its place, if lower than the next record with an equal.

        The place is an offset on the opposite side: at a record with an equal, before which the missing record can have
        been.
        """
        self._here, self._there = here, 1 - here
        self._next = after
        self._others = 0
        """Records on the opposite side without an equal since the last place."""
        self._open: deque[tuple[Hashable, int]] = deque()
        """Records here that are original of no record there yet."""
        self._without: dict[Hashable, deque[tuple[int, int]]] = defaultdict(deque)
        """Content to offset and place, for records without an equal."""

    def is_decided(self) -> bool:
        """True if earlier steps make no difference."""
        return not self._open

    def add(self, step: MatchStep) -> None:
        """Take the next step, backwards."""
        here, there = step.offsets[self._here], step.offsets[self._there]
        if here < 0:
            self._others += 1
            return
        self._open.append((step.content, here))
        if there < 0:
            self._without[step.content].append((here, self._next))
            return
        passed: list[Hashable] = []
        while (content := self._open.popleft()[0]) != step.content:
            passed.append(content)
        self._place(passed, there)
        self._next, self._others = there, 0

    def end(self, before: int | None) -> None:
        """End the search: offset `before` is the last one not looked at.

        `None` means that the offset is unknown.
        """
        passed = [content for content, _ in self._open]
        self._place(passed, self._next if before is None else before)

    def _place(self, passed: Iterable[Hashable], before: int) -> None:
        without = [self._without[content].popleft() for content in passed]
        moved = [offset for offset, place in without if place != self._next]
        room = self._next - before - 1 - self._others - (len(without) - len(moved))
        self.places |= dict.fromkeys(moved[: max(room, 0)], self._next)
