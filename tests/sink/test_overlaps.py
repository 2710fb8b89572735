"""How many last items of one sequence are the first of another."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.sink.overlaps import overlaps

FEW = st.lists(st.integers(0, 2), max_size=12)


@settings(max_examples=500)
@given(FEW, FEW)
def test_all_overlaps_are_found(ended: list[int], begun: list[int]) -> None:
    most = min(len(ended), len(begun))
    assert overlaps(ended, begun) == [
        count for count in range(most, -1, -1) if ended[len(ended) - count :] == begun[:count]
    ]
