"""`sparkmirror lint`: mistakes found before they cost anything."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from sparkmirror.cli.loading import Files, Secrets
from sparkmirror.cli.output import Format, Output, print_json
from sparkmirror.config.formats import read
from sparkmirror.lint import Folded, check, check_clusters, folded, ranked

_COLOURS = {"error": "red", "warning": "yellow", "info": "blue"}


def lint(
    files: Files,
    connect: Annotated[
        bool,
        typer.Option(
            "--connect",
            help="Ask the clusters, too. One topic of sparkmirror's own is made at the target, and deleted.",
        ),
    ] = False,
    output: Output = Format.TEXT,
    timeout: Annotated[float, typer.Option("--timeout", metavar="S", help="Timeout of each cluster.")] = 15.0,
    secrets: Secrets = None,
) -> None:
    """Find the mistakes that users make, with their consequences and what to do.

    Exit codes: 0 no mistake, 1 a mistake, 2 FILE can't be read.

    Example: sparkmirror lint mm2.properties --connect
    """
    reading = read(files, secrets, partly=True, without_secrets=True)
    findings = check(reading)
    if connect:
        findings += check_clusters(reading, timeout)
    shown = folded(ranked(findings))
    if output is Format.JSON:
        print_json([dataclasses.asdict(finding) for finding in shown])
    else:
        for finding in shown:
            _show(finding)
    if any(finding.severity != "info" for finding in shown):
        raise typer.Exit(1)


def _show(finding: Folded) -> None:
    severity = typer.style(finding.severity, fg=_COLOURS[finding.severity])
    first, *others = finding.lines()
    typer.echo(f"{severity} [{finding.rule}] {first}")
    for line in others:
        typer.echo(line)
