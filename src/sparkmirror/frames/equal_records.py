"""Of several equal records on one side, which may be the one that the other side's cleaner took.

Pure. A cleaner leaves the last of a key, so the place that is told is the lowest (`Lowest`): where the other side's
offsets have room for a record that is gone. For that a little of what was equal before is remembered (`Past`).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

MOST_BEHIND = 1024
"""Records before a window that are kept, about; of large ones fewer."""
_LARGE_BITS = 12
"""So many bytes count as a record, as a power of 2."""


class MatchStep(NamedTuple):
    """A record of each side, equal; or of one side only."""

    content: Hashable
    offsets: tuple[int, int]
    """Source's, target's; -1: it has none."""


class Past:
    """The last steps before a window. Equal batches are decompressed only if they are asked for."""

    def __init__(self) -> None:
        self._parts: deque[tuple[int, Callable[[], Sequence[MatchStep]]]] = deque()
        self._size = 0
        self.whole = True
        """Whether it reaches back to the range's first record."""

    def add(self, records: int, size: int, steps: Callable[[], Sequence[MatchStep]], *, cut: bool = False) -> None:
        """Add what was passed over: so many records of so many bytes; `cut`: but for the first of them."""
        size = max(records, size >> _LARGE_BITS, 1)
        self._parts.append((size, steps))
        self._size += size
        self.whole &= not cut
        while self._size - self._parts[0][0] >= MOST_BEHIND:
            self._size -= self._parts.popleft()[0]
            self.whole = False

    def backwards(self) -> Iterator[MatchStep]:
        """The last one first."""
        for _, steps in reversed(self._parts):
            yield from reversed(steps())


class Lowest:
    """For records of one side that have no equal: the lowest place on the other side at which each could have been.

    From the end backwards each record of the other side that has an equal is given the last one that it can be, as
    if it were the copy of that: what is then without one is as early as can be. As many records as the other side
    lacks offsets at a place can have been there.
    """

    def __init__(self, here: int, after: int) -> None:
        self.places: dict[int, int] = {}
        """Offset here -> there: that of the first record behind it that has an equal, where it is not the next one."""
        self._here, self._there = here, 1 - here
        self._next = after
        self._others = 0
        """Records there since then that have no equal."""
        self._open: deque[tuple[Hashable, int]] = deque()
        """Records here that were given to none yet."""
        self._without: dict[Hashable, deque[tuple[int, int]]] = defaultdict(deque)
        """Content -> offset and place of those that have no equal."""

    def settled(self) -> bool:
        """Whether what is further back makes no difference."""
        return not self._open

    def add(self, step: MatchStep) -> None:
        """Take the next one, backwards."""
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
        """Nothing precedes but, at offset `before`, what is not looked at; None: that is not known."""
        passed = [content for content, _ in self._open]
        self._place(passed, self._next if before is None else before)

    def _place(self, passed: Iterable[Hashable], before: int) -> None:
        without = [self._without[content].popleft() for content in passed]
        moved = [offset for offset, place in without if place != self._next]
        room = self._next - before - 1 - self._others - (len(without) - len(moved))
        self.places |= dict.fromkeys(moved[: max(room, 0)], self._next)
