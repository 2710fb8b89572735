"""`sparkmirror offsets translate`: stored offsets for the other cluster."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from sparkmirror.cli.loading import Clusters, File, Flow, Secrets, load, only_flow
from sparkmirror.cli.output import Format, Output, print_json
from sparkmirror.cli.positions import System, positions
from sparkmirror.config import FlowConfig
from sparkmirror.errors import ConfigError
from sparkmirror.mirror.sync.application_translator import Stored, Translation
from sparkmirror.mirror.sync.turn_translator import translator_of

COLUMNS = "topic", "partition", "offset"
ADDED = "translated_topic", "translated_offset"
_EXIT_UNTRANSLATED = 1

offsets = typer.Typer(no_args_is_help=True, help="Offsets of both clusters.")


@offsets.callback()
def _verbs() -> None:
    """Keep `translate` a verb of its own, even as the only verb."""


@offsets.command()
def translate(
    file: File,
    topic: Annotated[str, typer.Option("--topic", help="Topic's name at the cluster of the offset.")] = "",
    partition: Annotated[int, typer.Option("--partition", min=0)] = 0,
    offset: Annotated[int | None, typer.Option("--offset", min=0, help="Offset of the next record to read.")] = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="From the target's offsets to the source's.")] = False,
    table: Annotated[
        Path | None,
        typer.Option("--csv", help="File with columns topic, partition, offset: printed with two more."),
    ] = None,
    system: Annotated[
        System | None,
        typer.Option("--for", help="Print the offsets as a Connect sink's REST body, or as Flink's starting offsets."),
    ] = None,
    flow: Flow = None,
    clusters: Clusters = None,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """Translate an application's stored offsets to the other cluster, exactly.

    For an application that keeps its own offsets: prints the topic, partition and offset at which
    the application continues there; for a table, the table with two columns more; with --for, what
    that system takes.

    Exit codes: 0 all translated, 1 some offsets could not be (each is named), 2 the file or the command
    line is wrong, 3 the target can't be reached.

    Example: sparkmirror offsets translate mm2.properties --topic orders --partition 3 --offset 1200
    """
    if (table is None) == (offset is None) or (offset is not None and not topic):
        raise ConfigError("give --topic, --partition and --offset, or --csv", origin="command line")
    only = only_flow(load(file, clusters, secrets=secrets), flow)
    if table is not None:
        complete = _translate_table(only, table, reverse, output, system)
    else:
        stored = [Stored(topic, partition, offset or 0)]
        translations = _translated(only, stored, reverse)
        complete = _name_missing(stored, translations)
        if system is not None:
            typer.echo(positions(system, translations))
        elif output is Format.JSON:
            print_json([translation._asdict() for translation in translations])
        for translation in translations if output is Format.TEXT and system is None else ():
            if translation.offset is not None:
                typer.echo(f"{translation.topic} {translation.partition} {translation.offset}")
    if not complete:
        raise typer.Exit(_EXIT_UNTRANSLATED)


def _translate_table(flow: FlowConfig, path: Path, reverse: bool, output: Format, system: System | None) -> bool:
    """Print the table with two columns more; return True if each row has an offset."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as lines:
            reader = csv.DictReader(lines)
            names = list(reader.fieldnames or ())
            if not set(COLUMNS) <= set(names):
                first = f"its first line is {','.join(names)}" if names else "it is empty"
                reason = f"it needs the columns {', '.join(COLUMNS)}, with commas between them; {first}"
                raise ConfigError(reason, origin=str(path))
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"can't be read: {why}", origin=str(path)) from error
    stored = [_stored(row, f"{path}, line {number}") for number, row in enumerate(rows, 2)]
    translations = _translated(flow, stored, reverse)
    values = [(translation.topic, translation.offset) for translation in translations]
    translated = [{**row, **dict(zip(ADDED, added, strict=True))} for row, added in zip(rows, values, strict=True)]
    if system is not None:
        typer.echo(positions(system, translations))
    elif output is Format.JSON:
        print_json(translated)
    else:
        writer = csv.DictWriter(sys.stdout, [*names, *ADDED], extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(translated)
    return _name_missing(stored, translations)


def _stored(row: dict[str, str], line: str) -> Stored:
    try:
        stored = Stored(row["topic"], int(row["partition"]), int(row["offset"]))
    except (TypeError, ValueError):
        raise ConfigError("partition and offset must be whole numbers", origin=line) from None
    if not stored.topic or stored.partition < 0 or stored.offset < 0:
        raise ConfigError("a topic, and a partition and an offset of at least 0, are needed", origin=line)
    return stored


def _translated(flow: FlowConfig, stored: Sequence[Stored], reverse: bool) -> list[Translation]:
    with translator_of(flow) as translator:
        return translator.translate_each(stored, reverse=reverse)


def _name_missing(stored: Sequence[Stored], translations: Sequence[Translation]) -> bool:
    """Print a line for each missing translation; return True if none is missing."""
    missing = [
        (entry, translation.reason)
        for entry, translation in zip(stored, translations, strict=True)
        if translation.offset is None
    ]
    for entry, reason in missing:
        typer.echo(f"{entry.topic}-{entry.partition} at {entry.offset}: {reason}", err=True)
    return not missing
