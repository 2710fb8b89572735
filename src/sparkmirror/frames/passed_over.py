"""Source records that a reader of the copy passes over.

The target has deleted them, or the flow began after them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sparkmirror.config import FlowConfig
from sparkmirror.config.model import REVEAL
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.frames.due import CountOrder, count_records
from sparkmirror.frames.ranges import LogPlan
from sparkmirror.frames.verify_task import Answer
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.range_reader import OffsetBounds
from sparkmirror.kafka.cluster.topic_descriptions import TopicDescription

_ROLE = "sparkmirror-rewrite"
_CONNECT_S = 10.0


class MissedOffsets(NamedTuple):
    """Offsets of a source partition for which a reader of the copy reads no record."""

    topic: str
    partition: int
    target_topic: str
    offsets: OffsetBounds


def why_not_exact(flow: FlowConfig, passed: Sequence[MissedOffsets]) -> list[str]:
    """Return why records would be missed, for each of these; empty: none is there.

    Asks the source, which may have no record there either. Until it has said so, records count as missed.
    """
    if not passed:
        return []
    try:
        timeout_s = min(flow.admin_timeout_ms / 1000, _CONNECT_S)
        with ClusterAdmin.connect(flow.source, _ROLE, timeout_s) as source:
            topics = source.topics({each.topic for each in passed})
    except ClusterUnreachable as error:
        return [_unknown(each, str(error)) for each in passed]
    return [_why(flow, each, topics.get(each.topic)) for each in passed]


def _why(flow: FlowConfig, passed: MissedOffsets, topic: TopicDescription | None) -> str:
    if topic is None:
        return _unknown(passed, f"cluster {flow.source.alias} shows no such topic")
    first, end = passed.offsets
    order = CountOrder(
        cluster=flow.source,
        log=LogPlan(topic=passed.topic, topic_id=topic.topic_id.hex(), start=first, end=end),
        partition=passed.partition,
        read_committed=flow.fetch.isolation_level == "read_committed",
        first=first,
        end=end,
        target_topic=passed.target_topic,
        transforms=flow.connect_transforms,
    )
    answer = Answer.model_validate_json(count_records(order.model_dump_json(context=REVEAL)))
    if answer.failed:
        return _unknown(passed, answer.failed)
    return _lacks(passed) if answer.records else ""


def _lacks(passed: MissedOffsets) -> str:
    first, end = passed.offsets
    why = "the target has deleted them, or the flow began after them"
    return f"{passed.target_topic} lacks offsets {first} to {end - 1} of the source: {why}"


def _unknown(passed: MissedOffsets, why: str) -> str:
    return f"{_lacks(passed)}; whether the source has records there is not known: {why}"
