"""`sparkmirror groups`: offsets and lag of consumer groups at both clusters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import typer

from sparkmirror.cli.control import Flow, chosen_flows
from sparkmirror.cli.log_lines import plain
from sparkmirror.cli.output import Format, Output, print_json
from sparkmirror.cli.published import Stale, fresh
from sparkmirror.cli.run import Clusters, File, Secrets, load
from sparkmirror.engine import snapshot
from sparkmirror.engine.status_topic import read_status

COLUMNS = (
    "GROUP",
    "TOPIC",
    "PARTITION",
    "OFFSET",
    "LAG",
    "TARGET-TOPIC",
    "TARGET-OFFSET",
    "TARGET-LAG",
    "SKIPPED",
    "REREAD",
    "STATE",
)


def groups(
    file: File,
    flow: Flow = None,
    stale: Stale = 60.0,
    clusters: Clusters = None,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """List consumer groups by partition: offsets and lag at both clusters.

    Also lists the records that a group would skip, and read again, if it moved to the target now.

    Exit codes: 0 the list is printed, 2 the file is wrong, 3 the target can't be reached, or nothing
    was published for longer than --stale seconds.

    Example: sparkmirror groups mm2.properties -o json
    """
    flows = chosen_flows(load(file, clusters, secrets=secrets), flow)
    shown = [fresh(each, read_status(each), stale) for each in flows]
    print_rows(shown, rows, COLUMNS, cells, output)
    for now, _ in shown if output is Format.TEXT else ():
        if now.excluded_sinks:
            named = plain(", ".join(now.excluded_sinks))
            typer.echo(f"{now.flow}: groups.exclude leaves out groups of sink connectors: {named}")


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


def cells(row: dict[str, object]) -> tuple[str, ...]:
    """Return the row's columns as text.

    Unknown values are `-`, as in Kafka's own tool.
    """
    keys = ("group", "topic", "partition", "source_offset", "source_lag", "target_topic", "target_offset", "target_lag")
    values = ["-" if row[key] is None else str(row[key]) for key in (*keys, "skipped", "reread")]
    return (*values, f"{row['state']}" + (f" ({row['reason']})" if row["reason"] else ""))


def print_rows(
    shown: Sequence[tuple[snapshot.Flow, float]],
    rows_of: Callable[[snapshot.Flow, float], list[dict[str, object]]],
    heads: tuple[str, ...],
    cells_of: Callable[[dict[str, object]], tuple[str, ...]],
    output: Format,
) -> None:
    """Print flows with their ages: all rows as JSON, or a table for each flow."""
    if output is Format.JSON:
        print_json([row for now, age_s in shown for row in rows_of(now, age_s)])
        return
    for now, age_s in shown:
        typer.echo(f"{now.flow}, {age_s:,.0f} s ago")
        typer.echo(lines([heads, *map(cells_of, rows_of(now, age_s))]))


def lines(table: list[tuple[str, ...]]) -> str:
    """Return a table as lines whose columns are as wide as their widest cell."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join(
        plain("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()) for row in table
    )
