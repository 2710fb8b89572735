"""`sparkmirror losses`: the losses, certain and possible, in the flows' ledgers."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import datetime

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sparkmirror.cli.control import Flow, chosen_flows
from sparkmirror.cli.output import Format, Output, print_json
from sparkmirror.cli.run import Clusters, File, Secrets, load
from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.config import FlowConfig
from sparkmirror.durable.losses import AT_TARGET, Loss, LossLedger, losses_topic
from sparkmirror.errors import ClusterUnreachable

WIDE = 500
"""Width in columns without a terminal."""


def losses(
    file: File,
    flow: Flow = None,
    clusters: Clusters = None,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """List the loss ledger: what was lost where, and what was done about it.

    Exit codes: 0 the list is printed, 2 the file is wrong, 3 the target can't be reached.

    Example: sparkmirror losses mm2.properties -o json
    """
    flows = chosen_flows(load(file, clusters, secrets=secrets), flow)
    entries = [(each.name, loss) for each in flows for loss in _read(each)]
    if output is Format.JSON:
        print_json([{"flow": name, **loss.model_dump(mode="json")} for name, loss in entries])
    elif entries:
        # Without a terminal a line must stay a line.
        Console(width=None if sys.stdout.isatty() else WIDE).print(_table(entries))
    else:
        typer.echo("nothing was lost")


def _read(flow: FlowConfig) -> list[Loss]:
    client = ClusterClient(flow.target, f"{flow.name}|sparkmirror-cli")
    try:
        return LossLedger(TopicLog(client, losses_topic(flow.source.alias))).read()
    except ConnectionError as error:
        raise ClusterUnreachable(f"flow {flow.name}: {error}; has the mirror run before?") from error
    finally:
        client.close()


def _table(entries: Iterable[tuple[str, Loss]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("when", "flow", "kind", "partition"):
        table.add_column(column, no_wrap=True)
    for column in ("offsets", "count"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("action", no_wrap=True)
    table.add_column("what")
    for name, loss in entries:
        topic = loss.target_topic if loss.kind in AT_TARGET else loss.source_topic
        table.add_row(
            f"{datetime.fromtimestamp(loss.at_ms / 1000):%Y-%m-%d %H:%M:%S}",
            escape(name),
            loss.kind,
            escape(f"{topic}-{loss.partition}"),
            f"{loss.first}-{loss.end - 1}" if loss.offsets else f"from {loss.first}",
            f"{loss.offsets:,}",
            loss.action,
            escape(loss.words),
        )
    return table
