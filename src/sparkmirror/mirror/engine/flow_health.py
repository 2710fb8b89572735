"""A flow's health, and the reason for its state in one line."""

from __future__ import annotations

from sparkmirror.snapshot import snapshot
from sparkmirror.snapshot.snapshot import FlowState, Topic, UnmatchedPattern

UNHEALTHY = {
    FlowState.WRONG_CLUSTER,
    FlowState.HELD_UP,
    FlowState.INCOMPLETE,
    FlowState.JOINING,
    FlowState.UNREACHABLE,
    FlowState.NOTHING,
}


def is_healthy(flow: snapshot.Flow) -> bool:
    """Return True if a flow is healthy.

    A healthy flow is neither held up nor incomplete nor waiting for its lease; both clusters answer, there is something
    to copy, and no pattern that can hardly be meant so; no partition is parked or held back by an open transaction, no
    topic is refused, no records came after their writers had moved, and the loss ledger has no loss that isn't
    acknowledged.
    """
    return not (
        flow.state in UNHEALTHY
        or flow.parked
        or flow.open_transactions
        or refused_topics(flow)
        or _late(flow)
        or _slips(flow)
        or lost(flow)
        or flow.source.away
        or flow.target.away
    )


def refused_topics(flow: snapshot.Flow) -> list[Topic]:
    """Return the topics that can't be copied, or not wholly."""
    return [topic for topic in flow.topics if topic.refused]


def _late(flow: snapshot.Flow) -> list[Topic]:
    return [topic for topic in flow.topics if topic.late]


def _slips(flow: snapshot.Flow) -> list[UnmatchedPattern]:
    """Return the topic patterns that match nothing and can hardly be meant so."""
    return [pattern for pattern in flow.unmatched if pattern.key == "topics" and pattern.fault]


def lost(flow: snapshot.Flow) -> int:
    """Return the number of ledger entries whose records are lost, or may be.

    Acknowledged entries don't count.
    """
    return sum(loss.entries for loss in flow.losses if loss.is_open_loss)


def first_reason(flow: snapshot.Flow) -> str:
    """Return the reason for the flow's state, in one line."""
    if flow.reason:
        return flow.reason
    if flow.parked:
        topic, partition = flow.parked[0]
        return f"{topic.topic}-{partition.partition} is parked: {partition.reason or partition.cause}"
    if refused := refused_topics(flow):
        return f"{refused[0].topic} is refused: {refused[0].refused}"
    if late := _late(flow):
        return f"{late[0].topic}: {late[0].late_words}"
    if flow.open_transactions:
        topic, partition = flow.open_transactions[0]
        return f"{topic.topic}-{partition.partition}: {partition.reason}; to end it: {partition.remedy}"
    if flow.unknown and flow.why_unknown:
        return flow.why_unknown
    newest = max((loss for loss in flow.losses if loss.is_open_loss), key=lambda loss: loss.newest_ms, default=None)
    return flow.waiting or (f"{newest.outcome}: {newest.words}" if newest is not None else "")
