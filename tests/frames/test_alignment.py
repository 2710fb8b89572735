"""Alignments against the textbook's table, and their size where it matters."""

from __future__ import annotations

import time
from functools import lru_cache
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.frames.alignment import align

few = st.lists(st.integers(0, 30), max_size=25)


def longest(ours: list[int], theirs: list[int]) -> int:
    """By dynamic programming."""

    @lru_cache(None)
    def of(one: int, other: int) -> int:
        if one == len(ours) or other == len(theirs):
            return 0
        if ours[one] == theirs[other]:
            return 1 + of(one + 1, other + 1)
        return max(of(one + 1, other), of(one, other + 1))

    return of(0, 0)


@settings(max_examples=300, deadline=None)
@given(few, few)
def test_pairs_are_equal_and_rise(ours: list[int], theirs: list[int]) -> None:
    pairs = align(ours, theirs)
    assert all(ours[one] == theirs[other] for one, other in pairs)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(pairs))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(0, 1000), max_size=15, unique=True), st.data())
def test_there_are_as_many_as_there_can_be(ours: list[int], data: st.DataObject) -> None:
    theirs = data.draw(st.lists(st.sampled_from(ours or [1]), max_size=15))
    assert len(align(ours, theirs)) == longest(ours, theirs)


def test_many_equal_elements_do_not_take_long() -> None:
    ours = [1] * 20_000 + [2] + [1] * 20_000
    theirs = [2] + [1] * 40_000 + [3]
    began = time.thread_time()
    assert len(align(ours, theirs)) >= 39_000
    assert time.thread_time() - began < 5


@pytest.mark.parametrize("kinds", [2, 8])
def test_one_that_is_lost_among_few_kinds_shifts_the_rest(kinds: int) -> None:
    """As a sensor writes them that says one of few words over and over."""
    theirs = [number % kinds for number in range(4_000)]
    assert len(align(theirs, theirs[:7] + theirs[8:])) == 3_999
    assert len(align(theirs[1:], theirs)) == 3_999
