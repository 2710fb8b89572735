"""Ranges for tasks and micro-batches: every offset once, and none waits for ever."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.source.range_cuts import bounded, cut
from sparkmirror.source.source_logs import OffsetRange

sizes = st.lists(st.integers(0, 5000), max_size=6)


@given(sizes, st.none() | st.integers(1, 50), st.none() | st.integers(1, 3000))
def test_each_offset_is_in_one_range(lengths: list[int], fewest: int | None, most: int | None) -> None:
    whole = [
        OffsetRange(topic="t", topic_id=b"", partition=number, first=7 * number, end=7 * number + size)
        for number, size in enumerate(lengths)
    ]
    parts = cut(whole, fewest, most)
    for each in whole:
        mine = [(part.first, part.end) for part in parts if part.partition == each.partition]
        assert all(first < end for first, end in mine)
        assert all(before[1] == after[0] for before, after in pairwise(mine))
        if each.first < each.end:
            assert (mine[0][0], mine[-1][1]) == (each.first, each.end)
        else:
            assert mine == []
    if most is not None:
        assert max((part.end - part.first for part in parts), default=0) <= most
    full = [size for size in lengths if size]
    if fewest is None and most is None:
        assert len(parts) == len(full)
    elif fewest is not None and full and min(full) > fewest:
        assert len(parts) >= min(fewest, sum(full)) - len(full)


@given(st.dictionaries(st.tuples(st.just("t"), st.integers(0, 9)), st.integers(0, 10_000)), st.integers(1, 5000))
def test_a_micro_batch_is_bounded_and_goes_on_everywhere(left: dict[tuple[str, int], int], most: int) -> None:
    start = {at: 100 for at in left}
    ends = {at: 100 + size for at, size in left.items()}
    made = bounded(start, ends, most)
    assert made.keys() == ends.keys()
    assert all(start[at] <= made[at] <= ends[at] for at in ends)
    assert all(made[at] > start[at] for at in ends if left[at])
    assert sum(made[at] - start[at] for at in ends) <= max(most, 0) + len(left)
