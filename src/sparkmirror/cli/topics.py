"""`sparkmirror topics done` and `undo`: topics whose writers have moved to the target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from sparkmirror.cli.control import Flow, chosen_flows
from sparkmirror.cli.output import Format, Output, print_json
from sparkmirror.cli.run import Clusters, File, Secrets, load
from sparkmirror.errors import ConfigError
from sparkmirror.policy import NamePatterns
from sparkmirror.sync.moved_writers import say_moved, take_back

topics = typer.Typer(no_args_is_help=True, help="Topics at the end of a migration.")

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

    Where the topics end at the source is noted: the mirror, running or not, copies them up to there
    and then leaves them alone. What the writers write to the copies is no loss, and verify compares
    up to the noted ends.

    Exit codes: 0 said, 2 the file or the command line is wrong, 3 a cluster can't be reached.

    Example: sparkmirror topics done mm2.properties --topics orders.*
    """
    chosen = _chosen(names)
    flows = chosen_flows(load(file, clusters, secrets=secrets), flow)
    told = [{"flow": one.name, **moved._asdict()} for one in flows for moved in say_moved(one, chosen)]
    if not told:
        raise ConfigError("no topic that is copied matches", where="--topics", key=names)
    if output is Format.JSON:
        print_json(told)
        return
    for one in told:
        ends = ", ".join(f"{partition}: {end:,}" for partition, end in sorted(one["ends"].items()))
        typer.echo(f"{one['flow']}: {one['topic']} is copied up to its end, then left alone (partition: offset {ends})")
        if one["expected"]:
            typer.echo(f"{one['flow']}: {one['topic']}: {one['expected']} entries of the loss ledger are no losses now")


@topics.command()
def undo(
    file: File,
    names: Topics,
    flow: Flow = None,
    clusters: Clusters = None,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """Take `done` back: the mirror goes on copying the topics.

    Exit codes: 0 said, 2 the file or the command line is wrong, 3 the target can't be reached.

    Example: sparkmirror topics undo mm2.properties --topics orders.*
    """
    chosen = _chosen(names)
    flows = chosen_flows(load(file, clusters, secrets=secrets), flow)
    told = [{"flow": one.name, "topic": topic} for one in flows for topic in take_back(one, chosen)]
    if not told:
        raise ConfigError("no topic that was said to be done matches", where="--topics", key=names)
    if output is Format.JSON:
        print_json(told)
        return
    for one in told:
        typer.echo(f"{one['flow']}: {one['topic']} is copied on")


def _chosen(names: str) -> Callable[[str], bool]:
    patterns = [pattern.strip() for pattern in names.split(",") if pattern.strip()]
    if not patterns:
        raise ConfigError("name the topics", where="--topics", key=names)
    try:
        return NamePatterns(patterns).accepts
    except ValueError as error:
        raise ConfigError(str(error), where="--topics") from error
