"""`sparkmirror status`: a line for each flow of the running mirror.

Reads the status that the mirror publishes at the flow's target.
"""

from __future__ import annotations

import time
from typing import Annotated

import typer

from sparkmirror.cli.loading import Clusters, File, Flow, Secrets, chosen_flows, load
from sparkmirror.cli.log_lines import plain
from sparkmirror.cli.output import Format, Output, print_json, print_line
from sparkmirror.look.doctor.flow_status import line, row
from sparkmirror.mirror.engine.flow_health import is_healthy
from sparkmirror.snapshot.status_topic import INTERVAL_S, fresh, read_status

UNHEALTHY_EXIT = 1


def status(
    file: File,
    flow: Flow = None,
    watch: Annotated[bool, typer.Option("--watch", help="Repeat every 5 s until stopped.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="For health checks: exit with 1 if a flow is unhealthy.")
    ] = False,
    stale: Annotated[
        float, typer.Option("--stale", min=1.0, help="Seconds after which a published status is too old.")
    ] = 60,
    clusters: Clusters = None,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """Show the state of a running mirror's flows.

    Works wherever the target can be read. With --check a flow is unhealthy if it is held up,
    incomplete, joining (it waits for its lease or a cluster), led to a wrong cluster or unreachable
    (a cluster does not answer), if it has nothing to copy or a pattern of topics that can hardly be
    meant so, if a partition is parked or an open transaction holds it back, or a topic is refused,
    if records came after their writers had moved and are not copied, or if records are lost, or may
    be, and no operator has acknowledged it (`losses ack`).

    Exit codes: 0 shown (--check: healthy), 1 a flow is unhealthy (--check), 2 the file is wrong, 3
    the target can't be reached, or nothing was published for longer than --stale seconds.

    Example: sparkmirror status mm2.properties --check
    """
    config = load(file, clusters, secrets=secrets)
    if not config.flows and flow is None:  # healthy: an image's health check asks this
        print_json([]) if output is Format.JSON else typer.echo("no flow, only heartbeats")
        return
    flows = chosen_flows(config, flow)
    while True:
        shown = [fresh(each, read_status(each), stale) for each in flows]
        if output is Format.TEXT:
            for now, age_s in shown:
                typer.echo(plain(line(now, age_s)))
        else:
            (print_line if watch else print_json)([row(now, age_s) for now, age_s in shown])
        if not watch:
            break
        time.sleep(INTERVAL_S)
    if check and not all(is_healthy(now) for now, _ in shown):
        raise typer.Exit(UNHEALTHY_EXIT)
