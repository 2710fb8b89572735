"""Requests of bounded size leave nothing out."""

from __future__ import annotations

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.chunks import chunks


@given(st.lists(st.integers()), st.integers(1, 7))
def test_each_item_once_and_in_order(items: list[int], size: int) -> None:
    parts = list(chunks(items, size))
    assert list(chain.from_iterable(parts)) == items
    assert all(0 < len(part) <= size for part in parts)
    assert len(parts) == -(-len(items) // size)
