"""Widths of a Java expression, as `java.util.regex` counts them for a look-behind.

Java 17 tries a look-behind from its least width to its greatest, and adds these up in 32 bits. A repetition without an
end counts as 2**31 - 1, so that with what stands next to it the sum may be negative, and Java then overlooks matches:
`(?<!-dev.*|-prod.*)` forbids nothing (`Pattern.TreeInfo`, `Pattern.Branch.study` and `Pattern.Behind.match`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

MOST = 2**31 - 1


class Width(NamedTuple):
    """Width of a part of an expression, in characters."""

    least: int = 0
    most: int = 0
    """Repetitions without an end count as 0."""
    endless: int = 0
    """Repetitions without an end in a row; two or more are counted wrong."""

    def then(self, other: Width) -> Width:
        return Width(self.least + other.least, self.most + other.most, self.endless + other.endless)

    def times(self, least: int, most: int | None) -> Width:
        """Return the width of a repetition; `most` is None without an end."""
        if most is None:
            return Width(self.least * least, 0, self.endless + 1)
        return Width(self.least * least, self.most * most, self.endless)

    @property
    def is_counted_right(self) -> bool:
        """True if Java finds each match that ends where a look-behind stands."""
        if not self.endless:
            return self.most <= MOST
        return self.endless == 1 and self.most <= self.least + 1


ONE = Width(1, 1)
LINE_END = Width(1, 2)


def widest(parts: Sequence[Width]) -> Width:
    """Return the width of alternatives, of which Java takes the greatest sum as it is.

    An alternative without an end whose sum is negative loses against all others.
    """
    if len(parts) == 1:
        return parts[0]
    least = min(part.least for part in parts)
    endless = [part for part in parts if part.endless]
    if endless:
        return Width(least, 0, 1 if all(part.endless == 1 and not part.most for part in endless) else 2)
    return Width(least, max(part.most for part in parts))
