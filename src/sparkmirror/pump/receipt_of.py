"""A partition's receipt, as a pump reports."""

from __future__ import annotations

from sparkmirror.exact.position.cause import Cause
from sparkmirror.pump.messages.orders import PartitionState, Receipt
from sparkmirror.pump.partition import PartitionCopy
from sparkmirror.pump.stage import Stage

STATES: dict[Stage, PartitionState] = {
    Stage.SEEKING: "waiting",
    Stage.RUNNING: "running",
    Stage.DRAINING: "waiting",
    Stage.PARKED: "parked",
    Stage.DONE: "done",
}


def receipt_of(flow: str, copy: PartitionCopy, state: PartitionState, reason: str, cause: Cause, move: int) -> Receipt:
    """Return a partition's receipt.

    The caller knows the state, the reason why the partition waits, and the move that gave the task the partition.
    """
    progress = copy.progress
    last_upstream, last_downstream = copy.last_copied or (-1, -1)
    topic_id, appended = progress.appended
    return Receipt(
        flow=flow,
        source_topic=copy.route.source_topic,
        target_topic=copy.route.target_topic,
        partition=copy.route.partition,
        state=state,
        reason=reason,
        cause=cause,
        records=progress.records,
        bytes=progress.bytes,
        upstream=_on_wire(progress.upstream),
        downstream=_on_wire(progress.downstream),
        source_end=_on_wire(copy.source.end),
        in_doubt=bool(copy.in_flight),
        halted=copy.trouble.loss if copy.stage is Stage.PARKED else None,
        timestamp_ms=_on_wire(progress.timestamp_ms),
        target_topic_id=topic_id.hex(),
        appended=appended,
        last_upstream=last_upstream,
        last_downstream=last_downstream,
        move=move,
    )


def _on_wire(number: int | None) -> int:
    """Return a number as receipts and figures have it: unknown is -1 there."""
    return -1 if number is None else number
