"""Wait until a mirror has copied all records that its sources had at one time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sparkmirror.config import FlowConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.frames.listed_offsets import ends_now
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.wire.topic_ids import same_topic
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.sync.topic_rules import topic_rules
from sparkmirror.snapshot.snapshot import Cause, Flow, PartitionState, Snapshot, Topic

_ROLE = "sparkmirror-caught-up"
_CONNECT_S = 15.0
_ASK_S = 5.0
"""Seconds between questions whether a source still has what is to be copied."""
_OF_LATER_RECORDS = frozenset(
    {Cause.TOO_LARGE, Cause.TIMESTAMP, Cause.UNREADABLE, Cause.TRANSFORM, Cause.REFUSED, Cause.THROTTLED}
)
"""Causes of parking that concern only records after the position."""


class DueEnd(NamedTuple):
    """A source partition's end, with its topic's id."""

    topic_id: bytes
    end: int


Ends = dict[TopicPartition, DueEnd]
Lines = dict[TopicPartition, str]


class CatchUp:
    """Ends that all copied source partitions had when this was made.

    With `isolation.level = read_committed` these are the last stable offsets. Raises `ClusterUnreachable`.
    """

    def __init__(self, flows: Iterable[FlowConfig]) -> None:
        self._goals = [_FlowGoal(flow) for flow in flows if flow.copies]
        self._ask_at = time.monotonic() + _ASK_S

    def missing(self, snapshot: Snapshot) -> list[str]:
        """Return a line for each partition that is behind; none: all is copied."""
        views = {flow.flow: flow for flow in snapshot.flows}
        behind = [goal.behind(views.get(goal.name)) for goal in self._goals]
        if not any(behind) or time.monotonic() >= self._ask_at:
            self._ask_at = time.monotonic() + _ASK_S
            for goal, lines in zip(self._goals, behind, strict=True):
                goal.ask(views.get(goal.name), lines)
        return [line for lines in behind for line in lines.values()]

    @property
    def gone(self) -> list[str]:
        """Lines for partitions that can't be copied any more."""
        return [line for goal in self._goals for line in goal.gone.values()]


class _FlowGoal:
    """One flow's ends, without those that were seen to be copied."""

    def __init__(self, flow: FlowConfig) -> None:
        self.name = flow.name
        self.gone: Lines = {}
        self._flow = flow
        self._ends = _ends(flow)
        self._suspects: Lines = {}
        """Partitions that the source lacked in its last answer.

        A broker that starts may not know its topics yet.
        """

    def behind(self, flow: Flow | None) -> Lines:
        """Return a line for each partition that is behind, or may be gone."""
        return dict(_missing(flow, self._ends)) | self._suspects

    def ask(self, flow: Flow | None, behind: Lines) -> None:
        """Ask the source whether it still has the records; add lines if it doesn't.

        The positions were read before, so that they are of the topics that the source still has now.
        """
        left_alone = {topic.topic for topic in flow.topics if _is_left_alone(topic)} if flow is not None else set()
        asked = {at: end for at, end in self._ends.items() if at[0] not in left_alone}
        try:
            lacking = _lacking(self._flow, asked) if asked else {}
        except ClusterUnreachable:  # the mirror tells of it
            return
        self.gone = {at: line for at, line in lacking.items() if at in self._suspects}
        self._suspects = lacking
        behind |= lacking
        for at in asked.keys() - behind.keys():
            del self._ends[at]


def _ends(flow: FlowConfig) -> Ends:
    rules = topic_rules(flow)
    with ClusterAdmin.connect(flow.source, _ROLE, _connect_s(flow)) as source:
        ids = {
            (name, partition.partition): topic.topic_id
            for name, topic in source.topics().items()
            if rules.wanted(name)
            for partition in topic.partitions
        }
    ends = ends_now(flow.source, ids, int(flow.fetch.isolation_level == "read_committed"))
    return {at: DueEnd(ids[at], end) for at, end in ends.items() if end > 0}


def _lacking(flow: FlowConfig, ends: Ends) -> Lines:
    """Return a line for each partition whose records the source no longer has.

    Raises `ClusterUnreachable`.
    """
    with ClusterAdmin.connect(flow.source, _ROLE, _connect_s(flow)) as source:
        topics = source.topics({name for name, _ in ends})
        now = source.end_offsets(ends, isolation=flow.fetch.isolation_level)
    lines: Lines = {}
    for (name, number), (topic_id, end) in sorted(ends.items()):
        at, topic = (name, number), topics.get(name)
        if topic is None or number not in {partition.partition for partition in topic.partitions}:
            lines[at] = f"{name}-{number}: the source shows it no more"
        elif not same_topic(topic.topic_id, topic_id):
            lines[at] = f"{name}-{number}: the topic was created again at the source"
        elif now.get(at, end) < end:
            lines[at] = f"{name}-{number}: it ends at {now[at]:,} at the source now, and ended at {end:,}"
    return lines


def _connect_s(flow: FlowConfig) -> float:
    return min(flow.admin_timeout_ms / 1000, _CONNECT_S)


def _is_left_alone(topic: Topic) -> bool:
    """True if its writers have moved, or it is the opposite flow's turn."""
    return topic.released or topic.waits


def _missing(flow: Flow | None, ends: Ends) -> Iterator[tuple[TopicPartition, str]]:
    topics: dict[str, Topic] = {topic.topic: topic for topic in flow.topics} if flow is not None else {}
    positions = {
        (topic.topic, partition.partition): partition for topic in topics.values() for partition in topic.partitions
    }
    for (name, number), (_, end) in sorted(ends.items()):
        at, topic, partition = (name, number), topics.get(name), positions.get((name, number))
        if topic is not None and _is_left_alone(topic):
            continue
        if topic is not None and topic.refused:
            yield at, f"{name}-{number}: {topic.refused}"
        elif partition is None or partition.position is None:
            yield at, f"{name}-{number}: its position is not known yet"
        elif partition.state is PartitionState.PARKED and partition.cause not in _OF_LATER_RECORDS:
            yield at, f"{name}-{number}: {partition.reason}"
        elif partition.position < end:
            why = f" ({partition.reason})" if partition.reason else ""
            yield at, f"{name}-{number}: {end - partition.position:,} offsets are left{why}"
