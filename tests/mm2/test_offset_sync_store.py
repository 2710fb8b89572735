"""MirrorMaker 2's translation against its vectors (`mm2.md` 3.6) and the cases of its `OffsetSyncStoreTest`."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.offset_sync_store import SLOTS, OffsetSyncStore, is_apart, is_recent

from sparkmirror.exact.mm2.record_formats import OffsetSync


def fed(
    at_start: Iterable[int | tuple[int, int]] = (),
    later: Iterable[int | tuple[int, int]] = (),
    *,
    keep_history: bool = False,
) -> OffsetSyncStore:
    """A store that was started after the first syncs; a number is both offsets."""
    store = OffsetSyncStore(keep_history=keep_history)
    for sync in at_start:
        store.add(as_sync(sync))
    store.started()
    for sync in later:
        store.add(as_sync(sync))
    return store


def as_sync(offsets: int | tuple[int, int]) -> OffsetSync:
    upstream, downstream = (offsets, offsets) if isinstance(offsets, int) else offsets
    return OffsetSync("t", 0, upstream, downstream)


def translate(store: OffsetSyncStore, upstream: int) -> int | None:
    return store.translate("t", 0, upstream)


def shape(store: OffsetSyncStore) -> dict[int, int]:
    """Upstream offsets by the first slot that has them."""
    found: dict[int, int] = {}
    for slot, sync in enumerate(store.slots("t", 0)):
        if sync.upstream not in found.values():
            found[slot] = sync.upstream
    return found


LONG = {0: 1_000_000, 8: 999_900, 9: 999_800, 10: 999_600, 11: 999_200, 12: 998_400, 13: 995_200, 14: 992_000}
LONG |= {15: 985_600, 16: 972_800, 17: 921_600, 18: 819_200, 19: 614_400, 20: 409_600, 21: 0}


@pytest.mark.parametrize(
    ("syncs", "slots"),
    [
        (range(0, 1001, 100), {0: 1000, 8: 900, 9: 800, 10: 400, 11: 0}),
        (range(21), {0: 20, 1: 19, 2: 18, 3: 16, 4: 8, 5: 0}),
        (range(0, 1_000_001, 100), LONG),
    ],
)
def test_slots(syncs: range, slots: dict[int, int]) -> None:
    assert shape(fed(later=syncs)) == slots


def test_slots_after_the_start() -> None:
    syncs = range(0, 1001, 10)
    kept = {0: 1000, 5: 990, 6: 960, 7: 900, 8: 840, 9: 720, 10: 480, 11: 0}
    assert shape(fed(syncs, keep_history=True)) == kept
    assert shape(fed(syncs)) == {0: 1000}


LONG_TRANSLATIONS = {
    50: 1,
    999: 1,
    500_000: 409_601,
    900_000: 819_201,
    990_000: 985_601,
    999_000: 998_401,
    999_950: 999_901,
    1_000_000: 1_000_000,
    1_000_001: 1_000_001,
    2_000_000: 1_000_001,
}


def test_far_behind_the_newest_sync_translation_is_coarse() -> None:
    store = fed(later=range(0, 1_000_001, 100))
    assert {upstream: translate(store, upstream) for upstream in LONG_TRANSLATIONS} == LONG_TRANSLATIONS


def test_translation() -> None:
    """As `testOffsetTranslation`."""
    store = fed(later=[(100, 200)])
    assert translate(store, 150) == 201
    assert translate(store, 100) == 200
    store.add(as_sync((150, 251)))
    assert translate(store, 150) == 251
    assert translate(store, 5) == -1
    store.add(as_sync((200, 10)))  # the target topic was created again
    assert translate(store, 200) == 10
    store.add(as_sync((20, 20)))  # the source topic was
    assert translate(store, 20) == 20


def test_nothing_is_translated_before_the_topic_is_read() -> None:
    """As `testNoTranslationIfStoreNotStarted`."""
    store = OffsetSyncStore(keep_history=True)
    store.add(as_sync((100, 200)))
    assert [translate(store, upstream) for upstream in (0, 100, 200)] == [None] * 3
    store.started()
    assert [translate(store, upstream) for upstream in (0, 100, 200)] == [-1, 200, 201]


def test_nothing_is_translated_without_a_sync() -> None:
    """As `testNoTranslationIfNoOffsetSync`."""
    assert translate(fed(), 0) is None


SPARSE_SINCE = {
    False: {500: -1, 999: -1, 1000: 1000},
    True: {500: 481, 730: 721, 999: 991, 1000: 1000},
}


@pytest.mark.parametrize("keep_history", [False, True])
def test_the_past_is_known_coarsely_or_from_the_start_on(keep_history: bool) -> None:
    """As `testPastOffsetTranslation` and `testPastOffsetTranslationWithoutInitializationReadToEnd`."""
    store = fed(range(0, 1001, 10), keep_history=keep_history)
    expected = SPARSE_SINCE[keep_history]
    assert {upstream: translate(store, upstream) for upstream in expected} == expected
    for upstream in range(1010, 10_001, 10):
        store.add(as_sync(upstream))
    known = [0, 3840, 7680, 8640, 9120, 9600, 9840, 9900, 9960, 9990, 10_000]
    if not keep_history:
        known = [1000, 4840, 6760, 8680, 9160, 9640, 9880, 9940, 9970, 9990, 10_000]
    assert sorted(shape(store).values()) == known
    assert [translate(store, upstream) for upstream in known] == known
    store.add(as_sync((1500, 11_000)))
    assert [translate(store, upstream) for upstream in (1499, 1500, 2000)] == [-1, 11_000, 11_001]


offsets = st.integers(0, 2**63 - 1)
steps = st.lists(st.integers(1, 10) | st.integers(1, 2**20) | st.integers(1, 2**56), max_size=120)


@settings(deadline=None)
@given(steps)
def test_invariants(strides: list[int]) -> None:
    store, upstream = fed(later=[0]), 0
    for stride in strides:
        upstream += stride
        store.add(as_sync(upstream))
        slots = store.slots("t", 0)
        assert len(slots) == SLOTS
        assert slots[0].upstream == upstream, "A"
        assert slots[-1].upstream == 0, "D"
    slots = store.slots("t", 0)
    for i in range(SLOTS):
        for j in range(i + 1, SLOTS):
            if slots[i] is not slots[j]:
                assert is_recent(slots[i], slots[j], i, j), "B"
                assert is_apart(slots[i], slots[j], i), "C"


@settings(deadline=None)
@given(steps, offsets)
def test_translation_is_never_ahead(strides: list[int], upstream: int) -> None:
    """With offsets that are the same on both sides a group is never told to continue behind where it is."""
    syncs = [sum(strides[:count]) for count in range(len(strides) + 1)]
    translated = translate(fed(later=syncs), upstream)
    assert translated is not None
    assert translated <= upstream


def test_a_step_back_upstream_forgets_all_before() -> None:
    store = fed(later=range(0, 1001, 10))
    store.add(as_sync((400, 2000)))
    assert shape(store) == {0: 400}


def dropped(syncs: Iterable[int]) -> list[int]:
    """How many syncs each new one drove out."""
    store, before, counts = fed(later=[0]), {0}, []
    for upstream in syncs:
        store.add(as_sync(upstream))
        now = set(shape(store).values())
        counts.append(len(before - now))
        before = now
    return counts


@pytest.mark.parametrize("stride", [1, 2, 3, 10, 100, 1000])
def test_evenly_spaced_syncs_drive_out_one_each_at_most(stride: int) -> None:
    """As `testConsistentlySpacedSyncs`."""
    assert max(dropped(range(stride, 3000 * stride, stride))) <= 1


@pytest.mark.parametrize("bits", range(0, 56, 8))
def test_randomly_spaced_syncs_drive_out_few(bits: int) -> None:
    """As `testRandomlySpacedSyncs`: strides of up to so many bits drive out as many and two."""
    chance, upstream, syncs = random.Random(bits), 0, []
    for _ in range(1000):
        upstream += 1 + chance.randrange(1 << bits)
        if upstream >= 2**62:
            break
        syncs.append(upstream)
    assert max(dropped(syncs)) <= bits + 2


def test_syncs_with_some_missing_drive_out_two_each_at_most() -> None:
    """As `testDroppedSyncsSpacing`: one in twelve or so was never written."""
    chance, upstream, syncs = random.Random(1), 0, []
    for _ in range(3000):
        upstream += 100 if chance.random() > 0.08 else 200
        syncs.append(upstream)
    assert max(dropped(syncs)) <= 2
