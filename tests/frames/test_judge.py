"""What unmatched records mean where a cleaner may have been at work."""

from __future__ import annotations

import pytest

from sparkmirror.frames.judge import Cleaning, Judged, Judgement, KeysSeen, Placed, judge
from sparkmirror.frames.report import SOURCE, TARGET, Side, Unmatched

NOW = 1_000_000
CLEANED = Cleaning(True, NOW)
KEPT = Cleaning(False, NOW)


def one(
    side: Side, offset: int, *, gap: int = 0, across: int = 100, key: int = 7, content: str = "", **more: int
) -> Placed:
    timestamp, tombstone = more.get("timestamp", NOW + 5), bool(more.get("tombstone"))
    return Placed(0, Unmatched(side, offset, gap, across, timestamp, content or f"{side}{offset}", key, tombstone))


def judged(
    *unmatched: Placed,
    source: Cleaning = KEPT,
    target: Cleaning = KEPT,
    here: KeysSeen | None = None,
    there: KeysSeen | None = None,
) -> Judgement:
    return judge(unmatched, {SOURCE: source, TARGET: target}, {SOURCE: here or KeysSeen(), TARGET: there or KeysSeen()})


def test_a_record_with_a_newer_one_of_its_key_was_compacted_away() -> None:
    later = KeysSeen(newest={7: 100})
    assert judged(one(TARGET, 5), source=CLEANED, here=later) == Judgement([], 1)
    assert judged(one(SOURCE, 5), target=CLEANED, there=later) == Judgement([], 1)


@pytest.mark.parametrize(
    ("cleaning", "newest"),
    [(KEPT, {7: 100}), (CLEANED, {}), (CLEANED, {7: 99}), (CLEANED, {8: 100})],
    ids=["not compacted", "key gone", "only an earlier one", "another key"],
)
def test_a_record_that_no_cleaner_takes_is_extra_or_missing(cleaning: Cleaning, newest: dict[int, int]) -> None:
    seen = KeysSeen(newest=newest)
    assert judged(one(TARGET, 5), source=cleaning, here=seen).differences == [Judged("extra", None, 5)]
    assert judged(one(SOURCE, 5), target=cleaning, there=seen).differences == [Judged("missing", 5, None)]


def test_the_other_sides_cleaner_is_what_counts() -> None:
    later = KeysSeen(newest={7: 100})
    assert judged(one(TARGET, 5), target=CLEANED, here=later).differences == [Judged("extra", None, 5)]


def test_no_cleaner_takes_a_record_without_a_key() -> None:
    found = judged(one(TARGET, 5, key=-1), source=CLEANED, here=KeysSeen(newest={-1: 100}))
    assert found.differences == [Judged("extra", None, 5)]


def test_an_old_tombstone_may_be_gone_with_all_that_it_deleted() -> None:
    tombstone = one(TARGET, 9, gap=1, timestamp=NOW - 1, tombstone=1)
    deleted = one(TARGET, 5)
    there = KeysSeen(newest={7: 9}, tombstones={7: (9, NOW - 1)})
    assert judged(deleted, tombstone, source=CLEANED, there=there) == Judgement([], 2)


def test_a_tombstone_that_is_gone_before_what_it_deleted_was_lost() -> None:
    """A cleaner takes a record's predecessors first, however old it is; else a deleted key lives for ever."""
    tombstone = one(SOURCE, 9, gap=1, timestamp=NOW - 1, tombstone=1)
    value = one(SOURCE, 5)
    here = KeysSeen(newest={7: 9}, tombstones={7: (9, NOW - 1)})
    alive = KeysSeen(newest={7: 3})
    lost = [Judged("missing", 5, None), Judged("missing", 9, None)]
    assert judged(value, tombstone, target=CLEANED, here=here, there=alive).differences == lost
    assert judged(value, tombstone, target=CLEANED, here=here) == Judgement([], 2)


@pytest.mark.parametrize(("room", "kept"), [(-1, 3), (3, 3), (2, 2), (0, 0)])
def test_no_more_is_excused_than_the_other_side_has_holes(room: int, kept: int) -> None:
    stretch = [Placed(0, one(SOURCE, offset).record._replace(room=room)) for offset in (5, 6, 7)]
    found = judged(*stretch, target=CLEANED, there=KeysSeen(newest={7: 100}))
    assert (found.compacted, len(found.differences)) == (kept, 3 - kept)


def test_a_young_tombstone_is_kept() -> None:
    tombstone = one(TARGET, 9, gap=1, timestamp=NOW + 1, tombstone=1)
    there = KeysSeen(newest={7: 9}, tombstones={7: (9, NOW + 1)})
    assert {found.kind for found in judged(one(TARGET, 5), tombstone, source=CLEANED, there=there).differences} == {
        "extra"
    }


def test_a_changed_record_is_not_excused_by_its_own_key() -> None:
    found = judged(one(SOURCE, 5), one(TARGET, 6), source=CLEANED, target=CLEANED, here=KeysSeen(newest={7: 5}))
    assert found.differences == [Judged("changed", 5, 6, "value or headers")]


def test_one_content_on_both_sides_is_one_record_that_moved() -> None:
    found = judged(one(SOURCE, 5, gap=1, content="x"), one(TARGET, 60, gap=9, content="x"))
    assert found.differences == [Judged("reordered", 5, 60)]


def test_a_content_that_the_source_has_elsewhere_is_a_duplicate() -> None:
    found = judged(one(TARGET, 60, content="x"), here=KeysSeen(contents={"x": 3}))
    assert found.differences == [Judged("duplicate", 3, 60)]


def test_what_a_compacted_source_has_further_on_was_written_twice_there() -> None:
    copy = one(TARGET, 60, across=70, content="x")
    later = KeysSeen(newest={7: 90}, contents={"x": 90})
    assert judged(copy, source=CLEANED, here=later) == Judgement([], 1)
    assert judged(copy, here=later).differences == [Judged("duplicate", 90, 60)]
    earlier = KeysSeen(newest={7: 90}, contents={"x": 3})
    assert judged(copy, source=CLEANED, here=earlier).differences == [Judged("duplicate", 3, 60)]


def test_records_of_two_gaps_are_not_one_that_changed() -> None:
    found = judged(one(SOURCE, 5, gap=1), one(TARGET, 6, gap=2))
    assert found.differences == [Judged("missing", 5, None), Judged("extra", None, 6)]


def test_of_a_changed_record_it_is_said_what() -> None:
    found = judged(one(SOURCE, 5, timestamp=1), one(TARGET, 6, timestamp=2, key=8))
    assert found.differences == [Judged("changed", 5, 6, "timestamp, key 1 -> 2")]


def test_what_parts_of_a_log_hold_is_put_together() -> None:
    seen = KeysSeen(newest={1: 5}, tombstones={1: (5, 0)}, contents={"a": 5})
    seen.add(KeysSeen(newest={1: 9, 2: 1}, tombstones={1: (2, 9)}, contents={"a": 2, "b": 7}))
    assert seen == KeysSeen(newest={1: 9, 2: 1}, tombstones={1: (5, 0)}, contents={"a": 2, "b": 7})
