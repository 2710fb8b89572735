"""A pump that is told that it has no right to write any more sends nothing more, to no broker, and says why (R1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from played_run import LEADERS, PlayedRun

from sparkmirror.pump import flow_reports
from sparkmirror.pump.messages.control import ControlState
from sparkmirror.pump.messages.orders import Receipt
from sparkmirror.pump.receipt_of import receipt_of
from sparkmirror.pump.verdicts import explanation


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[PlayedRun]:
    made = PlayedRun(monkeypatch)
    yield made
    made.close()


@pytest.mark.parametrize("error", [47, 48, 90])
def test_a_fenced_pump_sends_nothing_more_to_any_broker(running: PlayedRun, error: int) -> None:
    """Its other partitions have more to send, at the broker that said so and at another one."""
    running.turn_until(lambda: running.sent == set(LEADERS))
    running.acknowledge(1, {0: error})
    running.turn_until(lambda: running.records()[1] == 10)
    running.acknowledge(2, {})
    running.turn_until(lambda: running.records()[2] == 10)
    for _ in range(10):
        running.turn()
    assert running.sent == set()
    assert running.records() == [0, 10, 10]
    assert all(copy.queue for copy in running.pump.copies[1:]), "there was more to send"

    why = f"A.t-0: {explanation(error)}"
    assert running.pump.fenced == why
    assert running.pump.receipts()[0].state == "parked"
    running.run.check()
    running.turn_until(lambda: running.pump.ended)
    running.run.tell_end()
    assert (running.reports[-1].ended, running.reports[-1].ended_because) == (True, why)
    assert running.close().has_rival, "who has fenced it may be alive"


def test_a_pump_that_is_not_fenced_continues_with_the_others(running: PlayedRun) -> None:
    """Another error is one partition's alone."""
    running.turn_until(lambda: running.sent == set(LEADERS))
    running.acknowledge(1, {0: 29})
    running.acknowledge(2, {})
    running.turn_until(lambda: running.sent == {1, 2})
    assert running.pump.fenced == ""
    end = running.close()
    assert not end.in_doubt
    assert [receipt.in_doubt for receipt in end.receipts] == [False, True, True], "what is in flight"


def test_partitions_at_rest_are_neither_reported_nor_looked_at(
    running: PlayedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of them would take a large part of a core."""
    looks: list[str] = []

    def look(flow: str, *given: Any) -> Receipt:
        looks.append(flow)
        return receipt_of(flow, *given)

    monkeypatch.setattr(flow_reports, "receipt_of", look)
    while not all(number == 40 for number in running.records()):
        running.turn_until(lambda: bool(running.sent))
        for leader in running.brokers:
            running.acknowledge(leader, {})
        running.turn()
    running.run.report()
    assert {one.records for one in running.reports[-1].receipts} == {40}
    running.run.report()
    looks.clear()
    running.run.report()
    assert (running.reports[-1].receipts, looks) == ((), [])
    assert (running.reports[-1].partitions, running.reports[-1].lag) == (3, 0)
    running.pump.control(ControlState())
    running.run.report()
    assert len(looks) == 3, "an operator's word may change each of them"
    running.report_channel.gap = True
    running.run.report()
    assert {one.records for one in running.reports[-1].receipts} == {40}, "the driver lacks a report"
    assert (len(running.reports[-1].receipts), running.reports[-1].lag) == (3, 0)
