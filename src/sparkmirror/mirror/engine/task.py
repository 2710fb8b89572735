"""Spark task: an order in, the ends of its flows out.

Records never pass here.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping

from pyspark import TaskContext

from sparkmirror.pump.messages.orders import PumpOrder
from sparkmirror.pump.pump import pump


def run_tasks(orders: Mapping[int, bytes], tasks: Iterable[int]) -> Iterator[str]:
    """Pump by the order of each of a Spark task's numbers: it has one."""
    for task in tasks:
        yield from run_task(orders, task)


def pack(order: PumpOrder) -> bytes:
    """Compress an order.

    Spark writes a command of more than 1 MiB to files, where passwords do not belong.
    """
    return zlib.compress(order.to_json().encode())


def run_task(orders: Mapping[int, bytes], task: int) -> list[str]:
    """Pump by a task's order; return a `FlowEnd` for each flow, as JSON.

    A further attempt may meet an earlier one, still alive (R5); its ends say so.
    """
    context = TaskContext.get()
    attempt = 0 if context is None else context.attemptNumber()
    order = PumpOrder.model_validate_json(zlib.decompress(orders[task]))
    return [end.model_dump_json() for end in pump(order.again(attempt) if attempt else order)]
