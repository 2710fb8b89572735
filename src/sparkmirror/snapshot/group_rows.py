"""Rows of a flow's consumer groups, for tables and programs."""

from __future__ import annotations

from sparkmirror.snapshot import snapshot


def rows(flow: snapshot.Flow, age_s: float) -> list[dict[str, object]]:
    """Return a row for each partition of each group.

    A group without partitions has one row with nulls.
    """
    return [
        {
            "flow": flow.flow,
            "age_s": round(age_s, 1),
            "group": group.group,
            "topic": at.topic if at else None,
            "partition": at.partition if at else None,
            "source_offset": at.source_offset if at else None,
            "source_lag": at.source_lag if at else None,
            "target_topic": at.target_topic if at else None,
            "target_offset": at.target_offset if at else None,
            "target_lag": at.target_lag if at else None,
            "skipped": at.skipped if at else None,
            "reread": at.reread if at else None,
            "state": group.state,
            "reason": group.reason,
        }
        for group in flow.groups
        for at in (group.partitions or (None,))
    ]
