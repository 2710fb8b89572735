"""`sparkmirror config`: the settings that a file results in."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from sparkmirror.cli.flow_checks import check_flows
from sparkmirror.cli.loading import Clusters, File, Secrets, Spark, spark_overrides, wanted_clusters
from sparkmirror.cli.logs import warn
from sparkmirror.cli.output import Format, Output, print_json
from sparkmirror.config.formats import model_of, read
from sparkmirror.errors import ConfigError
from sparkmirror.mirror.sync.topic_rules import group_filter, topic_rules

_WIDEST = 48
"""Widest column in characters.

A longer value pushes the rest of its line to the right.
"""


def config(
    file: File,
    more_clusters: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    clusters: Clusters = None,
    spark: Spark = None,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """Print the settings that count for each flow of FILE, and their origin.

    Secrets are masked. A line has a flow, a key, the value, and the key that set the value or
    "default"; in a pipe, tabs are between them. Warnings go to standard error.

    Exit codes: 0 the file can be run, 2 the file is wrong.

    Example: sparkmirror config mm2.properties
    """
    if more_clusters and not clusters:
        raise ConfigError("one file only; clusters go after --clusters", origin="command line", key=more_clusters[0])
    wanted = wanted_clusters([*(clusters or ()), *(more_clusters or ())])
    reading = read([file], secrets, without_secrets=True)
    model, values = model_of(reading, clusters=wanted, overrides=spark_overrides(spark))
    for flow in model.flows:
        # Unusable patterns and classes stop a run at its start, so this verb must report them, too.
        topic_rules(flow)
        group_filter(flow)
    for line in model.warnings:
        warn(line)
    check_flows(reading, model, values, wanted)
    if output is Format.JSON:
        print_json([dataclasses.asdict(value) for value in values])
        return
    rows = [
        (value.flow, value.key, value.value, f"{value.where} ({value.note})" if value.note else value.where)
        for value in values
    ]
    for line in _aligned(rows) if sys.stdout.isatty() else map("\t".join, rows):
        typer.echo(line)


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [min(max(map(len, column)), _WIDEST) for column in zip(*rows, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
