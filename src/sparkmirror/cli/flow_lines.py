"""Facts about a flow as lines, for the live view and its JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from sparkmirror.snapshot.flow_state import SaidState
from sparkmirror.snapshot.group_standing import GroupState
from sparkmirror.snapshot.late_offsets import LateOffsets
from sparkmirror.snapshot.loss_counts import summed_up
from sparkmirror.snapshot.snapshot import Flow, Group, PartitionState


def fields(flow: Flow) -> dict[str, object]:
    """Return the fields of a line of `run -o json`, but for its time."""
    return {
        "flow": flow.flow,
        "state": state(flow),
        "records": flow.records,
        "bytes": flow.bytes,
        "records_per_s": flow.records_per_s,
        "bytes_per_s": flow.bytes_per_s,
        "lag": flow.lag,
        "unknown": flow.unknown,
        "eta_s": flow.eta_s,
        "latency_ms": flow.recent_latency_ms,
        "partitions": partitions(flow),
        "done": partitions(flow, PartitionState.DONE),
        "parked": parked(flow),
        "losses": summed_up(flow.losses),
        "forecast": forecast(flow),
        "gone": gone(flow),
        "released": released(flow),
        "late": late(flow),
        "waiting": flow.waiting,
        "open_transactions": open_transactions(flow),
        "groups": groups(flow.groups),
        "failing": failing(flow),
        "memory_bytes": max((pump.memory_bytes for pump in flow.pumps), default=0),
    }


def state(flow: Flow) -> str:
    """Return the state, with its reason."""
    return SaidState(flow.state, flow.reason).words


def partitions(flow: Flow, state: PartitionState | None = None) -> int:
    """Return the number of partitions, or of those in a state."""
    return sum(state is None or row.state is state for topic in flow.topics for row in topic.partitions)


def parked(flow: Flow) -> list[str]:
    """Return a line for each partition or topic that can't be copied now."""
    lines = [f"{topic.topic}-{partition.partition}: {partition.reason}" for topic, partition in flow.parked]
    return lines + [f"{topic.topic}: {topic.refused}" for topic in flow.topics if topic.refused]


def forecast(flow: Flow) -> str:
    """Return the warning of the first partition that loses records to retention."""
    if flow.retention_s is None:
        return ""
    return f"the source deletes uncopied records of {flow.retention_of} in {flow.retention_s / 60:.0f} min"


def gone(flow: Flow) -> list[str]:
    """Return the source topics that were copied and no longer exist."""
    return [topic.topic for topic in flow.topics if topic.gone]


def released(flow: Flow) -> list[str]:
    """Return the source topics whose writers have moved to the copies."""
    return [topic.topic for topic in flow.topics if topic.released]


def late(flow: Flow) -> list[str]:
    """Return a line for each partition that got records after its writers moved."""
    return [
        LateOffsets(
            topic=topic.topic,
            partition=partition,
            copied=topic.late_copied_in.get(partition, 0),
            missing=topic.late_in.get(partition, 0),
            recreated=topic.recreated,
        ).line
        for topic in flow.topics
        for partition in sorted(topic.late_in.keys() | topic.late_copied_in.keys())
    ]


def open_transactions(flow: Flow) -> list[str]:
    """Return a line for each partition that an open transaction holds back."""
    return [
        f"{topic.topic}-{partition.partition}: {partition.reason}; to end it: {partition.remedy}"
        for topic, partition in flow.open_transactions
    ]


def failing(flow: Flow) -> list[str]:
    """Return a line for each duty whose last turn failed."""
    return [f"{duty.duty}: {duty.failing}" for duty in sorted(flow.duties, key=lambda duty: duty.duty) if duty.failing]


def groups(all_groups: Iterable[Group]) -> list[str]:
    """Return a few words on each state with groups.

    Of the groups that can't be synced, the first is named with the reason.
    """
    by_state: dict[GroupState, list[Group]] = defaultdict(list)
    for group in all_groups:
        by_state[group.state].append(group)
    words = [f"{len(by_state[state]):,} {state}" for state in GroupState if by_state[state]]
    if stuck := by_state[GroupState.NOT_SYNCED]:
        first = min(stuck, key=lambda group: group.group)
        words[-1] += f", first: {first.group}: {first.reason}"
    return words
