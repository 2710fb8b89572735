"""Tables of a flow's groups and topics, as text and JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import typer

from sparkmirror.cli.log_lines import plain
from sparkmirror.cli.output import Format, print_json
from sparkmirror.snapshot import snapshot


def print_rows(
    shown: Sequence[tuple[snapshot.Flow, float]],
    rows_of: Callable[[snapshot.Flow, float], list[dict[str, object]]],
    heads: tuple[str, ...],
    cells_of: Callable[[dict[str, object]], tuple[str, ...]],
    output: Format,
) -> None:
    """Print flows with their ages: all rows as JSON, or a table for each flow."""
    if output is Format.JSON:
        print_json([row for now, age_s in shown for row in rows_of(now, age_s)])
        return
    for now, age_s in shown:
        typer.echo(f"{now.flow}, {age_s:,.0f} s ago")
        typer.echo(lines([heads, *map(cells_of, rows_of(now, age_s))]))


def lines(table: list[tuple[str, ...]]) -> str:
    """Return a table as lines whose columns are as wide as their widest cell."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join(
        plain("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()) for row in table
    )
