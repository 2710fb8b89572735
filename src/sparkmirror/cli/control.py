"""`sparkmirror pause`, `resume`, `retry`, `throttle`: orders to a running mirror.

The orders go through the control topics.
"""

from __future__ import annotations

import re
from typing import Annotated

import typer

from sparkmirror.cli.amounts import amount
from sparkmirror.cli.loading import Clusters, File, Flow, Secrets, load
from sparkmirror.cli.output import Format, Output
from sparkmirror.cli.telling import tell
from sparkmirror.errors import ConfigError
from sparkmirror.pump.messages.control import assert_patterns

_NAME = re.compile(r"[a-zA-Z0-9._-]+(:\d+)?")


def pause(
    file: File,
    topics: Annotated[
        str, typer.Option("--topics", help="Source topics (regular expressions, comma separated).")
    ] = ".*",
    flow: Flow = None,
    clusters: Clusters = None,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """Leave topics alone until `resume`.

    Replaces the topics that were paused before.

    Exit codes: 0 the mirror has the command, 2 the file or the command line is wrong, 3 the target can't be reached.

    Example: sparkmirror pause mm2.properties --topics orders.*,bills
    """
    patterns = [pattern.strip() for pattern in topics.split(",") if pattern.strip()]
    if not patterns:
        raise ConfigError("name the topics to pause; `resume` continues with all", origin="--topics", key=topics)
    assert_patterns(patterns, "--topics")
    said = f"paused {', '.join(patterns)}"
    tell(load(file, clusters, secrets=secrets), flow, lambda control: control.pause(patterns), said, output)


def resume(
    file: File,
    flow: Flow = None,
    clusters: Clusters = None,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """Continue with all paused topics.

    Exit codes: 0 the mirror has the command, 2 the file or the command line is wrong, 3 the target can't be reached.

    Example: sparkmirror resume mm2.properties
    """
    tell(load(file, clusters, secrets=secrets), flow, lambda control: control.pause([]), "resumed", output)


def retry(
    file: File,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Source topics, and partitions as `topic:number`.")
    ] = None,
    flow: Flow = None,
    clusters: Clusters = None,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """Try parked partitions and refused topics again now, after a repair.

    Without names all are tried. The mirror does so by itself, too, with pauses of up to five minutes.

    Exit codes: 0 the mirror has the command, 2 the file or the command line is wrong, 3 the target can't be reached.

    Example: sparkmirror retry mm2.properties orders stock:3
    """
    wanted = list(names or ())
    for name in wanted:
        if not _NAME.fullmatch(name):
            raise ConfigError("write a source topic, or a partition as topic:3", origin="NAME", key=name)
    said = f"tries {', '.join(wanted) or 'all that is parked or refused'} again"
    tell(load(file, clusters, secrets=secrets), flow, lambda control: control.try_again(wanted), said, output)


def throttle(
    file: File,
    rate: Annotated[str, typer.Argument(help="Bytes a second for a flow, such as 500K or 20M; or `off`.")],
    backfill: Annotated[
        str, typer.Option(help="Bytes a second, within that cap, for partitions that are far behind; or `off`.")
    ] = "off",
    flow: Flow = None,
    clusters: Clusters = None,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """Cap the bandwidth of running flows, at once.

    Exit codes: 0 the mirror has the command, 2 the file or the command line is wrong, 3 the target can't be reached.

    Example: sparkmirror throttle mm2.properties 20M --backfill 5M
    """
    limit, backfill_limit = _bytes_per_second(rate, "RATE"), _bytes_per_second(backfill, "--backfill")
    said = "no throttle" if limit is None else f"at most {limit:,.0f} bytes/s"
    said += "" if backfill_limit is None else f", at most {backfill_limit:,.0f} bytes/s of backfill"
    config = load(file, clusters, secrets=secrets)
    tell(config, flow, lambda control: control.throttle(limit, backfill_limit), said, output)


def _bytes_per_second(text: str, argument: str) -> float | None:
    if text.lower() == "off":
        return None
    return amount(text, argument, "write a number of bytes a second such as 500K or 20M, or off")
