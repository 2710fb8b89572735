"""Rows of the page's tables, made from a snapshot; `assets/columns.js` names their columns, in the same order."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sparkmirror.engine.snapshot import Flow, Group, Partition, PartitionState, Snapshot, Topic
from sparkmirror.page.changes import Row
from sparkmirror.page.cut_over import if_moved


class RowKind(StrEnum):
    """Which table."""

    TOPICS = "topics"
    PARTITIONS = "partitions"
    GROUPS = "groups"
    POSITIONS = "positions"
    """Of a group, by partition."""


@dataclass(frozen=True, slots=True)
class WantedRows:
    """What a viewer looks at: a table of one flow, of one topic's partitions or one group's positions if `of`."""

    kind: RowKind
    flow: str
    of: str = ""


class Rows:
    """Those of one table, from snapshot to snapshot; a topic that is the same object as before has the same rows."""

    def __init__(self, wanted: WantedRows) -> None:
        self._wanted = wanted
        self._made: dict[str, tuple[Topic, dict[str, Row]]] = {}

    def of(self, snapshot: Snapshot) -> dict[str, Row]:
        """By key; none where the flow, topic or group is not there."""
        wanted = self._wanted
        flow = next((flow for flow in snapshot.flows if flow.flow == wanted.flow), None)
        if flow is None:
            return {}
        match wanted.kind:
            case RowKind.TOPICS:
                return {topic.topic: _topic(topic) for topic in flow.topics}
            case RowKind.PARTITIONS:
                return self._partitions(flow)
            case RowKind.GROUPS:
                return {group.group: _group(group, snapshot.at_ms) for group in flow.groups}
            case RowKind.POSITIONS:
                return _positions(flow, wanted.of)

    def _partitions(self, flow: Flow) -> dict[str, Row]:
        made: dict[str, tuple[Topic, dict[str, Row]]] = {}
        rows: dict[str, Row] = {}
        for topic in flow.topics:
            if self._wanted.of not in ("", topic.topic):
                continue
            before = self._made.get(topic.topic)
            if before is None or before[0] is not topic:
                before = topic, {f"{topic.topic}-{one.partition}": _partition(topic, one) for one in topic.partitions}
            made[topic.topic] = before
            rows |= before[1]
        self._made = made
        return rows


def topic_state(topic: Topic) -> str:
    """What a topic is at, as a word; that of its partitions which needs people most."""
    if topic.refused:
        return "refused"
    if topic.late:
        return "late writers"
    if topic.gone:
        return "deleted"
    if topic.released:
        return "moved"
    states = {partition_state(one) for one in topic.partitions}
    return next((state for state in _NEEDS_PEOPLE if state in states), "unknown")


def partition_state(one: Partition) -> str:
    """What a partition is at, as a word; of those that run, whether something is left to copy."""
    if one.state is not PartitionState.RUNNING:
        return one.state.value
    return "unknown" if one.lag is None else "copying" if one.lag else "caught up"


_NEEDS_PEOPLE = ("parked", "unknown", "waiting", "paused", "copying", "caught up", "done")


def rounded(value: float | None) -> float | int | None:
    """Three digits that count: what is sent again only where people would see a difference."""
    if not value or not math.isfinite(value):
        return 0 if value == 0 else None
    short = float(f"{value:.3g}")
    return int(short) if short.is_integer() else short


def _sum(values: Sequence[int | None]) -> int | None:
    return None if None in values else sum(value or 0 for value in values)


def _topic(topic: Topic) -> Row:
    rows = topic.partitions
    lags = [one.lag for one in rows]
    lag = _sum(lags)
    ages = [one.lag_s for one in rows]
    per_s = sum(one.records_per_s for one in rows)
    parked = [one for one in rows if one.state is PartitionState.PARKED]
    return (
        topic_state(topic),
        topic.topic,
        topic.target_topic,
        len(rows),
        len(parked),
        lag if rows else None,
        None if None in ages or not rows else rounded(max((age or 0.0 for age in ages), default=0.0)),
        rounded(per_s) if rows else None,
        rounded(sum(one.bytes_per_s for one in rows)) if rows else None,
        rounded(lag / per_s) if lag and per_s > 0 else None,
        topic.refused or (parked[0].reason if parked else "") or (f"{topic.late:,} late" if topic.late else ""),
    )


def _partition(topic: Topic, one: Partition) -> Row:
    return (
        partition_state(one),
        topic.topic,
        one.partition,
        one.position,
        one.end,
        one.lag,
        rounded(one.lag_s),
        rounded(one.records_per_s),
        rounded(one.bytes_per_s),
        rounded(one.eta_s),
        one.downstream,
        rounded(one.latency_ms.mean) if one.latency_ms is not None else None,
        one.task,
        one.leader,
        one.reason or ("" if one.cause.value == "none" else one.cause.value),
    )


def _group(group: Group, now_ms: int) -> Row:
    return (
        group.state.value,
        group.group,
        len(group.partitions),
        _sum([one.source_lag for one in group.partitions]) if group.partitions else None,
        _sum([one.target_lag for one in group.partitions]) if group.partitions else None,
        group.reread if group.partitions else None,
        rounded((now_ms - group.synced_ms) / 1000) if group.synced_ms is not None else None,
        if_moved(group),
    )


def _positions(flow: Flow, name: str) -> dict[str, Row]:
    group = next((group for group in flow.groups if group.group == name), None)
    if group is None:
        return {}
    return {
        json.dumps([one.topic, one.partition]): (
            group.state.value,
            one.topic,
            one.partition,
            one.source_offset,
            one.source_lag,
            one.target_offset,
            one.target_lag,
            one.reread,
        )
        for one in group.partitions
    }
