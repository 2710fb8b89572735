"""What a flow's view tells of the source's ends, and of partitions that went from task to task."""

from __future__ import annotations

import time

from sparkmirror.engine.assignment import PartitionKey
from sparkmirror.engine.flow_view import ENDS_S, FlowView
from sparkmirror.messages.orders import FlowReport, Receipt

AT = ("t", 0)


def test_ends_are_known_until_they_are_too_old() -> None:
    view = FlowView()
    view.take_ends({AT: 7}, {})
    read_at = view.ends_read_at
    view.ends_trouble = "timed out"  # the next reading failed, and they are known all the same
    assert (view.known_ends(read_at + ENDS_S - 1), view.silence("A", read_at + ENDS_S - 1)) == ({AT: 7}, "")
    assert view.known_ends(read_at + ENDS_S) == {}
    assert view.silence("A", read_at + ENDS_S) == "cluster A has not told the ends of its logs for 30 s: timed out"
    view.take_ends({AT: 8}, {})
    assert view.silence("A", time.monotonic()) == ""


def test_ends_that_were_never_read() -> None:
    view = FlowView()
    assert (view.known_ends(time.monotonic()), view.silence("A", time.monotonic())) == ({}, "")
    view.ends_trouble = "no answer"
    assert view.silence("A", time.monotonic()) == "no answer"


def report(task: int, records: int, *, released: bool = False) -> FlowReport:
    receipt = Receipt(
        flow="A->B",
        source_topic="t",
        target_topic="A.t",
        partition=0,
        state="waiting" if released else "running",
        records=records,
        bytes=records * 10,
        released=released,
    )
    return FlowReport(epoch=1, task=task, pump=f"1/{task}", incarnation="i", at_ms=0, receipts=(receipt,))


def test_a_released_partition_is_the_next_tasks_whoever_reports_first() -> None:
    key = PartitionKey("A->B", "t", 0)
    for late in (False, True):
        view = FlowView()
        words = [report(0, 100), report(0, 130, released=True), report(1, 7)]
        if late:
            words[1:] = words[:0:-1]
        for word in words:
            view.note(word)
            view.take_report("A->B", word)
        seen = view.partitions[key]
        assert seen.receipt is not None
        assert (seen.receipt.state, seen.pump, view.task_of(key, 1)) == ("running", "1/1", 1)
        assert (seen.past_records + seen.receipt.records, seen.past_bytes + seen.receipt.bytes) == (137, 1370)
        assert view.task_of(key, 2) is None
