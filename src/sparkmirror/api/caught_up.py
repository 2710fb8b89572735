"""Wait until a mirror has copied all records that its sources had at one time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sparkmirror.config import FlowConfig
from sparkmirror.frames.listed_offsets import Offsets, ends_now
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.mirror.sync.topic_rules import topic_rules
from sparkmirror.snapshot.snapshot import Cause, Flow, PartitionState, Snapshot, Topic

_ROLE = "sparkmirror-caught-up"
_CONNECT_S = 15.0
_OF_LATER_RECORDS = frozenset(
    {Cause.TOO_LARGE, Cause.TIMESTAMP, Cause.UNREADABLE, Cause.TRANSFORM, Cause.REFUSED, Cause.THROTTLED}
)
"""Causes of parking that concern only records after the position."""


class CatchUp:
    """Ends that all copied source partitions had when this was made.

    With `isolation.level = read_committed` these are the last stable offsets. Raises `ClusterUnreachable`.
    """

    def __init__(self, flows: Iterable[FlowConfig]) -> None:
        self._ends = {flow.name: _ends(flow) for flow in flows if flow.copies}

    def missing(self, snapshot: Snapshot) -> list[str]:
        """Return a line for each partition that is behind; none: all is copied."""
        views = {flow.flow: flow for flow in snapshot.flows}
        return [line for name, ends in self._ends.items() for line in _missing(views.get(name), ends)]


def _ends(flow: FlowConfig) -> Offsets:
    rules = topic_rules(flow)
    with ClusterAdmin.connect(flow.source, _ROLE, min(flow.admin_timeout_ms / 1000, _CONNECT_S)) as source:
        wanted = [
            (name, partition.partition)
            for name, topic in source.topics().items()
            if rules.wanted(name)
            for partition in topic.partitions
        ]
    ends = ends_now(flow.source, wanted, int(flow.fetch.isolation_level == "read_committed"))
    return {at: end for at, end in ends.items() if end > 0}


def _missing(flow: Flow | None, ends: Offsets) -> Iterator[str]:
    topics: dict[str, Topic] = {topic.topic: topic for topic in flow.topics} if flow is not None else {}
    positions = {
        (topic.topic, partition.partition): partition for topic in topics.values() for partition in topic.partitions
    }
    for (name, number), end in sorted(ends.items()):
        topic, partition = topics.get(name), positions.get((name, number))
        # Its writers have moved, or it is the opposite flow's turn: nothing more is copied.
        if topic is not None and (topic.released or topic.waits):
            continue
        if topic is not None and topic.refused:
            yield f"{name}-{number}: {topic.refused}"
        elif partition is None or partition.position is None:
            yield f"{name}-{number}: its position is not known yet"
        elif partition.state is PartitionState.PARKED and partition.cause not in _OF_LATER_RECORDS:
            yield f"{name}-{number}: {partition.reason}"
        elif partition.position < end:
            why = f" ({partition.reason})" if partition.reason else ""
            yield f"{name}-{number}: {end - partition.position:,} offsets are left{why}"
