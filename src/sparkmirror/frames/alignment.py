"""Which elements of two sequences belong together, in order: a longest common subsequence.

Hunt and Szymanski's way, which is quick where most elements occur once: it looks for the longest rising path
through all pairs of equal elements.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence

_PAIRS_EACH = 4
"""Where elements repeat so often that there are more pairs than this for each, only the nth is paired with the nth, or
with one that is about as far on."""


def align(ours: Sequence[Hashable], theirs: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Index pairs of equal elements, rising on both sides; the most that there can be.

    Where elements repeat very often it may be fewer.
    """
    start, shorter = 0, min(len(ours), len(theirs))
    while start < shorter and ours[start] == theirs[start]:
        start += 1
    tail = 0
    while tail < shorter - start and ours[-1 - tail] == theirs[-1 - tail]:
        tail += 1
    found = [(index, index) for index in range(start)]
    middle = _longest_path(ours[start : len(ours) - tail], theirs[start : len(theirs) - tail])
    found += [(start + our, start + their) for our, their in middle]
    found += [(len(ours) - left, len(theirs) - left) for left in range(tail, 0, -1)]
    return found


def _longest_path(ours: Sequence[Hashable], theirs: Sequence[Hashable]) -> list[tuple[int, int]]:
    ends: list[int] = []
    """The lowest index of theirs at which a path of each length ends."""
    paths: list[tuple[int, int, int]] = []
    """(our index, their index, which path it prolongs)."""
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
    found: list[tuple[int, int]] = []
    at = last[-1] if last else -1
    while at >= 0:
        our, their, at = paths[at]
        found.append((our, their))
    return found[::-1]


def _candidates(ours: Sequence[Hashable], theirs: Sequence[Hashable]) -> Iterator[tuple[int, list[int]]]:
    """For each of ours the indexes of theirs that it may be paired with, highest first."""
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
