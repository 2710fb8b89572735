"""Verbs of `sparkmirror migration` that change nothing: `check`."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Annotated

import typer

from sparkmirror.cli.loading import Secrets
from sparkmirror.cli.log_lines import plain
from sparkmirror.cli.output import Format, Output, print_json
from sparkmirror.look.doctor.rule import counted
from sparkmirror.migrate.checks import CheckResult, CheckVerdict
from sparkmirror.migrate.migration import Migration

MigrationPath = Annotated[str, typer.Argument(metavar="FILE", help="The migration's file (docs/migrate.md).")]
SetName = Annotated[str | None, typer.Option("--set", help="Only this set.")]

_COLOURS = {CheckVerdict.WARN: "yellow", CheckVerdict.FAIL: "red", CheckVerdict.UNKNOWN: "blue"}


def check(file: MigrationPath, name: SetName = None, secrets: Secrets = None, output: Output = Format.TEXT) -> None:
    """Check what a switch needs, before it begins.

    Each check has a fixed name (docs/migrate.md). One topic of sparkmirror's own is made at each target,
    and deleted.

    Exit codes: 0 no check fails, 1 a check fails, 2 a file is wrong, 3 a cluster can't be reached.

    Example: sparkmirror migration check migration.yaml --set shop
    """
    with Migration.load(file, secrets) as one:
        results = one.check(name)
    if output is Format.JSON:
        print_json([dataclasses.asdict(result) for result in results])
    else:
        _show(results)
    if any(result.verdict is CheckVerdict.FAIL for result in results):
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
