"""`sparkmirror convert`: from one format into another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparkmirror.cli.logs import console, warn
from sparkmirror.cli.run import Secrets
from sparkmirror.errors import ConfigError, CopyIncomplete
from sparkmirror.formats import read
from sparkmirror.formats.convert import FORMATS
from sparkmirror.formats.convert import convert as converted

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="An mm2.properties file, a Strimzi KafkaMirrorMaker2 (.yaml), or connectors' JSON files with their"
        " worker's file, or a directory of these.",
    ),
]


def convert(
    files: Files,
    to: Annotated[str, typer.Option("--to", metavar="|".join(FORMATS), help="The format to write.")],
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="PATH", help="A file, or for connectors a directory; else it is printed."
        ),
    ] = None,
    secrets: Secrets = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if anything can't be said.")] = False,
) -> None:
    """Write FILE as mm2.properties, as connectors' JSON files, or as a Strimzi resource.

    What the other format can't say is listed on standard error, each with the reason. Exit codes: 0 written,
    1 written, but with --strict something was not said, 2 FILE is wrong.

    Example: sparkmirror convert mm2.properties --to strimzi > mirror.yaml
    """
    if to not in FORMATS:
        raise ConfigError(f"must be {' or '.join(FORMATS)}", where="--to", key=to)
    if to == "connectors" and output is None:
        raise ConfigError("these are several files: write --output DIR", where="--to", key=to)
    result = converted(read(files, secrets), to, secrets)
    for line in result.warnings:
        warn(line)
    for note in result.notes:
        console.print(f"not said: {note}", highlight=False, markup=False)
    if output is None:
        typer.echo("".join(result.files.values()), nl=False)
    else:
        _save({Path(output, name) if to == "connectors" else Path(output): text for name, text in result.files.items()})
    if strict and result.notes:
        raise CopyIncomplete(f"{len(result.notes)} things could not be said in {to}")


def _save(files: dict[Path, str]) -> None:
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "latin-1" if path.suffix == ".properties" else "utf-8")
        except OSError as error:
            raise ConfigError(f"can't be written: {error.strerror}", where="--output", key=str(path)) from None
