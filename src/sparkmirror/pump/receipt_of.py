"""What became of a partition so far, as a pump reports it."""

from __future__ import annotations

from sparkmirror.messages.orders import PartitionState, Receipt
from sparkmirror.position.cause import Cause
from sparkmirror.pump.partition import PartitionCopy, Stage

STATES: dict[Stage, PartitionState] = {
    Stage.SEEKING: "waiting",
    Stage.RUNNING: "running",
    Stage.DRAINING: "waiting",
    Stage.PARKED: "parked",
    Stage.DONE: "done",
}


def receipt_of(flow: str, copy: PartitionCopy, state: PartitionState, reason: str, cause: Cause) -> Receipt:
    """The receipt; why the partition waits is the caller's to know."""
    last_upstream, last_downstream = copy.last_copied
    return Receipt(
        flow=flow,
        source_topic=copy.route.source_topic,
        target_topic=copy.route.target_topic,
        partition=copy.route.partition,
        state=state,
        reason=reason,
        cause=cause,
        records=copy.records,
        bytes=copy.bytes,
        upstream=copy.acked_upstream,
        downstream=copy.acked_downstream,
        source_end=copy.source_end,
        in_doubt=bool(copy.in_flight),
        halted=copy.halted if copy.stage is Stage.PARKED else None,
        timestamp_ms=copy.acked_timestamp_ms,
        target_topic_id=copy.appended[0].hex(),
        appended=copy.appended[1],
        last_upstream=last_upstream,
        last_downstream=last_downstream,
    )
