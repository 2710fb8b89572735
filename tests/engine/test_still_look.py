"""A look at a flow is kept while the flow stands still, and no longer."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.receipts import receipt

from sparkmirror.mirror.engine.cluster_watch import Away
from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.mirror.engine.flow_view import FlowView
from sparkmirror.mirror.engine.still_look import KEPT_S, StillLook
from sparkmirror.pump.messages.orders import FlowEnd, FlowReport, Receipt

RECEIPT = receipt(upstream=5)


SILENT: Any = SimpleNamespace(away=Away(1.0, "cluster A has not answered"))
ANSWERS: Any = SimpleNamespace(away=None)


def driver() -> Any:
    """What a look depends on."""
    view = FlowView(source_ends={("orders", 0): 5})
    done = SimpleNamespace(released=())
    topics = SimpleNamespace(newest=object(), synced=True, checked=True, done_topics=done, waiting=())
    return SimpleNamespace(view=view, topics=topics, orders=SimpleNamespace(tasks={}))


def report(*receipts: Receipt) -> FlowReport:
    return FlowReport(epoch=1, task=0, pump="pump", incarnation="one", at_ms=1_000, receipts=receipts)


class Looks:
    """Counts them."""

    def __init__(self, *, still: bool = True, clock: Callable[[], float] = time.monotonic) -> None:
        self._memory: StillLook[int] = StillLook(clock)
        self._still = still
        self._count = 0

    def at(self, flow: Any) -> int:
        return self._memory.at(cast(FlowDriver, flow), self._look)

    def _look(self) -> tuple[int, bool]:
        self._count += 1
        return self._count, self._still


def test_a_flow_that_stands_still_is_looked_at_once() -> None:
    looks, flow = Looks(), driver()
    flow.view.take_report("A->B", report(RECEIPT))
    assert [looks.at(flow) for _ in range(3)] == [1, 1, 1]
    flow.view.take_report("A->B", report())
    flow.view.take_ends({("orders", 0): 5}, {})
    assert looks.at(flow) == 1, "a report without receipts, and equal ends, tell nothing new"


def test_a_flow_that_moves_is_looked_at_each_time() -> None:
    looks, flow = Looks(still=False), driver()
    assert [looks.at(flow) for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize(
    "change",
    [
        lambda flow: flow.view.take_report("A->B", report(RECEIPT)),
        lambda flow: flow.view.take_ends({("orders", 0): 6}, {}),
        lambda flow: flow.view.take_ends({("orders", 0): 5}, {("orders", 0): 1}),
        lambda flow: flow.view.end_round(1, [FlowEnd(flow="A->B", pump="1/0", receipts=(RECEIPT,))]),
        lambda flow: setattr(flow.topics, "newest", object()),
        lambda flow: setattr(flow.orders, "tasks", {}),
        lambda flow: setattr(flow.topics, "checked", False),
        lambda flow: setattr(flow.topics.done_topics, "released", ("orders",)),
        lambda flow: setattr(flow.view, "watches", (SILENT, ANSWERS)),
        lambda flow: setattr(flow.view, "gone", ("orders",)),
    ],
)
def test_whatever_is_new_is_looked_at(change: Callable[[Any], object]) -> None:
    looks, flow = Looks(), driver()
    assert looks.at(flow) == looks.at(flow) == 1
    change(flow)
    assert looks.at(flow) == 2


def test_another_driver_of_the_flow_is_looked_at() -> None:
    looks, flow = Looks(), driver()
    assert looks.at(flow) == 1
    assert looks.at(SimpleNamespace(**vars(flow))) == 2


def test_time_alone_is_told_late_by_seconds() -> None:
    times = [100.0, 100.0 + KEPT_S - 0.1, 100.0 + KEPT_S + 0.1]
    looks, flow = Looks(clock=iter(times).__next__), driver()
    assert [looks.at(flow) for _ in times] == [1, 1, 2]
