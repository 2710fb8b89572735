"""Work of a Spark task: an order in, receipts out.

Records never pass here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark import TaskContext

from sparkmirror.messages.orders import PumpOrder, Receipt
from sparkmirror.pump.pump import pump
from sparkmirror.pump.quiet import GRACE_S

RECEIPTS = (
    "flow string, source_topic string, target_topic string, partition int, state string, reason string, "
    "records long, bytes long, upstream long, downstream long, source_end long, in_doubt boolean, "
    "halted string, timestamp_ms long, target_topic_id string, appended long, last_upstream long, "
    "last_downstream long, cause string"
)
"""Schema of a round's result, with one row per partition.

Offsets are the next offsets, -1 if unknown; null in `halted` means that no loss halted the partition.
"""

_COLUMNS = pa.schema(
    [
        pa.field("flow", pa.string()),
        pa.field("source_topic", pa.string()),
        pa.field("target_topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("state", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("records", pa.int64()),
        pa.field("bytes", pa.int64()),
        pa.field("upstream", pa.int64()),
        pa.field("downstream", pa.int64()),
        pa.field("source_end", pa.int64()),
        pa.field("in_doubt", pa.bool_()),
        pa.field("halted", pa.string()),
        pa.field("timestamp_ms", pa.int64()),
        pa.field("target_topic_id", pa.string()),
        pa.field("appended", pa.int64()),
        pa.field("last_upstream", pa.int64()),
        pa.field("last_downstream", pa.int64()),
        pa.field("cause", pa.string()),
    ]
)


def run_task(orders: Mapping[int, str], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pump by the order of each row's id.

    A second attempt may meet the first, still alive (R5).
    """
    context = TaskContext.get()
    is_second = context is not None and context.attemptNumber() > 0
    for batch in batches:
        for task in batch.column(0).to_pylist():
            order = PumpOrder.model_validate_json(orders[int(task)])
            yield _table(_pump_second_attempt(order) if is_second else pump(order))


def _pump_second_attempt(order: PumpOrder) -> list[Receipt]:
    """Pump in a second attempt of a task.

    While the first attempt may be alive, an end counts as in doubt, whatever the receipts say.
    """
    began = time.monotonic()
    receipts = pump(order.model_copy(update={"flows": tuple(flow.again() for flow in order.flows)}))
    if time.monotonic() - began > GRACE_S:
        return receipts
    return [receipt.model_copy(update={"in_doubt": True}) for receipt in receipts]


def _table(receipts: list[Receipt]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([receipt.model_dump() for receipt in receipts], schema=_COLUMNS)
