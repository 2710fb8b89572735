"""One partition whose tail can't be read holds up no other of its group."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.kafka.cluster.log_tail import TailUnread, each_readable


@given(size=st.integers(1, 40), bad=st.sets(st.integers(0, 39)))
def test_each_is_read_once_or_refused_in_order(size: int, bad: set[int]) -> None:
    calls = 0

    def read(some: Sequence[int]) -> list[int]:
        nonlocal calls
        calls += 1
        for one in some:
            if one in bad:
                raise TailUnread("t", one, 6)
        return list(some)

    seen: list[int] = []
    for some, result in each_readable(list(range(size)), read):
        seen += some
        if isinstance(result, TailUnread):
            assert set(some) <= bad
        else:
            assert result == list(some)
            assert not bad & set(some)
    assert seen == list(range(size))
    assert calls <= 1 + 2 * size.bit_length() * len(bad)


def test_another_error_is_raised() -> None:
    def read(_: Sequence[int]) -> None:
        raise ConnectionError("the broker is gone")

    with pytest.raises(ConnectionError, match="gone"):
        list(each_readable([1, 2], read))
