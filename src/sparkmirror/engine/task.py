"""Work of a Spark task: an order in, the ends of its flows out.

Records never pass here.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping

from pyspark import TaskContext

from sparkmirror.messages.orders import FlowEnd, PumpOrder
from sparkmirror.pump.pump import pump
from sparkmirror.pump.quiet import GRACE_S


def run_tasks(orders: Mapping[int, str], tasks: Iterable[int]) -> Iterator[str]:
    """Pump by the order of each of a Spark task's numbers: it has one."""
    for task in tasks:
        yield from run_task(orders, task)


def run_task(orders: Mapping[int, str], task: int) -> list[str]:
    """Pump by the order of a task; return a `FlowEnd` for each flow, as JSON.

    A second attempt may meet the first, still alive (R5).
    """
    context = TaskContext.get()
    attempt = 0 if context is None else context.attemptNumber()
    order = PumpOrder.model_validate_json(orders[task])
    ends = _pump_again(order, attempt) if attempt else pump(order)
    return [end.model_dump_json() for end in ends]


def _pump_again(order: PumpOrder, attempt: int) -> list[FlowEnd]:
    """Pump in a further attempt of a task.

    While an earlier attempt may be alive, an end counts as in doubt.
    """
    began = time.monotonic()
    ends = pump(order.again(attempt))
    if time.monotonic() - began > GRACE_S:
        return ends
    return [end.model_copy(update={"in_doubt": True}) for end in ends]
