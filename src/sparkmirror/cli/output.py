"""`-o json`, a verb's output for programs, and the version."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from sparkmirror import __version__


class Format(StrEnum):
    """Format of a verb's output."""

    TEXT = "text"
    JSON = "json"


Output = Annotated[Format, typer.Option("--output", "-o", help="Format of the output.")]


def print_json(value: object) -> None:
    """Print a single value on standard output."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_version(wanted: bool) -> None:
    """Print the version, and end the program, if the option `--version` is given."""
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


def print_line(value: object) -> None:
    """Print a value on a line of its own, for verbs with many values."""
    typer.echo(json.dumps(value, ensure_ascii=False))
