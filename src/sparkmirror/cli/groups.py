"""`sparkmirror groups`: offsets and lag of consumer groups at both clusters."""

from __future__ import annotations

import typer

from sparkmirror.cli.loading import Clusters, File, Flow, Secrets, chosen_flows, load
from sparkmirror.cli.log_lines import plain
from sparkmirror.cli.output import Format, Output
from sparkmirror.cli.published import Stale
from sparkmirror.cli.tables import print_rows
from sparkmirror.snapshot.group_rows import rows
from sparkmirror.snapshot.status_topic import fresh, read_status

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


def cells(row: dict[str, object]) -> tuple[str, ...]:
    """Return the row's columns as text.

    Unknown values are `-`, as in Kafka's own tool.
    """
    keys = ("group", "topic", "partition", "source_offset", "source_lag", "target_topic", "target_offset", "target_lag")
    values = ["-" if row[key] is None else str(row[key]) for key in (*keys, "skipped", "reread")]
    return (*values, f"{row['state']}" + (f" ({row['reason']})" if row["reason"] else ""))
