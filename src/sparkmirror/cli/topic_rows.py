"""Topics of a flow as rows."""

from __future__ import annotations

from sparkmirror.snapshot import snapshot
from sparkmirror.snapshot.snapshot import PartitionState

KEYS = ("topic", "target_topic", "partitions", "parked", "lag", "late", "records_per_s", "state", "reason")
"""Columns of `topics list`."""


def cells(row: dict[str, object]) -> tuple[str, ...]:
    """Return the row's columns as text; unknown values are `-`."""
    return tuple("-" if row[key] is None else str(row[key]) for key in KEYS)


def rows(flow: snapshot.Flow, age_s: float) -> list[dict[str, object]]:
    return [
        {
            "flow": flow.flow,
            "age_s": round(age_s, 1),
            "topic": topic.topic,
            "target_topic": topic.target_topic,
            "partitions": len(topic.partitions),
            "parked": sum(partition.state is PartitionState.PARKED for partition in topic.partitions),
            "lag": _lag(topic),
            "late": topic.late if topic.released or topic.late else None,
            "records_per_s": round(sum(partition.records_per_s for partition in topic.partitions), 1),
            "state": state(topic),
            "reason": topic.refused
            or next((each.reason for each in topic.partitions if each.reason), "")
            or topic.late_words
            or ("it is the opposite flow's turn" if topic.waits else ""),
        }
        for topic in flow.topics
    ]


def state(topic: snapshot.Topic) -> str:
    """Return the topic's state in a word: the worst of the partitions' states."""
    if topic.refused or topic.gone or topic.released:
        return "refused" if topic.refused else "gone" if topic.gone else "released"
    if topic.waits:
        return PartitionState.WAITING.value
    there = {partition.state for partition in topic.partitions}
    worst = (PartitionState.PARKED, PartitionState.UNKNOWN, PartitionState.WAITING, PartitionState.PAUSED)
    return next((each.value for each in (*worst, PartitionState.RUNNING) if each in there), PartitionState.DONE.value)


def _lag(topic: snapshot.Topic) -> int | None:
    if topic.released and not topic.recreated:
        return 0
    known = [partition.lag for partition in topic.partitions if partition.lag is not None]
    return sum(known) if topic.partitions and len(known) == len(topic.partitions) else None
