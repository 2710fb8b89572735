"""What retention took of one side between the plan and the read is no difference; others next to it are found."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import pytest
from record_batches import Record, batches

from sparkmirror.frames import stream_comparison as compare
from sparkmirror.frames.report import SOURCE, TARGET, Side
from sparkmirror.frames.stream_comparison import Comparer, Comparison
from sparkmirror.kafka.cluster.log_range import LogBatch
from sparkmirror.kafka.cluster.range_reader import OffsetBounds

COUNT = 100
Log = list[tuple[int, Record]]


def log(count: int = COUNT) -> Log:
    return [(number, Record(1_700_000_000_000, b"key", b"value-%d" % number)) for number in range(count)]


class Expiring:
    """A log from which retention takes offsets while it is read, as `RangeReader` tells of it."""

    def __init__(self, records: Log, *spans: tuple[int, int], sizes: Sequence[int] = (7,)) -> None:
        self.expired: list[OffsetBounds] = []
        self._records, self._spans, self._sizes = records, [OffsetBounds(*span) for span in spans], sizes

    def __iter__(self) -> Iterator[LogBatch]:
        edges = [0, *itertools.chain(*self._spans), 1 << 62]
        for number, (first, end) in enumerate(zip(edges[::2], edges[1::2], strict=True)):
            if number:
                self.expired.append(self._spans[number - 1])
            part = [one for one in self._records if first <= one[0] < end]
            yield from batches(part, self._sizes)


def compared(source: Expiring, target: Expiring, count: int = COUNT, most_unmatched: int = 1 << 20) -> Comparison:
    return Comparer(
        source,
        target,
        OffsetBounds(0, count),
        OffsetBounds(0, count),
        source_expired=source.expired,
        target_expired=target.expired,
        most_unmatched=most_unmatched,
    ).compare()


def one_side(side: Side, *spans: tuple[int, int], count: int = COUNT, other: Log | None = None) -> Comparison:
    """Retention takes offsets of this side."""
    expiring, whole = Expiring(log(count), *spans), Expiring(log(count) if other is None else other)
    return compared(expiring, whole, count) if side == SOURCE else compared(whole, expiring, count)


both_sides = pytest.mark.parametrize("side", [SOURCE, TARGET])


@both_sides
@pytest.mark.parametrize("span", [(0, 40), (35, 60), (60, 100), (0, 100), (1, 99)])
def test_what_retention_took_before_it_was_read_is_expired(side: Side, span: tuple[int, int]) -> None:
    found = one_side(side, span)
    lost = span[1] - span[0]
    assert (found.unmatched, found.expired, found.records) == ([], lost, COUNT - lost)


@both_sides
def test_retention_may_overtake_more_than_once(side: Side) -> None:
    found = one_side(side, (0, 10), (30, 40), (41, 99))
    assert (found.unmatched, found.expired, found.records) == ([], 78, 22)


def test_both_sides_expire() -> None:
    found = compared(Expiring(log(), (0, 40)), Expiring(log(), (0, 25), (90, 95)))
    assert (found.unmatched, found.expired, found.records) == ([], 15 + 5, 55)


@both_sides
def test_differences_beside_it_are_found(side: Side) -> None:
    """A record that both had lost before, one of the expiring side alone, one of the other side alone."""
    whole = [one for one in log() if one[0] not in (70, 45)]
    foreign = [(offset, one._replace(value=b"foreign") if offset == 80 else one) for offset, one in log()]
    foreign = [one for one in foreign if one[0] != 90]
    expiring, other = Expiring(foreign, (0, 40)), Expiring(whole)
    found = compared(expiring, other) if side == SOURCE else compared(other, expiring)
    across = TARGET if side == SOURCE else SOURCE
    assert {(one.side, one.offset) for one in found.unmatched} == {
        (side, 45),
        (side, 70),
        (side, 80),
        (across, 80),
        (across, 90),
    }
    assert found.expired == 40


@both_sides
def test_no_more_than_retention_took_is_expired(side: Side) -> None:
    """There are two more than it took before the first that both have."""
    expiring = [one for one in log() if one[0] not in (40, 41)]
    logs = Expiring(expiring, (0, 40)), Expiring(log())
    found = compared(*logs) if side == SOURCE else compared(*logs[::-1])
    assert (len(found.unmatched), found.expired) == (2, 40)


def test_a_log_start_in_the_midst_of_a_batch() -> None:
    """The whole batch is still there and comes."""
    source = Expiring(log())
    source.expired = [OffsetBounds(0, 24)]
    kept = Expiring([one for one in log() if one[0] >= 21])
    kept.expired = source.expired
    found = compared(kept, Expiring(log()))
    assert (found.unmatched, found.expired, found.records) == ([], 21, 79)


@both_sides
def test_more_than_a_window_holds_or_can_be_listed(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "FIRST_WINDOW", 8)
    monkeypatch.setattr(compare, "WIDEST_WINDOW", 32)
    expiring, whole = Expiring(log(1_000), (0, 500)), Expiring([one for one in log(1_000) if one[0] != 800])
    logs = (expiring, whole) if side == SOURCE else (whole, expiring)
    found = compared(*logs, count=1_000, most_unmatched=1)
    assert [(one.side, one.offset) for one in found.unmatched] == [(side, 800)]
    assert (found.expired, found.not_listed, found.records) == (500, 0, 499)


def test_nothing_is_expired_unless_it_is_said() -> None:
    found = compared(Expiring([one for one in log() if one[0] >= 40]), Expiring(log()))
    assert (len(found.unmatched), found.expired) == (40, 0)
