"""`sparkmirror topics`: the topics' states, and the end of a migration.

`done` says that the writers of topics have moved to the target; `undo` takes this back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from sparkmirror.cli.control import Flow, chosen_flows
from sparkmirror.cli.groups import print_rows
from sparkmirror.cli.output import Format, Output, print_json
from sparkmirror.cli.published import Stale, fresh
from sparkmirror.cli.run import Clusters, File, Secrets, load
from sparkmirror.engine import snapshot
from sparkmirror.engine.snapshot import PartitionState
from sparkmirror.engine.status_topic import read_status
from sparkmirror.errors import ConfigError
from sparkmirror.policy import NamePatterns
from sparkmirror.sync.moved_writers import say_moved, take_back

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
    """Take `done` back: the mirror goes on copying the topics.

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


KEYS = ("topic", "target_topic", "partitions", "parked", "lag", "late", "records_per_s", "state", "reason")
"""Columns of `topics list`."""


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


def cells(row: dict[str, object]) -> tuple[str, ...]:
    """Return the row's columns as text; unknown values are `-`."""
    return tuple("-" if row[key] is None else str(row[key]) for key in KEYS)


def rows(flow: snapshot.Flow, age_s: float) -> list[dict[str, object]]:
    """Return a row for each topic."""
    return [
        {
            "flow": flow.flow,
            "age_s": round(age_s, 1),
            "topic": topic.topic,
            "target_topic": topic.target_topic,
            "partitions": len(topic.partitions),
            "parked": sum(partition.state is PartitionState.PARKED for partition in topic.partitions),
            "lag": _lag(topic),
            "late": topic.late if topic.released or topic.late else None,
            "records_per_s": round(sum(partition.records_per_s for partition in topic.partitions), 1),
            "state": state(topic),
            "reason": topic.refused
            or next((each.reason for each in topic.partitions if each.reason), "")
            or topic.late_words,
        }
        for topic in flow.topics
    ]


def state(topic: snapshot.Topic) -> str:
    """Return the topic's state in a word: the worst of the partitions' states."""
    if topic.refused or topic.gone or topic.released:
        return "refused" if topic.refused else "gone" if topic.gone else "released"
    there = {partition.state for partition in topic.partitions}
    worst = (PartitionState.PARKED, PartitionState.UNKNOWN, PartitionState.WAITING, PartitionState.PAUSED)
    return next((each.value for each in (*worst, PartitionState.RUNNING) if each in there), PartitionState.DONE.value)


def _lag(topic: snapshot.Topic) -> int | None:
    known = [partition.lag for partition in topic.partitions if partition.lag is not None]
    return sum(known) if len(known) == len(topic.partitions) else None


def chosen_topics(names: str) -> Callable[[str], bool]:
    """Return the test whether `--topics` chooses a topic.

    Raises `ConfigError` if `names` is empty or no list of patterns.
    """
    patterns = [pattern.strip() for pattern in names.split(",") if pattern.strip()]
    if not patterns:
        raise ConfigError("name the topics", origin="--topics", key=names)
    try:
        return NamePatterns(patterns).accepts
    except ValueError as error:
        raise ConfigError(str(error), origin="--topics") from error
