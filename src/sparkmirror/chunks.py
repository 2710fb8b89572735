"""Split a sequence into parts, for requests with bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def chunks(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """Yield the items in order, at most `size` at a time; nothing for no items."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
