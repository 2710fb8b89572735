"""Align two sequences by a longest common subsequence.

Hunt and Szymanski's algorithm is quick if most elements occur once: it looks for the longest rising path through all
pairs with equal elements.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence

_PAIRS_EACH = 4
"""Most pairs per element for which all pairs are tried.

If elements repeat so often that there are more pairs, an element's nth occurrence is only paired with the nth
occurrence at the target, or with occurrences at about the same index.
"""


def align(ours: Sequence[Hashable], theirs: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return index pairs of equal elements, rising on both sides; as many as possible.

    If elements repeat very often, the result may have fewer pairs.
    """
    start, shorter = 0, min(len(ours), len(theirs))
    while start < shorter and ours[start] == theirs[start]:
        start += 1
    tail = 0
    while tail < shorter - start and ours[-1 - tail] == theirs[-1 - tail]:
        tail += 1
    pairs = [(index, index) for index in range(start)]
    middle = _longest_path(ours[start : len(ours) - tail], theirs[start : len(theirs) - tail])
    pairs += [(start + our, start + their) for our, their in middle]
    pairs += [(len(ours) - left, len(theirs) - left) for left in range(tail, 0, -1)]
    return pairs


def _longest_path(ours: Sequence[Hashable], theirs: Sequence[Hashable]) -> list[tuple[int, int]]:
    ends: list[int] = []
    """Lowest target index at which a path of each length ends."""
    paths: list[tuple[int, int, int]] = []
    """Source index, target index, and the prolonged path's index."""
    last: list[int] = []
    for our, candidates in _candidates(ours, theirs):
        for their in candidates:
            length = bisect_left(ends, their)
            paths.append((our, their, last[length - 1] if length else -1))
            if length == len(ends):
                ends.append(their)
                last.append(len(paths) - 1)
            else:
                ends[length] = their
                last[length] = len(paths) - 1
    path: list[tuple[int, int]] = []
    at = last[-1] if last else -1
    while at >= 0:
        our, their, at = paths[at]
        path.append((our, their))
    return path[::-1]


def _candidates(ours: Sequence[Hashable], theirs: Sequence[Hashable]) -> Iterator[tuple[int, list[int]]]:
    """Yield each source index with the target indexes to try, highest first."""
    places: dict[Hashable, list[int]] = defaultdict(list)
    for index, element in enumerate(theirs):
        places[element].append(index)
    pairs = sum(len(places.get(element, ())) for element in ours)
    seen: dict[Hashable, int] = defaultdict(int)
    for our, element in enumerate(ours):
        there = places.get(element, [])
        if pairs <= _PAIRS_EACH * (len(ours) + len(theirs)):
            yield our, there[::-1]
        else:
            nth = seen[element]
            seen[element] += 1
            near = bisect_left(there, our)
            yield our, sorted({*there[max(near - 2, 0) : near + 2], *there[nth : nth + 1]}, reverse=True)
