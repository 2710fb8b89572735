"""`sparkmirror doctor`: a running mirror's faults, their causes, and what to do."""

from __future__ import annotations

import dataclasses
import threading
import time
from typing import Annotated

import typer

from sparkmirror.cli.loading import Clusters, File, Flow, Secrets, chosen_flows, load
from sparkmirror.cli.log_lines import plain
from sparkmirror.cli.output import Format, Output, print_json
from sparkmirror.cli.published import Stale
from sparkmirror.config import FlowConfig
from sparkmirror.errors import ConfigError
from sparkmirror.look.doctor.findings import Finding, Severity, diagnose
from sparkmirror.snapshot.snapshot import Process, Snapshot
from sparkmirror.snapshot.status_topic import INTERVAL_S, fresh, read_status

COLOURS = {Severity.CRITICAL: "red", Severity.WARNING: "yellow", Severity.NOTICE: "blue"}
WAIT_S = INTERVAL_S + 1.0
"""Seconds between two looks.

Long enough for the mirror to publish a new status in between.
"""
_ELSEWHERE = Process(host="", pid=0, version="", started_ms=0)
"""Stand-in for the process that published the status, which is unknown here."""


def doctor(
    file: File,
    flow: Flow = None,
    wait: Annotated[
        float, typer.Option("--wait", min=0.0, help="Seconds between two looks; some rules need a minute (70).")
    ] = WAIT_S,
    stale: Stale = 60.0,
    clusters: Clusters = None,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """Say what is wrong with the running mirror, why, and what to do.

    The worst comes first, and causes come before consequences.

    Exit codes: 0 no finding but notices, 1 a critical finding or a warning, 2 the file is wrong, 3 the
    target can't be reached, or nothing was published for longer than --stale seconds.

    Example: sparkmirror doctor mm2.properties --wait 70
    """
    if not wait <= threading.TIMEOUT_MAX:
        raise ConfigError("must be a number of seconds that can pass", origin="--wait", key=str(wait))
    flows = chosen_flows(load(file, clusters, secrets=secrets), flow)
    before = _look(flows, stale) if wait else None
    time.sleep(wait)
    now = _look(flows, stale)
    findings = diagnose(now, [before] if before is not None else [])
    if output is Format.JSON:
        print_json([dataclasses.asdict(finding) for finding in findings])
    else:
        for finding in findings:
            typer.echo(shown(finding))
        if not findings:
            typer.echo(f"nothing is wrong with {', '.join(each.name for each in flows)}")
    if any(finding.severity is not Severity.NOTICE for finding in findings):
        raise typer.Exit(1)


def shown(finding: Finding) -> str:
    """Return a finding in three lines: title and figures, cause, action."""
    severity = typer.style(finding.severity, fg=COLOURS[finding.severity])
    about = f"{finding.flow}: {finding.subject}" if finding.subject else finding.flow
    return "\n".join(
        (
            f"{severity} [{finding.rule}] {plain(about)}: {plain(finding.title)} ({plain(finding.evidence)})",
            f"  why: {plain(finding.cause)}",
            f"  do:  {plain(finding.action)}",
        )
    )


def _look(flows: list[FlowConfig], stale_s: float) -> Snapshot:
    seen = [fresh(flow, read_status(flow), stale_s)[0] for flow in flows]
    return Snapshot(_ELSEWHERE, max((flow.at_ms for flow in seen), default=0), tuple(seen))
