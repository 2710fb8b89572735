"""When an offset sync is due, by the sequences of MirrorMaker 2's own tests (`tests/conformance.md`); the queues."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.exact.mm2.offset_sync_queues import SyncQueues, SyncState
from sparkmirror.exact.mm2.record_formats import OffsetSync

STEPS = [
    (0, 100, "the first"),
    (2, 102, "an upstream offset was skipped"),
    (3, 152, ""),
    (4, 153, "51 after the last sync"),
    (5, 154, ""),
    (6, 203, ""),
    (7, 204, "51 after the last sync"),
    (2, 206, "back upstream"),
    (3, 207, ""),
    (4, 3, "back downstream"),
    (5, 4, ""),
    (7, 6, "an upstream offset was skipped"),
    (7, 6, "the same record again"),
    (8, 7, ""),
    (10, 57, "an upstream offset was skipped"),
    (11, 58, ""),
]


def test_a_sync_is_due_as_mirror_maker_has_it() -> None:
    """As its `testOffsetSync`, which asks for 50 records of lag."""
    state = SyncState(50)
    for upstream, downstream, why in STEPS:
        assert state.update(upstream, downstream) is bool(why), (upstream, downstream, why)


def test_without_any_lag_each_record_makes_a_sync_due() -> None:
    """As its `testZeroOffsetSync`."""
    state = SyncState(0)
    assert all(state.update(upstream, downstream) for upstream, downstream, _ in STEPS)


@given(st.integers(0, 200), st.integers(0, 1000), st.lists(st.integers(1, 300), min_size=1, max_size=20))
def test_many_records_at_once_are_due_if_one_of_them_was(most_lag: int, start: int, strides: list[int]) -> None:
    """Where there is no gap, a turn's last record goes for all of them: never further apart than the lag."""
    state, upstream, synced = SyncState(most_lag), start, start
    assert state.advance(upstream, upstream)
    for stride in strides:
        upstream += stride
        due = upstream - synced - 1 >= most_lag
        assert state.advance(upstream, upstream) is due
        synced = upstream if due else synced


def test_a_gap_among_many_records_is_told() -> None:
    state = SyncState(1000)
    state.advance(10, 10)
    assert not state.advance(20, 20)
    assert state.advance(31, 30)
    assert not state.advance(41, 40)
    assert state.advance(52, 53), "somebody else's records are between ours at the target"


def sync(upstream: int, downstream: int, topic: str = "t") -> OffsetSync:
    return OffsetSync(topic, 0, upstream, downstream)


def test_what_is_due_goes_now_and_the_rest_when_it_is_promoted() -> None:
    queues = SyncQueues(100)
    queues.note("t", 0, 0, 0)
    queues.note("u", 0, 7, 7)
    assert queues.take() == [sync(0, 0), sync(7, 7, "u")]
    queues.note("t", 0, 50, 50)
    queues.note("u", 0, 8, 8)
    queues.note("t", 0, 60, 60)
    assert queues.take() == []
    queues.promote()
    assert queues.take() == [sync(60, 60), sync(8, 8, "u")]
    queues.promote()
    assert queues.take() == []


def test_what_is_due_takes_the_place_of_what_was_delayed() -> None:
    queues = SyncQueues(100)
    queues.note("t", 0, 0, 0)
    queues.note("t", 0, 50, 50)
    queues.note("t", 0, 150, 150)
    queues.promote()
    assert queues.take() == [sync(150, 150)]


def test_the_same_record_is_told_once() -> None:
    queues = SyncQueues(0)
    for _ in range(3):
        queues.note("t", 0, 5, 5)
    assert queues.take() == [sync(5, 5)]
    queues.note("t", 0, 5, 5)
    queues.promote()
    assert queues.take() == []


def test_what_could_not_be_written_goes_with_the_next_unless_there_is_newer() -> None:
    queues = SyncQueues(0)
    queues.note("t", 0, 5, 5)
    queues.note("u", 0, 6, 6)
    taken = queues.take()
    queues.note("t", 0, 9, 9)
    queues.put_back(taken)
    assert queues.take() == [sync(9, 9), sync(6, 6, "u")]
