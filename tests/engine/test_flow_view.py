"""What a flow's view tells of the source's ends, and of partitions that went from task to task."""

from __future__ import annotations

import sys
import threading
import time
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.receipts import receipt

from sparkmirror.mirror.engine.assignment import PartitionKey
from sparkmirror.mirror.engine.copied_counts import CopiedCounts
from sparkmirror.mirror.engine.flow_view import ENDS_S, FlowView, PartitionView
from sparkmirror.pump.messages.figures import PartitionFigures, Totals, TrafficTotals
from sparkmirror.pump.messages.orders import FlowEnd, FlowReport, Receipt

AT = ("t", 0)


def test_ends_are_known_until_they_are_too_old() -> None:
    view = FlowView()
    view.take_ends({AT: 7}, {})
    read_at = view.ends_read_at
    view.ends_trouble = "timed out"  # the next reading failed, and they are known all the same
    assert (view.known_ends(read_at + ENDS_S - 1), view.silence("A", read_at + ENDS_S - 1)) == ({AT: 7}, "")
    assert view.known_ends(read_at + ENDS_S) == {}
    assert view.silence("A", read_at + ENDS_S) == "cluster A has not told the ends of its logs for 15 s: timed out"
    view.take_ends({AT: 8}, {})
    assert view.silence("A", time.monotonic()) == ""


def test_ends_that_were_never_read() -> None:
    view = FlowView()
    assert (view.known_ends(time.monotonic()), view.silence("A", time.monotonic())) == ({}, "")
    view.ends_trouble = "no answer"
    assert view.silence("A", time.monotonic()) == "no answer"


def report(task: int, records: int, *, released: bool = False, move: int = 0) -> FlowReport:
    one = receipt(
        source_topic="t",
        state="waiting" if released else "running",
        records=records,
        bytes=records * 10,
        released=released,
        move=move,
    )
    return FlowReport(epoch=1, task=task, pump=f"1/{task}", incarnation="i", at_ms=0, receipts=(one,))


def test_a_released_partition_is_the_next_tasks_whoever_reports_first() -> None:
    key = PartitionKey("A->B", "t", 0)
    for late in (False, True):
        view = FlowView()
        words = [report(0, 100), report(0, 110), report(0, 130, released=True), report(1, 7, move=1)]
        if late:
            words[1:] = [words[3], *words[1:3]]
        for word in words:
            view.note(word)
            view.take_report("A->B", word)
        seen = view.partitions[key]
        assert seen.receipt is not None
        assert (seen.receipt.state, seen.pump, view.has_arrived(key, 1, 1)) == ("running", "1/1", True)
        assert seen.counts.total == (137, 1370)
        assert not view.has_arrived(key, 1, 2)
        assert not view.has_arrived(key, 2, 1)


def test_a_partition_has_not_come_back_when_an_old_report_is_late() -> None:
    """Else the next move of it could begin while the task between still has batches on their way (R7)."""
    key, view = PartitionKey("A->B", "t", 0), FlowView()
    for word in (report(0, 100), report(1, 7, move=1), report(0, 110)):
        view.note(word)
        view.take_report("A->B", word)
    assert not view.has_arrived(key, 1, 2)
    assert view.partitions[key].pump == "1/1"


def end(pump: str, *receipts: Receipt) -> FlowEnd:
    return FlowEnd(flow="A->B", pump=pump, receipts=receipts)


def test_of_a_task_that_was_started_again_only_the_pump_that_was_heard_last_is_at_work() -> None:
    """The earlier one was killed and reports no end: it would be silent until the round ends."""
    view = FlowView()
    again = report(0, 0).model_copy(update={"pump": "1/0 again"})
    for word in (report(1, 5), report(0, 100), again):
        view.note(word)
    view.heard_at |= {"1/1": 1.0, "1/0": 2.0, "1/0 again": 3.0}
    assert [one.pump for one in view.live] == ["1/0 again", "1/1"]
    view.note(again.model_copy(update={"ended": True}))
    assert [one.pump for one in view.live] == ["1/1"]


def test_a_task_that_was_tried_again_takes_nothing_from_the_counts() -> None:
    view = FlowView()
    first, again = report(0, 0), report(0, 0).model_copy(update={"pump": "1/0 again"})
    for word in (first.model_copy(update={"records": 100, "bytes": 1000}), again):
        view.note(word)
    view.end_round(1, [end("1/0 again", report(0, 10).receipts[0])])
    assert view.counts.total == (110, 1100)
    view.note(again.model_copy(update={"records": 9, "bytes": 90}))
    assert view.counts.total == (110, 1100), "a last report that came late"
    view.note(report(0, 5).model_copy(update={"epoch": 2, "records": 5, "bytes": 50}))
    assert view.counts.total == (115, 1150)
    view.end_round(2, [end("1/0", report(0, 6).receipts[0])])
    assert view.counts.total == (116, 1160)
    view.note(again.model_copy(update={"records": 12, "bytes": 120}))
    assert view.counts.total == (118, 1180), "a cancelled pump of the round before lives on"
    view.note(report(0, 0).model_copy(update={"epoch": 3}))
    view.note(again.model_copy(update={"records": 99, "bytes": 990}))
    assert view.counts.total == (118, 1180)


@pytest.mark.parametrize("is_before", [True, False])
def test_an_attempt_that_died_counts_also_if_its_report_comes_after_the_end(is_before: bool) -> None:
    view = FlowView()
    died = report(0, 180).model_copy(update={"records": 180, "bytes": 1800})
    if is_before:
        view.note(died)
        view.take_counts(died)
    view.end_round(1, [end("1/0 again", report(0, 50).receipts[0])])
    newest = report(0, 7).model_copy(update={"epoch": 2, "pump": "2/0", "records": 7, "bytes": 70})
    view.note(newest)
    view.take_report("A->B", newest)
    view.note(died)
    view.take_counts(died)
    partition = view.partitions[PartitionKey("A->B", "t", 0)]
    assert partition.counts.total == view.counts.total == (237, 2370)
    partition.forget()
    assert partition.counts.total == (237, 2370)


def test_totals_do_not_fall_when_reports_are_written_twice() -> None:
    def told(epoch: int, cpu_s: float, size: int, at_ms: int = 0) -> FlowReport:
        totals = Totals(source=TrafficTotals(bytes=size))
        changes = {"epoch": epoch, "pump": f"{epoch}/0", "cpu_s": cpu_s, "totals": totals, "at_ms": at_ms}
        return report(0, size).model_copy(update=changes)

    view = FlowView()
    seen = []
    set_back = told(3, 6, 2, at_ms=-3_600_000)
    first = told(1, 1, 10)
    for word in (first, told(1, 2, 30), first, told(2, 3, 5), told(1, 4, 32), told(3, 5, 1), set_back):
        if view.note(word):
            view.take_report("A->B", word)
        else:
            view.take_counts(word)
        receipt = view.partitions[PartitionKey("A->B", "t", 0)].receipt
        seen.append((view.totals.source.bytes, receipt and receipt.records))
    assert seen == [(10, 10), (30, 30), (30, 30), (35, 5), (37, 5), (38, 1), (39, 2)]


def test_a_round_too_short_for_a_report_counts_beside_the_one_before() -> None:
    view = FlowView()
    for word in (report(0, 1_000), report(0, 1_000).model_copy(update={"records": 1_000, "bytes": 10_000})):
        view.note(word)
        view.take_report("A->B", word)
    view.end_round(2, [end("2/0", report(0, 50_000).receipts[0])])
    assert view.counts.total == view.partitions[PartitionKey("A->B", "t", 0)].counts.total == (51_000, 510_000)


def test_figures_of_an_unknown_partition_are_left_out() -> None:
    figures = PartitionFigures(source_topic="t", partition=9)
    FlowView().take_report("A->B", report(0, 1).model_copy(update={"figures": (figures,)}))


def test_an_attempt_that_only_its_end_tells_of_takes_nothing_from_the_counts() -> None:
    """Its worker was killed, and nothing could be reported until the round's end."""
    for records, total in ((30, 130), (5_000, 5_100)):
        view = FlowView()
        view.take_report("A->B", report(0, 100))
        partition = view.partitions[PartitionKey("A->B", "t", 0)]
        view.end_round(1, [end("1/0 again", report(0, records).receipts[0])])
        assert partition.counts.total == (total, total * 10)
        view.end_round(1, [end("1/0 again", report(0, records + 10).receipts[0])])
        assert partition.counts.total[0] == total + 10, "the same attempt, which knows more by now"


def test_a_partition_that_has_come_back_is_counted_on() -> None:
    """The task between had it too briefly to report."""
    view = FlowView()
    view.take_report("A->B", report(0, 100, released=True))
    view.take_report("A->B", report(0, 105, move=2))
    view.end_round(1, [end("1/0", report(0, 0, released=True).receipts[0], report(0, 110, move=2).receipts[0])])
    assert view.partitions[PartitionKey("A->B", "t", 0)].counts.total == (110, 1100)
    assert view.counts.total == (110, 1100)


def test_a_rate_is_of_one_pump_and_never_below_zero() -> None:
    """A negative one would be a partition that the planner can't place."""
    view = FlowView()
    partition = view.partitions[PartitionKey("A->B", "t", 0)] = PartitionView()
    rates = []
    for at_s, pump, records in ((0, 0, 1_000), (1, 0, 1_500), (2, 1, 7), (4, 1, 107), (5, 1, 50)):
        view.take_report("A->B", report(pump, records, move=pump).model_copy(update={"at_ms": at_s * 1000}))
        rates.append((partition.records_per_s, partition.bytes_per_s))
    assert rates == [(0, 0), (500, 5_000), (500, 5_000), (50, 500), (0, 0)]


@given(
    st.lists(st.tuples(st.integers(1, 3), st.sampled_from("abc"), st.integers(0, 9)), max_size=12),
    st.randoms(use_true_random=False),
)
def test_late_and_repeated_counts_change_nothing(told: list[tuple[int, str, int]], random: Random) -> None:
    counts, largest = CopiedCounts(), dict[tuple[int, str], int]()
    for round_number in (1, 2, 3):
        its = [(pump, records) for number, pump, records in told if number == round_number]
        for pump, records in its:
            largest[round_number, pump] = max(records, largest.get((round_number, pump), 0))
        again = its + its
        random.shuffle(again)
        before = counts.total
        for pump, records in again:
            counts.take(round_number, pump, records, records * 10)
            counts.take(round_number - 1, pump, largest.get((round_number - 1, pump), 0), 0)
            counts.take(round_number - 2, pump, 99, 990)
            assert counts.total >= before
            before = counts.total
    assert counts.total == (sum(largest.values()), sum(largest.values()) * 10)


def test_a_query_without_new_records_changes_no_count() -> None:
    counts = CopiedCounts()
    counts.add(3, 0)
    counts.add(0, 0)
    assert (counts.total, counts.changes) == ((3, 0), 1)


def test_no_count_falls_while_rounds_end() -> None:
    """A scrape in the midst of a change would see records twice; the next one would see fewer."""
    view = FlowView()
    key = PartitionKey("A->B", "t", 0)
    partition = view.partitions[key] = PartitionView()
    over = threading.Event()
    totals = Totals(source=TrafficTotals(bytes=70))

    def rounds() -> None:
        try:
            for number in range(1, 1_000):
                changes = {"epoch": number, "pump": str(number), "records": 7, "bytes": 70, "totals": totals}
                told = report(0, 7).model_copy(update=changes)
                view.note(told)
                view.take_report("A->B", told)
                if number % 2:
                    view.end_round(number, [end(told.pump, *told.receipts)])
                if number % 3 == 0:
                    partition.forget()
        finally:
            over.set()

    sys.setswitchinterval(1e-6)
    try:
        thread = threading.Thread(target=rounds)
        thread.start()
        counts = [(0, 0, 0, 0)]
        while not over.is_set():
            counts.append((*view.counts.total, view.totals.source.bytes, partition.counts.total[0]))
    finally:
        sys.setswitchinterval(0.005)
    thread.join()
    for column in zip(*counts, strict=True):
        assert list(column) == sorted(column)
    assert partition.counts.total == view.counts.total == (7 * 999, 70 * 999)
