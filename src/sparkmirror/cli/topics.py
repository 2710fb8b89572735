"""`sparkmirror topics`: the topics' states, and the end of a migration.

`done` says that the writers of topics have moved to the target; `undo` takes this back.
"""

from __future__ import annotations

from typing import Annotated

import typer

from sparkmirror.cli.loading import Clusters, File, Flow, Secrets, chosen_flows, chosen_topics, load
from sparkmirror.cli.output import Format, Output, print_json
from sparkmirror.cli.published import Stale
from sparkmirror.cli.tables import print_rows
from sparkmirror.cli.topic_rows import KEYS, cells, rows
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
    verify compares up to the noted ends.

    Exit codes: 0 the mirror has the command, 2 the file or the command line is wrong, 3 a cluster can't be reached.

    Example: sparkmirror topics done mm2.properties --topics orders.*
    """
    chosen = chosen_topics(names)
    flows = chosen_flows(load(file, clusters, secrets=secrets), flow)
    told = [{"flow": each.name, **moved._asdict()} for each in flows for moved in say_moved(each, chosen)]
    if not told:
        raise ConfigError("no topic that is copied matches", origin="--topics", key=names)
    if output is Format.JSON:
        print_json(told)
        return
    for row in told:
        ends = ", ".join(f"{partition}: {end:,}" for partition, end in sorted(row["ends"].items()))
        typer.echo(f"{row['flow']}: {row['topic']} is copied up to its end, then left alone (partition: offset {ends})")
        if row["expected"]:
            typer.echo(f"{row['flow']}: {row['topic']}: {row['expected']} entries of the loss ledger are expected now")


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

    Exit codes: 0 the mirror has the command, 2 the file or the command line is wrong, 3 the target can't be reached.

    Example: sparkmirror topics undo mm2.properties --topics orders.*
    """
    chosen = chosen_topics(names)
    flows = chosen_flows(load(file, clusters, secrets=secrets), flow)
    told = [{"flow": each.name, "topic": topic} for each in flows for topic in take_back(each, chosen)]
    if not told:
        raise ConfigError("no topic that was said to be done matches", origin="--topics", key=names)
    if output is Format.JSON:
        print_json(told)
        return
    for row in told:
        typer.echo(f"{row['flow']}: {row['topic']} is copied on")


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
