"""Verbs of `sparkmirror migration` that only look."""

from __future__ import annotations

import dataclasses
from collections import Counter
from contextlib import closing
from typing import Annotated

import typer
import yaml

from sparkmirror.cli.loading import Secrets, load
from sparkmirror.cli.log_lines import plain
from sparkmirror.cli.output import Format, Output, print_json
from sparkmirror.cli.rehearsal_lines import rehearsal_lines, rehearsal_rows
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.look.doctor.rule import counted
from sparkmirror.migrate.atomic_sets import atomic_sets
from sparkmirror.migrate.checks import CheckResult, CheckVerdict
from sparkmirror.migrate.file import json_schema
from sparkmirror.migrate.migration import Migration
from sparkmirror.migrate.new_file import look, new_file
from sparkmirror.migrate.observation import Side
from sparkmirror.migrate.pair import ROLE, begins
from sparkmirror.migrate.rehearsal import RECORDS, Rehearsed

MigrationPath = Annotated[
    str,
    typer.Argument(
        metavar="FILE", help="The migration's file (docs/migrate.md); its mirror may be a Strimzi KafkaMirrorMaker2."
    ),
]
SetName = Annotated[str | None, typer.Option("--set", help="Only this set.")]

_COLOURS = {CheckVerdict.WARN: "yellow", CheckVerdict.FAIL: "red", CheckVerdict.UNKNOWN: "blue"}


def check(file: MigrationPath, name: SetName = None, secrets: Secrets = None, output: Output = Format.TEXT) -> None:
    """Check what a switch needs, before it begins.

    Each check has a fixed name (docs/migrate_checks.md). One topic of sparkmirror's own is made at each target,
    and deleted.

    Exit codes: 0 no check fails, 1 a check fails, 2 a file is wrong, 3 a cluster can't be reached.

    Example: sparkmirror migration check migration.yaml --set shop
    """
    with Migration.load(file, secrets) as moving:
        results = moving.check(name)
    if output is Format.JSON:
        print_json([dataclasses.asdict(result) for result in results])
    else:
        _show(results)
    if any(result.verdict is CheckVerdict.FAIL for result in results):
        raise typer.Exit(1)


def new(
    mirror: Annotated[
        str,
        typer.Argument(
            metavar="MIRROR", help="The mirror's file, as `sparkmirror run` takes it; also a Strimzi KafkaMirrorMaker2."
        ),
    ],
    flow: Annotated[str | None, typer.Option("--flow", help="The flow to begin with, as SOURCE->TARGET.")] = None,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """Print a first migration file, written from what the clusters show.

    Topics that groups read in common, or that a transaction ties, are in one set. Read it before you use it.

    Exit codes: 0 printed, 2 the file is wrong, 3 a cluster can't be reached.

    Example: sparkmirror migration new mm2.properties > migration.yaml
    """
    config = load(mirror, None, secrets=secrets)
    first = begins(config, flow or "", "--flow")
    with closing(ClusterClient(first.source, ROLE)) as client:
        ties = [each.topics for each in atomic_sets(client).sets]
    text = new_file(mirror, look(first), flow=first.name if len(config.flows) > 1 else "", ties=ties)
    if output is Format.JSON:
        print_json(yaml.safe_load(text))
    else:
        typer.echo(text, nl=False)


def schema(output: Output = Format.JSON) -> None:
    """Print the JSON Schema of a migration's file, for editors.

    Exit codes: 0 always.

    Example: sparkmirror migration schema > migration-1.json
    """
    print_json(json_schema())


def plan(file: MigrationPath, secrets: Secrets = None, output: Output = Format.TEXT) -> None:
    """Show changes at the target, the rest to copy, and work for people.

    Exit codes: 0 shown, 2 a file is wrong, 3 a cluster can't be reached.

    Example: sparkmirror migration plan migration.yaml
    """
    with Migration.load(file, secrets) as moving:
        changes = moving.changes()
    if output is Format.JSON:
        print_json(changes.to_json())
    else:
        for line in changes.lines():
            typer.echo(plain(line))


def rehearse(
    file: MigrationPath,
    name: SetName = None,
    group: Annotated[list[str] | None, typer.Option("--group", help="Only this group; may be repeated.")] = None,
    records: Annotated[int, typer.Option("--records", min=1, help="Records to compare for each partition.")] = RECORDS,
    back: Annotated[bool, typer.Option("--back", help="Rehearse the way back to the source.")] = False,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """Compare the next records of each group on both sides, as if it moved now.

    Nothing is joined, and no offset is set. Groups may run; records that are not copied yet are waited for.

    Exit codes: 0 all records are equal, 1 a record differs, is not copied in time, or can't be compared, 2 a file
    is wrong, 3 a cluster can't be reached.

    Example: sparkmirror migration rehearse migration.yaml --group billing
    """
    to = Side.SOURCE if back else Side.TARGET
    with Migration.load(file, secrets) as moving:
        result = moving.rehearse(name, group or (), records, to)
        there = moving.pair.configs[to].alias
    if output is Format.JSON:
        print_json(rehearsal_rows(result))
    else:
        for line in rehearsal_lines(result, there):
            typer.echo(plain(line))
    if result.refused or result.not_copied or any(each.result is not Rehearsed.EQUAL for each in result.partitions):
        raise typer.Exit(1)


def _show(results: list[CheckResult]) -> None:
    if not results:
        typer.echo("all sets are complete: nothing is left to check")
        return
    width = max(len(result.id) for result in results)
    for result in results:
        word = result.verdict.upper() if result.verdict is CheckVerdict.FAIL else str(result.verdict)
        shown = typer.style(f"{word:<7}", fg=_COLOURS.get(result.verdict))
        typer.echo(f"  {shown} {result.id:<{width}}  {plain(result.words)}")
        if result.remedy:
            typer.echo(f"  {'':<7} {'':<{width}}  do: {plain(result.remedy)}")
    counts = Counter(result.verdict for result in results)
    told = [f"{counts[CheckVerdict.OK]} ok"]
    for verdict, noun in ((CheckVerdict.WARN, "warning"), (CheckVerdict.FAIL, "failure")):
        if counts[verdict]:
            told.append(counted(counts[verdict], noun))
    if counts[CheckVerdict.UNKNOWN]:
        told.append(f"{counts[CheckVerdict.UNKNOWN]} unknown")
    end = "You can't switch yet." if counts[CheckVerdict.FAIL] else "You can switch."
    typer.echo(f"{counted(len(results), 'check')}: {', '.join(told)}. {end}")
