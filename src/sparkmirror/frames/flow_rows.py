"""Rows of loss ledgers and consumer groups, for DataFrames."""

from __future__ import annotations

from datetime import UTC, datetime

from sparkmirror.config import FlowConfig
from sparkmirror.snapshot.group_rows import rows
from sparkmirror.snapshot.ledger import ledger_entries
from sparkmirror.snapshot.loss_counts import loss_row
from sparkmirror.snapshot.snapshot import Flow

LOSSES = (
    "flow string, at timestamp, entry string, kind string, outcome string, topic string, partition int, first long, "
    "offsets long, action string, words string, acknowledged string"
)
GROUPS = (
    "flow string, group string, topic string, partition int, source_offset long, source_lag long, "
    "target_topic string, target_offset long, target_lag long, skipped long, reread long, state string, reason string"
)


def loss_rows(flow: FlowConfig) -> list[tuple[object, ...]]:
    """Return all entries of the flow's loss ledger (`LOSSES`).

    Raises `ClusterUnreachable`.
    """
    return [
        (
            flow.name,
            datetime.fromtimestamp(row.at_ms / 1000, UTC),
            row.number,
            str(row.kind),
            str(row.outcome),
            row.topic,
            row.partition,
            row.first,
            row.offsets,
            str(row.action),
            row.words,
            row.acknowledged,
        )
        for row in map(loss_row, ledger_entries(flow))
    ]


def group_rows(flow: Flow, age_s: float) -> list[tuple[object, ...]]:
    """Return consumer groups by partition (`GROUPS`).

    A group without partitions has one row. `age_s` is the status' age.
    """
    names = [column.split()[0] for column in GROUPS.split(", ")]
    return [tuple(str(row[name]) if name == "state" else row[name] for name in names) for row in rows(flow, age_s)]
