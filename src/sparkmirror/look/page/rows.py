"""Rows in the page's tables, made from a snapshot.

`assets/columns.js` and `assets/panels.js` name the columns, in the same order.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sparkmirror.look.page.changes import Row
from sparkmirror.look.page.cut_over import if_moved
from sparkmirror.look.page.sentences import ON_THE_WAY_S, STUCK
from sparkmirror.snapshot.group_standing import GroupState
from sparkmirror.snapshot.snapshot import Cause, Flow, Group, LossRow, Partition, PartitionState, Role, Snapshot, Topic


class RowKind(StrEnum):
    """Kind of a table."""

    TOPICS = "topics"
    PARTITIONS = "partitions"
    GROUPS = "groups"
    POSITIONS = "positions"
    """One group's positions, by partition."""
    LOSSES = "losses"
    """The loss ledger's newest entries."""


@dataclass(frozen=True, slots=True)
class WantedRows:
    """Table of one flow that a viewer looks at.

    `of` limits the table to one topic's partitions, or names the group whose positions are shown.
    """

    kind: RowKind
    flow: str
    of: str = ""


class Rows:
    """One table's rows, updated from snapshot to snapshot.

    A topic's rows are reused while the topic is the same object.
    """

    def __init__(self, wanted: WantedRows) -> None:
        self._wanted = wanted
        self._made: dict[str, tuple[Topic, dict[str, Row]]] = {}

    def of(self, snapshot: Snapshot) -> dict[str, Row]:
        """Return the rows by key; none if the flow, topic or group is missing.

        Only the process that works on a flow knows its figures; the loss ledger is known to all.
        """
        wanted = self._wanted
        flow = next((flow for flow in snapshot.flows if flow.flow == wanted.flow), None)
        if flow is None or (flow.role is not Role.LEADER and wanted.kind is not RowKind.LOSSES):
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
            case RowKind.LOSSES:
                return {entry.number: _loss(entry) for entry in flow.loss_entries}

    def _partitions(self, flow: Flow) -> dict[str, Row]:
        made: dict[str, tuple[Topic, dict[str, Row]]] = {}
        rows: dict[str, Row] = {}
        for topic in flow.topics:
            if self._wanted.of not in ("", topic.topic):
                continue
            before = self._made.get(topic.topic)
            if before is None or before[0] is not topic:
                before = topic, {f"{topic.topic}-{row.partition}": _partition(topic, row) for row in topic.partitions}
            made[topic.topic] = before
            rows |= before[1]
        self._made = made
        return rows


def topic_state(topic: Topic) -> str:
    """Return a topic's state as a word: its partitions' most urgent state.

    A topic that is refused, has late writers, is deleted or has moved has its own word.
    """
    if topic.refused:
        return "refused"
    if topic.late:
        return "late writers"
    if topic.gone:
        return "deleted"
    if topic.released:
        return "moved"
    if topic.waits:
        return "waiting"
    states = {partition_state(partition) for partition in topic.partitions}
    return next((state for state in _NEEDS_PEOPLE if state in states), "unknown")


def partition_state(partition: Partition) -> str:
    """Return a partition's state as a word.

    The words for a running partition tell whether records are left to copy. Records on their way don't count, as in the
    flow's headline.
    """
    if partition.state is not PartitionState.RUNNING:
        return partition.state.value
    if partition.lag is None:
        return "unknown"
    is_level = not partition.lag or (partition.lag_s is not None and partition.lag_s <= ON_THE_WAY_S)
    return "caught up" if is_level else "copying"


_NEEDS_PEOPLE = ("parked", "unknown", "waiting", "paused", "copying", "caught up", "done")


def rounded(value: float | None) -> float | int | None:
    """Round to three significant digits, so that invisible changes are not sent again."""
    if not value or not math.isfinite(value):
        return 0 if value == 0 else None
    short = float(f"{value:.3g}")
    return int(short) if short.is_integer() else short


def total(values: Sequence[int | None]) -> int | None:
    """Return the sum; `None` if any value is unknown."""
    return None if None in values else sum(value or 0 for value in values)


def _topic(topic: Topic) -> Row:
    rows = topic.partitions
    lags = [partition.lag for partition in rows]
    lag = total(lags)
    ages = [partition.lag_s for partition in rows]
    per_s = sum(partition.records_per_s for partition in rows)
    parked = [partition for partition in rows if partition.state is PartitionState.PARKED]
    stuck = any(partition.lag and (partition.state in STUCK or partition.held_back) for partition in rows)
    waits = [
        partition.reason
        for partition in rows
        if partition.state is PartitionState.WAITING or partition.cause is Cause.OPEN_TRANSACTION
    ]
    return (
        topic_state(topic),
        topic.topic,
        topic.target_topic,
        len(rows),
        len(parked),
        lag if rows else None,
        None if None in ages or not rows else rounded(max((age or 0.0 for age in ages), default=0.0)),
        rounded(per_s) if rows else None,
        rounded(sum(partition.bytes_per_s for partition in rows)) if rows else None,
        rounded(lag / per_s) if lag and per_s > 0 and not stuck else None,
        topic.refused or next(iter([*(each.reason for each in parked), *waits]), "") or topic.late_words,
    )


def _partition(topic: Topic, partition: Partition) -> Row:
    return (
        partition_state(partition),
        topic.topic,
        partition.partition,
        partition.position,
        partition.end,
        partition.lag,
        rounded(partition.lag_s),
        rounded(partition.records_per_s),
        rounded(partition.bytes_per_s),
        rounded(partition.eta_s),
        partition.downstream,
        rounded(partition.latency_ms.mean) if partition.latency_ms is not None else None,
        partition.task,
        partition.leader,
        partition.reason or ("" if partition.cause.value == "none" else partition.cause.value),
    )


def _group(group: Group, now_ms: int) -> Row:
    return (
        group.state.value,
        group.group,
        len(group.partitions),
        total([position.source_lag for position in group.partitions]) if group.partitions else None,
        total([position.target_lag for position in group.partitions]) if group.partitions else None,
        group.skipped if group.partitions else None,
        group.reread if group.partitions else None,
        rounded((now_ms - group.synced_ms) / 1000) if group.synced_ms is not None else None,
        if_moved(group),
    )


def _loss(entry: LossRow) -> Row:
    return (
        entry.outcome.value,
        entry.at_ms,
        entry.kind,
        f"{entry.topic}-{entry.partition}",
        entry.first,
        entry.offsets,
        entry.words,
        entry.acknowledged,
        entry.number,
    )


def _positions(flow: Flow, name: str) -> dict[str, Row]:
    group = next((group for group in flow.groups if group.group == name), None)
    if group is None:
        return {}
    return {
        json.dumps([position.topic, position.partition]): (
            (GroupState.BEYOND_END if position.beyond_end else group.state).value,
            position.topic,
            position.partition,
            position.source_offset,
            position.source_lag,
            position.target_offset,
            position.target_lag,
            position.skipped,
            position.reread,
        )
        for position in group.partitions
    }
