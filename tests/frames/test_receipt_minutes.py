"""Minutes out of what pumps report: every record counts once, whatever comes twice, late, or in another order."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from tests.support.receipts import receipt

from sparkmirror.frames.receipt_minutes import (
    FORGOTTEN_MS,
    MINUTE_MS,
    SILENT_MS,
    Beginnings,
    Minute,
    MinuteReading,
    PartitionMinutes,
    minutes,
    readings,
)
from sparkmirror.pump.messages.figures import PartitionFigures
from sparkmirror.pump.messages.orders import FlowReport, Receipt

BEGAN_MS = 1_700_000_040_000 // MINUTE_MS * MINUTE_MS
BYTES = 10
"""Of each record."""


def after(records: int, *, partition: int = 0, upstream: int = -1, source_end: int = -1) -> Receipt:
    return receipt(
        partition,
        records=records,
        bytes=records * BYTES,
        upstream=upstream,
        downstream=upstream,
        source_end=source_end,
    )


def report(pump: str, at_s: float, *receipts: Receipt, **more: object) -> FlowReport:
    return FlowReport.model_validate(
        {
            "epoch": 1,
            "task": 0,
            "pump": pump,
            "incarnation": "i",
            "at_ms": BEGAN_MS + int(at_s * 1000),
            "records": sum(one.records for one in receipts),
            "receipts": receipts,
            **more,
        }
    )


def counted(reports: list[FlowReport]) -> list[tuple[int, int, int, int]]:
    """Minute after the beginning, partition, records, bytes."""
    found = minutes(readings(reports, Beginnings()))
    return [((one.minute_ms - BEGAN_MS) // MINUTE_MS, one.partition, one.records, one.bytes) for one in found]


def test_what_each_minute_added() -> None:
    reports = [
        report("p", 0, after(0)),
        report("p", 30, after(5)),
        report("p", 59.999, after(7)),
        report("p", 60, after(8)),
        report("p", 185, after(18)),
    ]
    assert counted(reports) == [(0, 0, 7, 70), (1, 0, 1, 10), (3, 0, 10, 100)]


def test_a_restarted_pump_counts_from_zero() -> None:
    reports = [
        report("p", 0, after(0)),
        report("p", 10, after(100)),
        report("q", 20, after(0)),
        report("q", 30, after(3)),
        report("q", 70, after(4)),
    ]
    assert counted(reports) == [(0, 0, 103, 1030), (1, 0, 1, 10)]


def test_a_partition_that_comes_back_to_a_pump_counts_on() -> None:
    """Moves of a round give it away, and back."""
    reports = [
        report("p", 0, after(0)),
        report("p", 10, after(1_000)),
        report("q", 20, after(0)),
        report("q", 30, after(50).model_copy(update={"move": 1})),
        report("p", 40, after(1_000).model_copy(update={"released": True})),
        report("p", 50, after(1_003).model_copy(update={"move": 2})),
        report("p", 70, after(1_400).model_copy(update={"move": 2})),
    ]
    assert counted(reports) == [(0, 0, 1_053, 10_530), (1, 0, 397, 3_970)]


def test_a_pump_whose_beginning_is_gone_counts_from_its_first_reading() -> None:
    assert counted([report("p", 0, after(100)), report("p", 60, after(103))]) == [(0, 0, 0, 0), (1, 0, 3, 30)]


def test_a_partition_that_joins_a_pump_counts_whole_if_the_pump_was_heard_from_the_beginning() -> None:
    reports = [
        report("p", 0, after(0)),
        report("p", 10, after(5), after(9, partition=1)),
    ]
    assert counted(reports) == [(0, 0, 5, 50), (0, 1, 9, 90)]


def test_how_it_stands_at_the_end_of_the_minute() -> None:
    figures = PartitionFigures(source_topic="orders", partition=0, latency_ms=(9.0, 2.0, 30.0, 4.5))
    reports = [
        report("p", 0, after(0)),
        report("p", 40, after(5, upstream=50, source_end=57), figures=(figures,)),
        report("p", 20, after(3, upstream=40, source_end=90)),
    ]
    (found,) = minutes(readings(reports, Beginnings()))
    assert found == Minute(BEGAN_MS, "orders", "A.orders", 0, 5, 50, 7, 50, 50, 4.5, 30.0)


def test_a_partition_of_which_nothing_is_known_yet_has_no_lag() -> None:
    (found,) = minutes(readings([report("p", 0, after(0))], Beginnings()))
    assert (found.lag, found.upstream, found.downstream, found.latency_ms) == (None, None, None, None)


def test_a_reading_that_comes_after_its_minute_was_closed_counts_in_the_next() -> None:
    first, late, last = readings(
        [report("p", 0, after(0)), report("p", 50, after(6)), report("p", 70, after(6))], Beginnings()
    )
    partition = PartitionMinutes()
    partition.add(first)
    assert [one.records for one in partition.close(BEGAN_MS + MINUTE_MS)] == [0]
    partition.add(late)
    partition.add(last)
    assert [(one.minute_ms, one.records) for one in partition.close()] == [(BEGAN_MS + MINUTE_MS, 6)]


def test_a_reading_from_before_the_closed_minutes_counts_nothing_twice() -> None:
    first, late, newer, last = readings(
        [report("p", at_s, after(records)) for at_s, records in ((0, 0), (30, 4), (50, 6), (190, 7))], Beginnings()
    )
    partition = PartitionMinutes()
    for reading in (first, newer):
        partition.add(reading)
    assert [one.records for one in partition.close(BEGAN_MS + MINUTE_MS)] == [6]
    partition.add(late)
    assert [one.records for one in partition.close(BEGAN_MS + 2 * MINUTE_MS)] == [0]
    partition.add(last)
    assert [one.records for one in partition.close()] == [1]


def test_a_pump_that_is_gone_is_forgotten() -> None:
    partition = PartitionMinutes()
    for at_s, pump in (0, "p"), (FORGOTTEN_MS // 1000 + 60, "q"):
        for reading in readings([report(pump, at_s, after(0))], Beginnings()):
            partition.add(reading)
    partition.close()
    assert list(partition.past) == ["i/q"]
    beginnings = Beginnings()
    list(readings([report("p", 0), report("q", SILENT_MS / 1000)], beginnings))
    beginnings.forget()
    assert list(beginnings.heard) == ["i/q"]


@st.composite
def histories(draw: st.DrawFn) -> list[FlowReport]:
    """What some pumps of two partitions reported, in two rounds, each pump's reports in order."""
    found = []
    for number in range(draw(st.integers(1, 4))):
        at_s, total = float(draw(st.integers(0, 200))), [0, 0]
        found.append(report(f"p{number}", at_s, after(0), after(0, partition=1), epoch=1 + number // 2))
        for _ in range(draw(st.integers(0, 6))):
            at_s += draw(st.integers(1, 90))
            total = [count + draw(st.integers(0, 50)) for count in total]
            changed = [after(count, partition=n) for n, count in enumerate(total) if draw(st.booleans())]
            found.append(report(f"p{number}", at_s, *changed, records=sum(total), epoch=1 + number // 2))
    return found


def totals(reports: list[FlowReport]) -> Counter[int]:
    """The truth, by partition: the most that each pump said."""
    most: Counter[tuple[str, int]] = Counter()
    for one in reports:
        for got in one.receipts:
            most[one.pump, got.partition] = max(most[one.pump, got.partition], got.records)
    whole: Counter[int] = Counter({0: 0, 1: 0})
    for (_, partition), records in most.items():
        whole[partition] += records
    return whole


@given(histories(), st.randoms(use_true_random=False), st.data())
def test_all_that_was_copied_is_counted_once(
    history: list[FlowReport], order: random.Random, data: st.DataObject
) -> None:
    truth = totals(history)
    in_order = list(minutes(readings(history, Beginnings())))
    counts: Counter[int] = Counter()
    for one in in_order:
        assert one.records >= 0
        assert one.bytes == one.records * BYTES
        counts[one.partition] += one.records
    assert counts == truth

    read = list(readings(history, Beginnings()))
    mixed = read + [one for one in read if data.draw(st.booleans())]
    order.shuffle(mixed)
    assert list(minutes(mixed)) == in_order


@given(histories(), st.data())
def test_a_stream_counts_as_much_as_a_batch(history: list[FlowReport], data: st.DataObject) -> None:
    history.sort(key=lambda one: one.at_ms)
    whole = list(minutes(readings(history, Beginnings())))
    counts: dict[int, list[Minute]] = {0: [], 1: []}
    kept = {partition: PartitionMinutes().model_dump_json() for partition in counts}
    heard: dict[str, int] = {}
    while history:
        size = data.draw(st.integers(1, len(history)))
        some, history = history[:size], history[size:]
        beginnings = Beginnings(heard)
        by_partition: dict[int, list[MinuteReading]] = {0: [], 1: []}
        for one in readings(some, beginnings):
            by_partition[one.partition].append(one)
        heard = beginnings.heard
        for partition, read in by_partition.items():
            state = PartitionMinutes.model_validate_json(kept[partition])
            for one in read:
                state.add(one)
            counts[partition] += state.close(some[-1].at_ms)
            kept[partition] = state.model_dump_json()
    for partition in counts:
        counts[partition] += PartitionMinutes.model_validate_json(kept[partition]).close()
    assert counts[0] + counts[1] == whole
