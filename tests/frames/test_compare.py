"""Planted differences are found, each with its kind and offsets, whatever the batches are."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from record_batches import Record, batch, batches

from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.frames import stream_comparison as compare
from sparkmirror.frames.judge import Cleaning, Judged, KeysSeen, Placed, judge
from sparkmirror.frames.report import SOURCE, TARGET
from sparkmirror.frames.stream_comparison import Comparer, Comparison, content_digest
from sparkmirror.kafka.cluster.log_range import LogBatch
from sparkmirror.kafka.cluster.range_reader import OffsetBounds
from sparkmirror.kafka.wire.batches import TIMESTAMP_TYPE_BIT
from sparkmirror.kafka.wire.pieces import raw_parts
from sparkmirror.kafka.wire.unpacking import PIECE_BYTES
from sparkmirror.pump.transforming import transform_of

SLOT = 10
NO_CLEANING = Cleaning(False, 0)

sizes = st.lists(st.integers(1, 7), min_size=1, max_size=4)
codecs = st.sampled_from([0, 1, 2, 3, 4])


def record(number: int) -> Record:
    headers = (("number", b"%d" % number),) if number % 3 == 0 else ()
    key = None if number % 7 == 0 else b"key-%d" % (number % 5)
    return Record(1_700_000_000_000 + number % 4, key, b"value-%d" % number, headers)


@dataclass
class Planted:
    """A copy with faults, one in each slot of records, and what must be found."""

    copy: list[tuple[Record, int | None]] = field(default_factory=list)
    """Records, and which original each is; None: of no one."""
    moved: set[int] = field(default_factory=set)
    expected: set[tuple[str, int | None, int | None]] = field(default_factory=set)

    def add(self, first: int, fault: str, at: int) -> None:
        slot: list[tuple[Record, int | None]] = [(record(first + index), first + index) for index in range(SLOT)]
        down = len(self.copy)
        up = first + at
        if fault == "missing":
            del slot[at]
            self.expected.add(("missing", up, None))
        elif fault == "extra":
            slot.insert(at, (Record(1, b"foreign", b"extra-%d" % first), None))
            self.expected.add(("extra", None, down + at))
        elif fault == "duplicate":
            slot.insert(at + 3, slot[at])
            self.expected.add(("duplicate", up, down + at + 3))
        elif fault == "reordered":
            slot.insert(at + 3, slot.pop(at))
            self.expected.add(("reordered", up, down + at + 3))
        elif fault == "changed":
            slot[at] = (slot[at][0]._replace(value=None), None)
            self.expected.add(("changed", up, down + at))
        elif fault == "timestamp":
            slot[at] = (slot[at][0]._replace(timestamp=17), None)
            self.expected.add(("changed", up, down + at))
        self.copy += slot


FAULTS = ["none", "none", "missing", "extra", "duplicate", "reordered", "changed", "timestamp"]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(FAULTS), st.integers(1, SLOT - 5)), min_size=1, max_size=30),
    sizes,
    sizes,
    codecs,
    codecs,
    st.integers(0, 1000),
    st.sampled_from([2, 256]),
)
def test_planted_differences_are_found(
    faults: list[tuple[str, int]],
    source_sizes: list[int],
    target_sizes: list[int],
    source_codec: int,
    target_codec: int,
    shift: int,
    window: int,
) -> None:
    planted = Planted()
    for slot, (fault, at) in enumerate(faults):
        planted.add(SLOT * slot, fault, at)
    originals = [(number, record(number)) for number in range(SLOT * len(faults))]
    copies = [(shift + index, copy) for index, (copy, _) in enumerate(planted.copy)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare, "FIRST_WINDOW", max(window, 8))
        found = Comparer(
            batches(originals, source_sizes, source_codec),
            batches(copies, target_sizes, target_codec),
            OffsetBounds(0, len(originals)),
            OffsetBounds(shift, shift + len(copies)),
        ).compare()
    expected = {(kind, up, None if down is None else down + shift) for kind, up, down in planted.expected}
    assert {one[:3] for one in judged(found, originals)} == expected
    faulty = sum(kind != "duplicate" and kind != "extra" for kind, _, _ in expected)
    assert found.records == len(originals) - faulty


def judged(found: Comparison, originals: list[tuple[int, Record]]) -> list[Judged]:
    seen = KeysSeen()
    for part in batches(originals, [50]):
        for offset, timestamp, body in raw_parts(*part):
            seen.contents.setdefault(content_digest(body, timestamp), offset)
    placed = [Placed(0, one) for one in found.unmatched]
    cleaning = {SOURCE: NO_CLEANING, TARGET: NO_CLEANING}
    return judge(placed, cleaning, {SOURCE: seen, TARGET: KeysSeen()}).differences  # type: ignore[arg-type]


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 120), sizes, sizes, codecs, codecs, st.integers(0, 60), st.integers(0, 60))
def test_copies_in_other_batches_are_equal(
    count: int,
    source_sizes: list[int],
    target_sizes: list[int],
    source_codec: int,
    target_codec: int,
    cut: int,
    end: int,
) -> None:
    """Bounds cut batches open on both sides."""
    originals = [(3 * number, record(number)) for number in range(count)]
    copies = [(500 + number, record(number)) for number in range(count)]
    first, last = min(cut, count), min(cut + end, count)
    found = Comparer(
        batches(originals, source_sizes, source_codec),
        batches(copies, target_sizes, target_codec),
        OffsetBounds(3 * first, 3 * last),
        OffsetBounds(500 + first, 500 + last),
    ).compare()
    assert found.unmatched == []
    assert found.records == last - first
    assert found.not_listed == 0


def compared(source: list[LogBatch], target: list[LogBatch], *, timestamps: bool = True) -> Comparison:
    everything = OffsetBounds(0, 1 << 62)
    return Comparer(source, target, everything, everything, timestamps=timestamps).compare()


def test_equal_batches_are_not_decompressed() -> None:
    records = [(number, record(number)) for number in range(100)]
    broken = [batch(records[:50], 3), batch(records[50:], 3)]
    for one in broken:
        one.view[70:90] = bytes(20)  # no codec can read it
    found = compared(broken, broken)
    assert (found.records, found.whole_batches) == (100, 2)
    assert found.bytes == sum(len(one.view) for one in broken)


def test_a_flipped_bit_is_a_change() -> None:
    records = [(number, record(number)) for number in range(10)]
    one, other = batch(records), batch(records)
    place = bytes(other.view).index(b"value-4")
    other.view[place + 2] ^= 1
    found = compared([one], [other])
    assert [(left.side, left.offset) for left in found.unmatched] == [(SOURCE, 4), (TARGET, 4)]
    assert judged(found, records) == [Judged("changed", 4, 4, "value or headers")]


def test_base_timestamps_are_compared_though_payloads_are_equal() -> None:
    records = [(number, record(number)) for number in range(10)]
    later = [(number, one._replace(timestamp=one.timestamp + 5)) for number, one in records]
    found = compared([batch(records)], [batch(later)])
    assert {one.what.split()[0] for one in judged(found, records)} == {"timestamp"}
    assert len(found.unmatched) == 20
    assert compared([batch(records)], [batch(later)], timestamps=False).unmatched == []


def test_a_stamp_of_the_source_is_the_records_timestamp() -> None:
    """LogAppendTime: consumers see the batch's max timestamp; a copy has it in each record."""
    records = [(number, record(number)) for number in range(10)]
    stamped = batch(records, attributes=TIMESTAMP_TYPE_BIT)
    stamp = stamped.header.max_timestamp
    copy = [(number, one._replace(timestamp=stamp)) for number, one in records]
    assert compared([stamped], [batch(copy)]).unmatched == []
    assert compared([stamped], [batch(records)]).unmatched != []


@pytest.mark.parametrize("lost", [1, 300, 5000])
def test_a_long_stretch_that_is_missing_does_not_spoil_the_rest(lost: int) -> None:
    records = [(number, record(number)) for number in range(8000)]
    copies = [(index, one) for index, (_, one) in enumerate(records[:1000] + records[1000 + lost :])]
    found = compared(list(batches(records, [100])), list(batches(copies, [100])))
    assert [one.offset for one in found.unmatched] == list(range(1000, 1000 + lost))
    assert found.records == 8000 - lost


def test_more_than_can_be_listed_is_counted() -> None:
    records = [(number, record(number)) for number in range(100)]
    everything = OffsetBounds(0, 1 << 62)
    found = Comparer([batch(records)], [], everything, everything, most_unmatched=30).compare()
    assert (len(found.unmatched), found.not_listed) == (30, 70)


def test_what_is_unmatched_knows_where_the_other_side_continues() -> None:
    """A cleaner may have taken it only if the other side has its key from there on."""
    records = [(number, record(number)) for number in range(10)]
    copies = [(100 + number, record(number)) for number in (0, 1, 5, 6)]
    found = Comparer([batch(records)], [batch(copies)], OffsetBounds(0, 10), OffsetBounds(100, 107)).compare()
    places = {left.offset: left.across for left in found.unmatched}
    assert places == {2: 105, 3: 105, 4: 105, 7: 107, 8: 107, 9: 107}


def test_a_damaged_key_is_a_change() -> None:
    """What says how long it is says more than the record has."""
    records = [(offset, Record(5, b"k", value)) for offset, value in enumerate((b"v", b"w"))]
    ours, theirs = batch(records), batch(records)
    theirs.view[bytes(theirs.view).index(b"\x02k\x02w")] = 0x7E
    found = Comparer([ours], [theirs], OffsetBounds(0, 2), OffsetBounds(0, 2)).compare()
    assert [(one.side, one.offset) for one in found.unmatched] == [(SOURCE, 1), (TARGET, 1)]
    assert found.records == 1


@pytest.mark.parametrize("size", [PIECE_BYTES - 90, PIECE_BYTES + 1000])
def test_a_large_record_is_compared_as_the_transforms_make_it(size: int) -> None:
    """Also one that becomes too large to be held by what they add."""
    keys = {
        "transforms": "from",
        "transforms.from.type": "InsertHeader",
        "transforms.from.header": "from",
        "transforms.from.value.literal": "A" * 50,
    }
    header = ("from", b"A" * 50)
    values = [b"before", b"x" * size, b"behind"]
    source = batch([(offset, Record(5, b"k", value)) for offset, value in enumerate(values)], 1)
    target = batch([(offset, Record(5, b"k", value, (header,))) for offset, value in enumerate(values)], 1)
    bounds = OffsetBounds(0, 3)
    change = transform_of(keys, PartitionPair("t", "A.t", 0))
    found = Comparer([source], [target], bounds, bounds, cleaned=False, change=change).compare()
    assert (found.records, found.unmatched) == (3, [])


def test_what_a_cleaner_left_is_found_behind_more_than_a_window_of_what_it_took(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compare, "FIRST_WINDOW", 8)
    monkeypatch.setattr(compare, "WIDEST_WINDOW", 32)
    whole = [(offset, Record(5, b"key-%d" % (offset % 4), b"%d" % offset)) for offset in range(200)]
    for logs in ((whole, whole[-4:]), (whole[-4:], whole)):
        ours, theirs = (batches(log, [50]) for log in logs)
        found = Comparer(ours, theirs, OffsetBounds(0, 200), OffsetBounds(0, 200)).compare()
        assert (found.records, len(found.unmatched)) == (4, 196)
        assert {one.across for one in found.unmatched} == {196}
