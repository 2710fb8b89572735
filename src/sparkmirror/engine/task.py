"""Work of a Spark task: an order in, receipts out.

Records never pass here. Neither pandas nor Arrow is loaded for a few lines of JSON: they would stay in each task's
memory.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from pyspark import TaskContext

from sparkmirror.messages.orders import PumpOrder, Receipt
from sparkmirror.pump.pump import pump
from sparkmirror.pump.quiet import GRACE_S

RECEIPTS = "array<string>"
"""Type of a task's result in Spark: a receipt for each partition, as JSON."""


def run_task(orders: Mapping[int, str], task: int) -> list[str]:
    """Pump by the order of a task.

    A second attempt may meet the first, still alive (R5).
    """
    context = TaskContext.get()
    attempt = 0 if context is None else context.attemptNumber()
    order = PumpOrder.model_validate_json(orders[task])
    receipts = _pump_again(order, attempt) if attempt else pump(order)
    return [receipt.model_dump_json() for receipt in receipts]


def _pump_again(order: PumpOrder, attempt: int) -> list[Receipt]:
    """Pump in a further attempt of a task.

    While an earlier attempt may be alive, an end counts as in doubt, whatever the receipts say.
    """
    began = time.monotonic()
    receipts = pump(order.again(attempt))
    if time.monotonic() - began > GRACE_S:
        return receipts
    return [receipt.model_copy(update={"in_doubt": True}) for receipt in receipts]
