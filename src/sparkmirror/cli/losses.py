"""`sparkmirror losses`: the flows' loss ledgers, and the operators' words on them.

`ack` says that losses are known; `undo` takes this back.
"""

from __future__ import annotations

import getpass
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from typer.core import TyperGroup

from sparkmirror.cli.loading import Clusters, File, Flow, Secrets, chosen_flows, chosen_topics, load
from sparkmirror.cli.output import Format, Output, print_json
from sparkmirror.cli.tables import lines
from sparkmirror.config import FlowConfig
from sparkmirror.errors import ConfigError
from sparkmirror.exact.durable.acknowledgements import LedgerEntry, acknowledge, retract
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.look.doctor.rule import counted
from sparkmirror.snapshot.ledger import ledger_entries, open_ledger
from sparkmirror.snapshot.loss_counts import loss_row

_LIST = "list"


class _ListUnlessSaid(TyperGroup):
    """Verbs of which `list` may be left out: `sparkmirror losses FILE`.

    A context's class is click's or Typer's own, by Typer's release.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = [_LIST, *args]
        return super().parse_args(ctx, args)


losses = typer.Typer(
    cls=_ListUnlessSaid,
    no_args_is_help=True,
    help="Loss ledger: what was lost where, and which losses are known. `losses FILE` is `losses list FILE`.",
)

Topics = Annotated[
    str, typer.Option("--topics", metavar="REGEXES", help="Source topics (regular expressions, comma separated).")
]
Partition = Annotated[int | None, typer.Option("--partition", min=0, help="Only this partition of the topics.")]
Entries = Annotated[
    list[str] | None,
    typer.Option("--entry", metavar="NUMBER", help="Only this entry, as `losses` numbers it; may be repeated."),
]


@losses.command(_LIST)
def list_losses(
    file: File,
    flow: Flow = None,
    clusters: Clusters = None,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """List the loss ledger: what was lost where, and what was done about it.

    Exit codes: 0 the list is printed, 2 the file is wrong, 3 the target can't be reached.

    Example: sparkmirror losses list mm2.properties -o json
    """
    flows = chosen_flows(load(file, clusters, secrets=secrets), flow)
    entries = [(each.name, entry) for each in flows for entry in ledger_entries(each)]
    if output is Format.JSON:
        print_json([_json(name, entry) for name, entry in entries])
    elif not entries:
        typer.echo("nothing was lost")
    elif sys.stdout.isatty():
        Console().print(_table(entries))
    else:
        typer.echo(lines([COLUMNS, *(_cells(name, entry) for name, entry in entries)]))


@losses.command()
def ack(
    file: File,
    why: Annotated[str, typer.Argument(metavar="WHY", help="Reason, for whoever reads the ledger later.")],
    names: Topics = ".*",
    partition: Partition = None,
    numbers: Entries = None,
    flow: Flow = None,
    clusters: Clusters = None,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """Say that losses are known: all, or those chosen by topic, partition or entry.

    An acknowledged loss stays in the ledger, with who, when and why, and makes nothing red any
    more: neither page, doctor and `status --check`, nor the verdict on a cut-over. A loss that
    grows afterwards counts again, but for copy-expired.

    Exit codes: 0 the ledger has the word, 2 the file or the command line is wrong, 3 the target can't be reached.

    Example: sparkmirror losses ack mm2.properties "retention was too short" --topics orders.*
    """
    if not why.strip():
        raise ConfigError("say why the losses are acceptable", origin="WHY")
    at_ms, by = int(time.time() * 1000), _operator()

    def say(log: TopicLog, chosen: Sequence[LedgerEntry]) -> None:
        acknowledge(log, [entry.loss for entry in chosen], at_ms=at_ms, by=by, why=why.strip())

    flows = chosen_flows(load(file, clusters, secrets=secrets), flow)
    wanted = _chosen(names, partition, numbers or ())
    told = _tell(flows, lambda entry: entry.is_open and wanted(entry), numbers or (), say)
    _print(told, "acknowledged", "no open entry matches", output)


@losses.command()
def undo(
    file: File,
    names: Topics = ".*",
    partition: Partition = None,
    numbers: Entries = None,
    flow: Flow = None,
    clusters: Clusters = None,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """Take `ack` back: the losses count again.

    Exit codes: 0 the ledger has the word, 2 the file or the command line is wrong, 3 the target can't be reached.

    Example: sparkmirror losses undo mm2.properties --topics orders.*
    """
    flows = chosen_flows(load(file, clusters, secrets=secrets), flow)
    wanted = _chosen(names, partition, numbers or ())
    told = _tell(
        flows,
        lambda entry: entry.acknowledgement is not None and wanted(entry),
        numbers or (),
        lambda log, chosen: retract(log, [entry.loss for entry in chosen]),
    )
    _print(told, "not acknowledged any more", "no acknowledged entry matches", output)


def _operator() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        user = f"uid {os.getuid()}"
    return f"{user}@{socket.gethostname()}"


def _tell(
    flows: Sequence[FlowConfig],
    wanted: Callable[[LedgerEntry], bool],
    numbers: Sequence[str],
    say: Callable[[TopicLog, Sequence[LedgerEntry]], None],
) -> list[tuple[str, LedgerEntry]]:
    """Say a word on the wanted entries of each flow's ledger, and return the entries.

    Raises `ConfigError` if one of `numbers` is none of them; then nothing is said.
    """
    chosen = [(flow, [entry for entry in ledger_entries(flow) if wanted(entry)]) for flow in flows]
    told = [(flow.name, entry) for flow, entries in chosen for entry in entries]
    for number in numbers:
        if number not in {entry.loss.number for _, entry in told}:
            raise ConfigError("no entry that this can be said of has this number", origin="--entry", key=number)
    for flow, entries in chosen:
        if entries:
            with open_ledger(flow) as log:
                say(log, entries)
    return told


def _chosen(names: str, partition: int | None, numbers: Sequence[str]) -> Callable[[LedgerEntry], bool]:
    is_chosen = chosen_topics(names)

    def wanted(entry: LedgerEntry) -> bool:
        loss = entry.loss
        return (
            is_chosen(loss.source_topic)
            and partition in (None, loss.partition)
            and (not numbers or loss.number in numbers)
        )

    return wanted


def _print(told: Sequence[tuple[str, LedgerEntry]], said: str, nothing: str, output: Format) -> None:
    if not told:
        raise ConfigError(f"{nothing}: `sparkmirror losses FILE` lists the entries", origin="the loss ledger")
    if output is Format.JSON:
        print_json([_summary(name, entry) for name, entry in told])
        return
    for name, entry in told:
        row = loss_row(entry)
        typer.echo(f"{name}: {row.number} ({row.kind}, {row.topic}-{row.partition}) is {said}")
    typer.echo(counted(len(told), "entry", "entries"))


def _summary(name: str, entry: LedgerEntry) -> dict[str, Any]:
    loss = entry.loss
    return {
        "flow": name,
        "entry": loss.number,
        "kind": loss.kind,
        "source_topic": loss.source_topic,
        "partition": loss.partition,
    }


def _json(name: str, entry: LedgerEntry) -> dict[str, Any]:
    word = entry.acknowledgement
    return {
        "flow": name,
        "entry": entry.loss.number,
        **entry.loss.model_dump(mode="json", exclude={"apart"}),
        "outcome": entry.loss.outcome,
        "acknowledged": None if word is None else {"at_ms": word.at_ms, "by": word.by, "why": word.why},
    }


COLUMNS = ("WHEN", "FLOW", "ENTRY", "KIND", "PARTITION", "OFFSETS", "COUNT", "ACTION", "OUTCOME", "WHAT")


def _cells(name: str, entry: LedgerEntry) -> tuple[str, ...]:
    row = loss_row(entry)
    return (
        f"{datetime.fromtimestamp(row.at_ms / 1000):%Y-%m-%d %H:%M:%S}",
        name,
        row.number,
        row.kind,
        f"{row.topic}-{row.partition}",
        f"{row.first}-{row.first + row.offsets - 1}" if row.offsets else f"from {row.first}",
        f"{row.offsets:,}" if row.offsets else "-",
        row.action,
        row.outcome,
        row.words + (f" (acknowledged {row.acknowledged})" if row.acknowledged else ""),
    )


def _table(entries: Sequence[tuple[str, LedgerEntry]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in COLUMNS[:-1]:
        table.add_column(column, no_wrap=True)
    table.add_column(COLUMNS[-1])
    for name, entry in entries:
        table.add_row(*map(escape, _cells(name, entry)))
    return table
