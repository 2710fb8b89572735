"""`sparkmirror convert`: from one format to another."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from sparkmirror.cli.loading import Files, Secrets
from sparkmirror.cli.logs import console, warn
from sparkmirror.cli.output import Format, Output, print_json
from sparkmirror.config.formats import read
from sparkmirror.config.formats.convert import FORMATS
from sparkmirror.config.formats.convert import convert as converted
from sparkmirror.config.formats.fill import Filling
from sparkmirror.errors import ConfigError, CopyIncomplete


def convert(
    files: Files,
    to: Annotated[str, typer.Option("--to", metavar="|".join(FORMATS), help="The format to write.")],
    write: Annotated[
        str | None,
        typer.Option(
            "--write",
            "-w",
            metavar="PATH",
            help="A file, or for connectors a directory; else it is printed, but for connectors.",
        ),
    ] = None,
    secrets: Secrets = None,
    fill: Annotated[
        bool, typer.Option("--fill", help="Put environment variables in for each ${NAME}; ${provider:...} stays.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if a setting has no place in the other format.")
    ] = False,
    output: Output = Format.TEXT,
) -> None:
    """Write FILE as mm2.properties, connectors' JSON files or a Strimzi resource.

    Settings that the other format can't say are listed on standard error, each with the reason.

    Exit codes: 0 written, 1 written, but with --strict a setting was lost, 2 FILE is wrong.

    Example: sparkmirror convert mm2.properties --to strimzi > mirror.yaml
    """
    if to not in FORMATS:
        raise ConfigError(f"must be {' or '.join(FORMATS)}", origin="--to", key=to)
    if to == "connectors" and write is None and output is Format.TEXT:
        raise ConfigError("connectors are several files: write --write DIR", origin="--to", key=to)
    filling = Filling(os.environ if fill else {})
    try:
        reading = read(files, secrets, without_secrets=True, filling=filling if fill else None)
        result = converted(reading, to, secrets)
    except ConfigError as error:
        raise filling.hidden_error(error) from None
    for line in result.warnings:
        warn(filling.hidden(line))
    told = [filling.hidden_note(note) for note in result.notes]
    for note in told:
        console.print(f"no place in the other format: {note}", highlight=False, markup=False)
    written = {_path(write, name, to): text for name, text in result.files.items()}
    if write is not None:
        _save(written)
    if output is Format.JSON:
        notes = [{"file": note.path, "line": note.line, "key": note.key, "reason": note.reason} for note in told]
        print_json({"files": {str(path): text for path, text in written.items()}, "not_said": notes})
    elif write is None:
        typer.echo("".join(written.values()), nl=False)
    if strict and told:
        raise CopyIncomplete(f"{len(told)} settings have no place in {to}")


def _path(write: str | None, name: str, to: str) -> Path:
    if write is None:
        return Path(name)
    return Path(write, name) if to == "connectors" else Path(write)


def _save(files: dict[Path, str]) -> None:
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)  # the text may hold passwords; an existing file keeps its mode
            path.write_text(text, "latin-1" if path.suffix == ".properties" else "utf-8")
        except OSError as error:
            raise ConfigError(f"can't be written: {error.strerror}", origin="--write", key=str(path)) from None
