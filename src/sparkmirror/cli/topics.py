"""`sparkmirror topics`: the topics' states, and the end of a migration.

`done` says that the writers of topics have moved to the target; `undo` takes this back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from sparkmirror.cli.loading import Clusters, File, Flow, Secrets, chosen_flows, chosen_topics, load, only_flow
from sparkmirror.cli.output import Format, Output, print_json
from sparkmirror.cli.published import Stale
from sparkmirror.cli.tables import print_rows
from sparkmirror.cli.topic_rows import KEYS, cells, rows
from sparkmirror.config import FlowConfig, MirrorConfig
from sparkmirror.errors import ConfigError
from sparkmirror.mirror.sync.moved_writers import say_moved, take_back
from sparkmirror.snapshot.status_topic import fresh, read_status

topics = typer.Typer(no_args_is_help=True, help="Topics: their state, and the end of a migration.")

Topics = Annotated[
    str, typer.Option("--topics", metavar="REGEXES", help="Source topics (regular expressions, comma separated).")
]


@topics.command()
def done(
    file: File,
    names: Topics,
    flow: Flow = None,
    clusters: Clusters = None,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """Say that the writers of topics have moved to the target.

    Notes the topics' ends at the source: the mirror, running or not, copies up to these ends and
    then leaves the topics alone. Records that the writers write to the copies are no loss, and
    verify compares up to the noted ends. Said again, also after the flow's turn, late records stay
    at the source.

    Exit codes: 0 the mirror has the command, 1 it is not the flow's turn, or the source's logs are not at rest, 2 the
    file or the command line is wrong, 3 a cluster can't be reached.

    Example: sparkmirror topics done mm2.properties --topics orders.*
    """
    chosen, takes_turns = chosen_topics(names), False
    told: list[dict[str, Any]] = []
    try:
        for each in _flows(load(file, clusters, secrets=secrets), flow):
            takes_turns |= bool(each.turn)
            told.extend({"flow": each.name, **moved._asdict()} for moved in say_moved(each, chosen))
    finally:  # a flow or a topic may fail: what was told before is in force
        if told:
            _print_done(told, output, takes_turns=takes_turns)
    if not told:
        raise ConfigError("no topic that is copied matches", origin="--topics", key=names)


def _flows(config: MirrorConfig, flow: str | None) -> list[FlowConfig]:
    """Return the chosen flows.

    A flow that takes turns is chosen by name where there are several, as one of two is live. Raises `ConfigError`.
    """
    flows = chosen_flows(config, flow)
    if any(each.turn for each in flows):
        only_flow(config, flow)
    return flows


def _print_done(told: Sequence[Mapping[str, Any]], output: Format, *, takes_turns: bool) -> None:
    """Print notes; a flow that takes turns tells new topics after its turn only."""
    if output is Format.JSON:
        print_json(told)
        return
    for row in told:
        what = f"{row['flow']}: {row['topic']}"
        if row["recreated"]:
            then = "; nor is it copied, as it is not the flow's turn" if takes_turns else ": topics undo copies it"
            typer.echo(f"{what} was created again at the source, so nothing is accepted{then}")
            continue
        typer.echo(f"{what} is copied up to its end, then left alone (partition: offset {_offsets(row['ends'])})")
        if row["accepted"]:
            came = _offsets(row["accepted"])
            typer.echo(f"{what}: what came later up to here stays at the source (partition: offset {came})")
        if row["expected"]:
            typer.echo(f"{what}: {row['expected']} entries of the loss ledger are expected now")


def _offsets(by_partition: Mapping[int, int]) -> str:
    return ", ".join(f"{partition}: {offset:,}" for partition, offset in sorted(by_partition.items()))


@topics.command()
def undo(
    file: File,
    names: Topics,
    flow: Flow = None,
    clusters: Clusters = None,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """Take `done` back: the mirror continues copying the topics.

    Exit codes: 0 the mirror has the command, 1 it is not the flow's turn, 2 the file or the command line is wrong, 3 a
    cluster can't be reached.

    Example: sparkmirror topics undo mm2.properties --topics orders.*
    """
    chosen = chosen_topics(names)
    told: list[dict[str, str]] = []
    try:
        for each in _flows(load(file, clusters, secrets=secrets), flow):
            told.extend({"flow": each.name, "topic": topic} for topic in take_back(each, chosen))
    finally:  # as `done`
        if told and output is Format.JSON:
            print_json(told)
        elif told:
            for row in told:
                typer.echo(f"{row['flow']}: {row['topic']} is copied on")
    if not told:
        raise ConfigError("no topic that was said to be done matches", origin="--topics", key=names)


@topics.command("list")
def list_topics(
    file: File,
    flow: Flow = None,
    stale: Stale = 60.0,
    clusters: Clusters = None,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """List the copied topics: partitions, state, lag, late records and rate.

    Exit codes: 0 the list is printed, 2 the file is wrong, 3 the target can't be reached, or nothing
    was published for longer than --stale seconds.

    Example: sparkmirror topics list mm2.properties
    """
    flows = chosen_flows(load(file, clusters, secrets=secrets), flow)
    shown = [fresh(each, read_status(each), stale) for each in flows]
    print_rows(shown, rows, tuple(key.upper().replace("_", "-") for key in KEYS), cells, output)
