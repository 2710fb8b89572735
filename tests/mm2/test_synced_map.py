"""Offsets from before a takeover: exact between pins that are equally far apart, else MirrorMaker 2's rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.exact.mm2.record_formats import OffsetSync
from sparkmirror.exact.mm2.synced_map import Mm2OffsetMap, SyncedOffset


def adopted(*pins: tuple[int, int], begins: int = 1_000) -> Mm2OffsetMap:
    return Mm2OffsetMap([OffsetSync("t", 0, *pin) for pin in pins], begins)


@pytest.mark.parametrize(
    ("upstream", "found"),
    [
        (99, None),
        (100, SyncedOffset(200, True)),
        (150, SyncedOffset(250, True)),
        (200, SyncedOffset(300, True)),
        (210, SyncedOffset(301, False)),
        (220, SyncedOffset(310, True)),
        (500, SyncedOffset(311, False)),
    ],
)
def test_between_and_behind_pins(upstream: int, found: SyncedOffset | None) -> None:
    """From 200 on there are gaps at the source."""
    assert adopted((100, 200), (200, 300), (220, 310)).downstream(upstream) == found


def test_what_was_copied_again_is_read_where_it_is_newest() -> None:
    again = adopted((100, 100), (150, 150), (120, 151), (160, 191))
    assert again.downstream(110) == SyncedOffset(101, False)
    assert again.downstream(130) == SyncedOffset(161, True)


def test_pins_of_our_time_and_of_a_topic_before_do_not_count() -> None:
    assert adopted((100, 100), (2000, 1000)).downstream(2000) == SyncedOffset(101, False)
    assert adopted((100, 500), (130, 10)).downstream(100) is None


@pytest.mark.parametrize("again", [(100, 200), (150, 250), (200, 300)])
def test_a_sync_that_was_written_again_says_nothing_new(again: tuple[int, int]) -> None:
    pins = ((100, 200), (150, 250), (200, 300))
    for upstream in range(90, 230):
        assert adopted(*pins, again).downstream(upstream) == adopted(*pins).downstream(upstream)


@given(
    st.lists(st.tuples(st.integers(1, 3), st.booleans()), min_size=1, max_size=40),
    st.lists(st.integers(0, 39), max_size=4),
    st.integers(0, 130),
)
def test_no_record_is_skipped(records: list[tuple[int, bool]], restarts: list[int], upstream: int) -> None:
    """Gaps at the source, syncs for some records and behind each gap, and runs that begin again."""
    offsets: list[int] = []
    for step, _ in records:
        offsets.append((offsets[-1] if offsets else -1) + step)
    target: list[int] = []
    syncs = []
    for first in (0, *restarts):
        for index in range(min(first, len(offsets) - 1), len(offsets)):
            gap = not target or offsets[index] != target[-1] + 1
            target.append(offsets[index])
            if gap or records[index][1]:
                syncs.append(OffsetSync("t", 0, offsets[index], len(target) - 1))
    found = Mm2OffsetMap(syncs, len(target)).downstream(upstream)
    wanted = {offset for offset in offsets if offset >= upstream}
    if found is not None:
        assert wanted <= set(target[found.downstream :])
        if found.exact and not restarts:
            assert min(target[found.downstream :], default=upstream) >= upstream
