"""What is compared of a partition, and how it is cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.maps.offset_map import Copied, OffsetMap
from sparkmirror.exact.maps.partition_map import ForeignRange
from sparkmirror.frames import ranges
from sparkmirror.frames.ranges import LogPlan, Window, cut, extent
from sparkmirror.kafka.wire.splice import Run


def log(start: int, end: int) -> LogPlan:
    return LogPlan(topic="t", topic_id="", start=start, end=end)


def claim(sequence: int, downstream: int, runs: list[Run], topic: int = 0) -> Claim:
    return Claim(
        target_topic_id=b"t" * 16,
        partition=0,
        sequence=sequence,
        incarnation=sequence,
        producer_id=1,
        producer_epoch=0,
        source_topic_id=bytes([topic]) * 16,
        source_leader_epoch=0,
        downstream=downstream,
        runs=tuple(runs),
    )


def dense(upstream: int, downstream: int, count: int) -> OffsetMap:
    """A copy without gaps."""
    copied = Copied(count, upstream + count, downstream + count)
    return OffsetMap.build([claim(0, downstream, [Run(upstream, count)])], copied)


def test_all_that_was_copied_is_compared() -> None:
    found = extent(log(0, 130), log(0, 100), dense(0, 0, 100), Window())
    assert (found.upstream, found.downstream) == ((0, 100), (0, 100))
    assert (found.not_copied_yet, found.expired) == (30, 0)


def test_foreign_records_on_both_ends_of_the_target_are_looked_at() -> None:
    found = extent(log(0, 100), log(3, 120), dense(0, 10, 100), Window())
    assert (found.upstream, found.downstream) == ((0, 100), (3, 120))


@pytest.mark.parametrize(
    ("source", "target", "upstream", "downstream", "expired"),
    [
        (log(40, 100), log(0, 100), (40, 100), (40, 100), 40),
        (log(0, 100), log(40, 100), (40, 100), (40, 100), 40),
        (log(30, 100), log(40, 100), (40, 100), (40, 100), 10),
        (log(100, 100), log(0, 100), (100, 100), (100, 100), 100),
        (log(0, 100), log(100, 100), (100, 100), (100, 100), 100),
    ],
    ids=["source", "target", "both", "all of the source", "all of the target"],
)
def test_what_retention_took_from_one_side_is_not_compared(
    source: LogPlan, target: LogPlan, upstream: tuple[int, int], downstream: tuple[int, int], expired: int
) -> None:
    found = extent(source, target, dense(0, 0, 100), Window())
    assert (found.upstream, found.downstream, found.expired) == (upstream, downstream, expired)
    assert found.not_copied_yet == 0
    assert found.deleted[1] - found.deleted[0] == max(target.start - source.start, 0)


def test_what_was_before_the_copys_start_is_not_compared() -> None:
    found = extent(log(0, 100), log(0, 40), dense(60, 0, 40), Window())
    assert (found.upstream, found.downstream, found.expired) == ((60, 100), (0, 40), 60)


def test_what_somebody_else_copied_before_ours_is_not_compared() -> None:
    """A MirrorMaker 2 copied up to 500, and the source still has all of it."""
    offsets = dense(500, 510, 500)
    found = extent(log(0, 1000), log(0, 1010), offsets, Window(), taken_over=True)
    assert (found.upstream, found.downstream) == ((500, 1000), (510, 1010))
    assert (found.expired, found.others) == (500, 510)
    (plan,) = cut(found, offsets, 1.0, 0)
    assert (plan.first_upstream, plan.first_downstream) == (500, 510)


@pytest.mark.parametrize(
    ("source", "target", "upstream", "downstream", "others"),
    [
        (log(700, 1000), log(0, 1010), (700, 1000), (710, 1010), 510),
        (log(0, 1000), log(600, 1010), (590, 1000), (600, 1010), 0),
        (log(0, 1000), log(200, 1010), (500, 1000), (510, 1010), 310),
        (log(0, 1000), log(1010, 1010), (1000, 1000), (1010, 1010), 0),
    ],
    ids=["source's retention", "target's", "target's, before ours", "all of the target"],
)
def test_retention_after_a_takeover(
    source: LogPlan, target: LogPlan, upstream: tuple[int, int], downstream: tuple[int, int], others: int
) -> None:
    found = extent(source, target, dense(500, 510, 500), Window(), taken_over=True)
    assert (found.upstream, found.downstream, found.others) == (upstream, downstream, others)


def test_what_moved_writers_wrote_between_ours_is_passed_over() -> None:
    """Target: 100 of ours, 50 of theirs, 100 of ours, theirs without end."""
    claims = [claim(0, 0, [Run(0, 100)]), claim(100, 150, [Run(100, 100)])]
    offsets = OffsetMap.build(claims, Copied(200, 200, 250))
    window = Window(end=200, moved=True, theirs=((100, 150),))
    found = extent(log(0, 230), log(0, 400), offsets, window)
    assert (found.upstream, found.downstream, found.others) == ((0, 200), (0, 250), 0)
    assert [gap.end - gap.first for gap in found.theirs] == [50]
    plans = cut(found, offsets, 1.0, 0)
    places = [(one.first_upstream, one.end_upstream, one.first_downstream, one.end_downstream) for one in plans]
    assert places == [(0, 100, 0, 100), (100, 200, 150, 250)]


def test_a_record_of_ours_is_compared_whatever_the_ledger_says() -> None:
    offsets = dense(0, 0, 200)
    found = extent(log(0, 200), log(0, 200), offsets, Window(end=200, moved=True, theirs=((100, 150),)))
    assert found.theirs == ()
    (plan,) = cut(found, offsets, 1.0, 0)
    assert (plan.first_downstream, plan.end_downstream) == (0, 200)


def there_and_back() -> tuple[OffsetMap, ForeignRange]:
    """We copied 100 records; somebody else 100 more, 10 of them twice; then we did again."""
    claims = [claim(0, 0, [Run(0, 100)]), claim(100, 210, [Run(200, 100)])]
    return OffsetMap.build(claims, Copied(200, 300, 310)), ForeignRange(200, 100, 210)


def test_what_somebody_else_copied_between_ours_is_one_range() -> None:
    offsets, others = there_and_back()
    found = extent(log(0, 300), log(0, 310), offsets, Window(), others=[others])
    assert (found.upstream, found.downstream, found.others) == ((0, 300), (0, 310), 0)
    plans = cut(found, offsets, ranges.RANGE_BYTES / 40, 0)
    assert [(plan.end_upstream, plan.end_downstream) for plan in plans] == [
        (40, 40),
        (80, 80),
        (200, 210),
        (240, 250),
        (300, 310),
    ]


@pytest.mark.parametrize(
    ("source", "target", "window", "upstream", "downstream", "left_out"),
    [
        (log(0, 300), log(0, 310), Window(150, 250), (200, 250), (210, 260), 110),
        (log(0, 300), log(0, 310), Window(50, 150), (50, 100), (50, 100), 110),
        (log(0, 300), log(0, 310), Window(120, 150), (200, 200), (210, 210), 110),
        (log(0, 300), log(0, 310), Window(50, 100), (50, 100), (50, 100), 0),
        (log(0, 300), log(0, 310), Window(50, 250), (50, 250), (50, 260), 0),
        (log(0, 300), log(0, 310), Window(200, 250), (200, 250), (210, 260), 0),
        (log(150, 300), log(0, 310), Window(), (200, 300), (210, 310), 110),
        (log(0, 300), log(150, 310), Window(), (200, 300), (210, 310), 60),
        (log(0, 300), log(100, 310), Window(), (200, 300), (210, 310), 110),
        (log(0, 300), log(230, 310), Window(), (220, 300), (230, 310), 0),
    ],
)
def test_what_somebody_else_copied_between_ours_is_left_out_where_an_end_is_in_it(
    source: LogPlan,
    target: LogPlan,
    window: Window,
    upstream: tuple[int, int],
    downstream: tuple[int, int],
    left_out: int,
) -> None:
    offsets, others = there_and_back()
    found = extent(source, target, offsets, window, others=[others])
    assert (found.upstream, found.downstream, found.others) == (upstream, downstream, left_out)


def test_the_offsets_of_a_topic_that_was_created_again_since_are_others() -> None:
    claims = [claim(0, 0, [Run(0, 100)]), claim(100, 210, [Run(200, 100)]), claim(200, 310, [Run(0, 300)], topic=1)]
    offsets = OffsetMap.build(claims, Copied(500, 300, 610))
    found = extent(log(0, 300), log(0, 610), offsets, Window(150, 250), others=[ForeignRange(200, 100, 210)])
    assert (found.upstream, found.downstream, found.others) == ((150, 250), (460, 560), 0)


def test_a_window_bounds_both_sides() -> None:
    offsets = dense(0, 7, 100)
    found = extent(log(0, 100), log(7, 107), offsets, Window(20, 30))
    assert (found.upstream, found.downstream, found.not_copied_yet) == ((20, 30), (27, 37), 0)
    beyond = extent(log(0, 150), log(7, 107), offsets, Window(120, 130))
    assert (beyond.upstream, beyond.downstream, beyond.not_copied_yet) == ((120, 120), (107, 107), 10)
    assert cut(beyond, offsets, 10.0, 0) == []


def test_copies_of_a_topic_that_was_deleted_are_not_compared() -> None:
    claims = [claim(0, 0, [Run(0, 50)]), claim(50, 50, [Run(0, 20)], topic=1)]
    offsets = OffsetMap.build(claims, Copied(70, 20, 70))
    found = extent(log(0, 20), log(0, 70), offsets, Window())
    assert (found.upstream, found.downstream, found.former) == ((0, 20), (50, 70), 50)


def test_copies_of_a_log_that_was_cut_are_not_compared() -> None:
    """Cut at 40 after 60 were copied, with a gap in them, and again at 70; the new history was copied behind them."""
    claims = [
        claim(0, 0, [Run(0, 30), Run(35, 25)]),
        claim(55, 55, [Run(40, 50)]),
        claim(105, 105, [Run(70, 30)]),
    ]
    offsets = OffsetMap.build(claims, Copied(135, 100, 135))
    found = extent(log(0, 100), log(0, 140), offsets, Window())
    assert (found.upstream, found.downstream, found.former) == ((0, 100), (0, 140), 20 + 20)
    assert [plan.model_dump(exclude={"range"}) for plan in cut(found, offsets, 1.0, 0)] == [
        {"first_upstream": 0, "end_upstream": 40, "first_downstream": 0, "end_downstream": 35},
        {"first_upstream": 40, "end_upstream": 70, "first_downstream": 55, "end_downstream": 85},
        {"first_upstream": 70, "end_upstream": 100, "first_downstream": 105, "end_downstream": 140},
    ]
    for window, former in ((Window(50, 60), 0), (Window(20, 50), 20), (Window(40, 70), 20)):
        found = extent(log(0, 100), log(0, 140), offsets, window)
        plans = cut(found, offsets, 1.0, 0)
        assert found.former == former
        assert sum(one.end_downstream - one.first_downstream for one in plans) == sum(
            one.end_upstream - one.first_upstream - 5 * (one.first_upstream <= 30) for one in plans
        )
    left = extent(log(0, 100), log(50, 140), offsets, Window())
    plans = cut(left, offsets, 1.0, 0)
    assert [(one.first_upstream, one.first_downstream) for one in plans] == [(40, 55), (70, 105)]


@pytest.mark.parametrize("end", [4, 5, 6])
def test_a_window_that_ends_where_the_log_was_cut_or_just_before_it_has_no_lost_copies(end: int) -> None:
    """Of 0 to 3 and 6 to 8; cut at 6, and 6 was copied again. No record is at 4 and 5."""
    offsets = OffsetMap.build([claim(0, 0, [Run(0, 4), Run(6, 3)]), claim(7, 7, [Run(6, 1)])], Copied(8, 7, 8))
    found = extent(log(0, 7), log(0, 8), offsets, Window(3, end))
    (only,) = cut(found, offsets, 1.0, 0)
    assert (only.first_upstream, only.end_upstream) == (3, end)
    assert (only.first_downstream, only.end_downstream, found.former) == (3, 4, 3)


def test_without_a_map_both_logs_are_compared_whole() -> None:
    found = extent(log(5, 100), log(0, 95), None, Window())
    assert (found.upstream, found.downstream) == ((5, 100), (0, 95))
    assert len(cut(found, None, 1e9, 4)) == 1


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 10), st.integers(0, 10)), min_size=1, max_size=20),
    st.integers(0, 100),
    st.integers(0, 100),
    st.integers(0, 300),
    st.integers(1, 80),
)
def test_ranges_cover_all_and_each_record_is_in_the_same_range_on_both_sides(
    runs: list[tuple[int, int, int]], source_start: int, target_start: int, more: int, step: int
) -> None:
    claims, upstream, downstream, records = [], 0, 0, 0
    copies: list[tuple[int, int]] = []
    for count, gap, foreign in runs:
        downstream += foreign
        claims.append(claim(records, downstream, [Run(upstream, count)]))
        copies += [(upstream + index, downstream + index) for index in range(count)]
        upstream, downstream, records = upstream + count + gap, downstream + count, records + count
    offsets = OffsetMap.build(claims, Copied(records, upstream, downstream))
    source, target = log(min(source_start, upstream), upstream + more), log(min(target_start, downstream), downstream)
    found = extent(source, target, offsets, Window())
    plans = cut(found, offsets, ranges.RANGE_BYTES / step, 10)
    assert [plan.range for plan in plans] == list(range(10, 10 + len(plans)))
    for one, other in pairwise(plans):
        assert one.end_upstream == other.first_upstream
        assert one.end_downstream == other.first_downstream
        assert (other.first_upstream, other.first_downstream) in copies
    if plans:
        assert (plans[0].first_upstream, plans[-1].end_upstream) == found.upstream
        assert (plans[0].first_downstream, plans[-1].end_downstream) == found.downstream
    for up, down in copies:
        ours = [plan.range for plan in plans if plan.first_upstream <= up < plan.end_upstream]
        theirs = [plan.range for plan in plans if plan.first_downstream <= down < plan.end_downstream]
        assert ours == theirs, f"{up} -> {down}"
        assert bool(ours) == (up >= source.start and down >= target.start)
    assert found.not_copied_yet == source.end - max(upstream, source.start)
