"""Lengths in which the end of one sequence is the beginning of another."""

from __future__ import annotations

from collections.abc import Sequence


def overlaps(ended: Sequence[int], begun: Sequence[int]) -> list[int]:
    """Return the numbers of last items of `ended` that are the first of `begun`.

    The largest number comes first, and 0 last. By Knuth, Morris and Pratt, as equal items are many.
    """
    shorter = [0] * (len(begun) + 1)  # of so many first items, how many are also the last of them, but not all
    kept = 0
    for at in range(1, len(begun)):
        while kept and begun[at] != begun[kept]:
            kept = shorter[kept]
        kept += begun[at] == begun[kept]
        shorter[at + 1] = kept
    kept = 0
    for item in ended:
        while kept and (kept == len(begun) or item != begun[kept]):
            kept = shorter[kept]
        kept += bool(begun) and item == begun[kept]
    numbers = [kept]
    while numbers[-1]:
        numbers.append(shorter[numbers[-1]])
    return numbers
