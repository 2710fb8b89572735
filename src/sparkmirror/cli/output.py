"""`-o json`: what a verb prints, for programs."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer


class Format(StrEnum):
    """How a verb prints what it found."""

    TEXT = "text"
    JSON = "json"


Output = Annotated[Format, typer.Option("--output", "-o", help="How to print it.")]


def print_json(found: object) -> None:
    """One value, on standard output."""
    typer.echo(json.dumps(found, indent=2, ensure_ascii=False))


def print_line(found: object) -> None:
    """One value of many, on a line of its own."""
    typer.echo(json.dumps(found, ensure_ascii=False))
