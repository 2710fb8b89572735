"""Equal records of a key where cleaners were at work: any of them may be the one that is gone, a lost one is found."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from record_batches import Record, batches

from sparkmirror.frames import equal_records
from sparkmirror.frames.judge import Cleaning, Judgement, KeysSeen, Placed, judge
from sparkmirror.frames.report import SOURCE, TARGET, Side
from sparkmirror.frames.stream_comparison import Comparer, content_digest, key_digest
from sparkmirror.kafka.cluster.log_range import LogBatch
from sparkmirror.kafka.cluster.range_reader import OffsetBounds
from sparkmirror.kafka.wire.batches import batch_headers
from sparkmirror.kafka.wire.pieces import raw_parts

CLEANED, KEPT = Cleaning(True, 0), Cleaning(False, 0)
Log = Sequence[tuple[int, Record]]


def record(name: str) -> Record:
    """`k` or `k1`: a key and a value; all have one timestamp."""
    return Record(1_700_000_000_000, name[:1].encode(), name.encode())


def log(**offsets: str) -> Log:
    """Records by offset: `log(_0="k", _2="m")`."""
    return [(int(offset[1:]), record(name)) for offset, name in offsets.items()]


def judged(
    source: Log,
    target: Log,
    *,
    source_cleaning: Cleaning = CLEANED,
    target_cleaning: Cleaning = CLEANED,
    sizes: Sequence[int] = (3,),
    target_sizes: Sequence[int] = (3,),
    timestamps: bool = True,
    target_end: int | None = None,
) -> Judgement:
    end = max([offset for offset, _ in (*source, *target)], default=0) + 1
    bounds = OffsetBounds(0, end)
    ends = OffsetBounds(0, end if target_end is None else target_end)
    ours, theirs = list(batches(source, sizes)), list(batches(target, target_sizes))
    found = Comparer(ours, theirs, bounds, ends, timestamps=timestamps).compare()
    seen = {SOURCE: seen_in(ours, timestamps), TARGET: seen_in(theirs, timestamps)}
    cleaning = {SOURCE: source_cleaning, TARGET: target_cleaning}
    return judge([Placed(0, one) for one in found.unmatched], cleaning, seen, timestamps=timestamps)  # type: ignore[arg-type]


def seen_in(parts: Sequence[LogBatch], timestamps: bool) -> KeysSeen:
    seen = KeysSeen()
    for part in parts:
        for offset, timestamp, body in raw_parts(*part):
            seen.newest[key_digest(body)[0]] = offset
            seen.contents.setdefault(content_digest(body, timestamp if timestamps else None), offset)
    return seen


WHOLE = log(_0="k", _1="k", _2="j")
TAIL = log(_1="k", _2="j")


@pytest.mark.parametrize("sizes", [[3], [1], [2, 1]])
def test_the_first_of_two_equal_ones_was_compacted_away(sizes: list[int]) -> None:
    """Also where both are batches of their own, and the first was equal as a whole to the copy of the second."""
    for target_sizes in ([3], [1]):
        assert judged(WHOLE, TAIL, sizes=sizes, target_sizes=target_sizes) == Judgement([], 1)
        assert judged(TAIL, WHOLE, sizes=target_sizes, target_sizes=sizes) == Judgement([], 1)


def test_where_timestamps_are_not_compared_equal_values_are_enough() -> None:
    target = [(offset, one._replace(timestamp=one.timestamp + offset)) for offset, one in TAIL]
    assert judged(WHOLE, target, timestamps=False) == Judgement([], 1)
    assert judged(target, WHOLE, timestamps=False) == Judgement([], 1)


def test_a_pattern_of_several_keys_that_was_written_again() -> None:
    whole = log(_0="k", _1="x", _2="m", _3="k", _4="m", _5="x")
    tail = log(_3="k", _4="m", _5="x")
    assert judged(whole, tail) == Judgement([], 3)
    assert judged(tail, whole) == Judgement([], 3)


def test_without_a_cleaner_nothing_is_excused() -> None:
    (missing,) = judged(WHOLE, TAIL, target_cleaning=KEPT).differences
    assert (missing.kind, missing.downstream) == ("missing", None)
    (copied_twice,) = judged(TAIL, WHOLE, source_cleaning=KEPT).differences
    assert copied_twice.kind == "duplicate"


def test_a_log_without_a_hole_has_lost_nothing_to_its_cleaner() -> None:
    """Both topics are compacted, but no offset of the other side is free where the record could have been."""
    short = log(_0="k", _1="j")
    assert [one[:3] for one in judged(WHOLE, short).differences] == [("missing", 1, None)]
    assert [one[:3] for one in judged(short, WHOLE).differences] == [("duplicate", 0, 1)]
    once = log(_0="a", _1="b", _2="c", _3="d")
    twice = log(_0="a", _1="b", _2="c", _3="a", _4="b", _5="c", _6="d")
    assert [one[:3] for one in judged(once, twice).differences] == [
        ("duplicate", 0, 3),
        ("duplicate", 1, 4),
        ("duplicate", 2, 5),
    ]


def test_a_hole_has_room_for_as_many_as_it_lacks() -> None:
    found = judged(log(_0="k", _1="k", _2="k", _3="j"), log(_1="k", _2="j"))
    assert (found.compacted, [one.kind for one in found.differences]) == (1, ["missing"])


def test_a_record_that_is_behind_all_its_equals_is_missing() -> None:
    found = judged(log(_0="k", _1="x", _2="k"), log(_0="k", _1="x"))
    assert [one[:3] for one in found.differences] == [("missing", 2, None)]


def test_more_equal_batches_than_are_remembered_are_not_gone_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equal_records, "MOST_BEHIND", 4)
    for equals, excused in ((3, True), (9, False)):
        whole = [(offset, record("k")) for offset in range(equals + 1)]
        found = judged(whole, whole[1:], sizes=[1], target_sizes=[1])
        assert bool(found.compacted) is excused


def cleaned(whole: Log, ends: Sequence[int]) -> Log:
    """What a cleaner leaves that was at work each time the log was so long."""
    for end in ends:
        newest = {one.key: offset for offset, one in whole if offset < end}
        whole = [(offset, one) for offset, one in whole if offset >= end or newest[one.key] == offset]
    return whole


def test_a_record_that_was_never_copied_is_missing_though_a_newer_one_of_its_key_was() -> None:
    """The target's offsets have no hole where a cleaner could have taken it; nor the source's where it is extra."""
    full, short = log(_0="k1", _1="k2", _2="j", _3="k3"), log(_0="k1", _1="j", _2="k3")
    assert [one[:3] for one in judged(full, short, target_end=3).differences] == [("missing", 1, None)]
    assert [one[:3] for one in judged(short, full).differences] == [("extra", None, 1)]


def test_a_batch_of_which_a_cleaner_has_taken_the_last_records() -> None:
    """Its header still counts them, so their offsets are holes, though what is left is equal to a whole batch."""
    source = log(_0="a", _1="b", _2="k1", _3="m1", _4="k2", _5="m2")
    ours, theirs = list(batches(source, [2])), list(batches([*source[:2], *source[4:]], [2]))
    struct.pack_into(">i", theirs[0].view, 23, 3)
    theirs[0] = LogBatch(next(batch_headers(theirs[0].view))[1], theirs[0].view)
    found = Comparer(ours, theirs, OffsetBounds(0, 6), OffsetBounds(0, 6)).compare()
    assert found.whole_batches == 1
    assert [(one.offset, one.room) for one in found.unmatched] == [(2, 2), (3, 2)]


ends = st.lists(st.integers(0, 25), max_size=2).map(sorted)
batch_sizes = st.lists(st.integers(1, 4), min_size=1, max_size=3)


@settings(max_examples=500, deadline=None)
@given(
    st.lists(st.sampled_from(["k", "k", "m", "k1", "m1", "n"]), max_size=24),
    ends,
    ends,
    batch_sizes,
    batch_sizes,
    st.sampled_from([SOURCE, TARGET]),
)
def test_what_cleaners_took_is_no_difference_and_what_was_lost_is_one(
    names: list[str],
    source_ends: list[int],
    target_ends: list[int],
    source_sizes: list[int],
    target_sizes: list[int],
    loser: Side,
) -> None:
    whole = [(offset, record(name)) for offset, name in enumerate(names)]
    source, target = cleaned(whole, source_ends), cleaned(whole, target_ends)
    found = judged(source, target, sizes=source_sizes, target_sizes=target_sizes)
    assert found.differences == []
    for place, (offset, lost) in enumerate(target if loser == TARGET else source):
        if any(one.key == lost.key for _, one in whole[offset + 1 :]) or names.count(names[offset]) > 1:
            continue  # it may be a cleaner's work
        ours, theirs = list(source), list(target)
        del (theirs if loser == TARGET else ours)[place]
        found = judged(ours, theirs, sizes=source_sizes, target_sizes=target_sizes)
        # Which record of a key is named can be open: the equal records around may be aligned in several ways.
        named = {at for one in found.differences for at in (one.upstream, one.downstream) if at is not None}
        assert any(whole[at][1].key == lost.key for at in named)


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from("kmn"), max_size=24), ends, ends, ends, batch_sizes, batch_sizes)
def test_a_copy_of_a_log_that_was_cleaned_has_other_offsets(
    keys: list[str],
    before: list[int],
    source_ends: list[int],
    target_ends: list[int],
    source_sizes: list[int],
    target_sizes: list[int],
) -> None:
    """Each record has a value of its own; what was never copied is found, whether it has a newer one or not."""
    whole = [(offset, record(f"{key}{offset}")) for offset, key in enumerate(keys)]
    at_source = cleaned(whole, before)
    copy = [(offset, one) for offset, (_, one) in enumerate(at_source)]
    source, target = cleaned(at_source, source_ends), cleaned(copy, target_ends)
    found = judged(source, target, sizes=source_sizes, target_sizes=target_sizes, target_end=len(copy))
    assert found.differences == []
    for lost, one in source:
        short = [(offset, other) for offset, (_, other) in enumerate(some for some in at_source if some[1] != one)]
        found = judged(source, short, sizes=source_sizes, target_sizes=target_sizes, target_end=len(short))
        assert lost in [difference.upstream for difference in found.differences]
