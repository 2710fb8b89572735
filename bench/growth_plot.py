"""The picture of how cost grows, as SVG: a row for each thing that grows, a column for each figure.

`python -m bench.growth_plot FILE.json > docs/pictures/growth.svg` draws it anew from a run's figures.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

Row = Mapping[str, Any]
"""A size on real brokers, as the run's file has it."""

WIDTH, HEIGHT, LEFT, TOP, GAP = 168, 96, 116, 40, 30
"""Of a panel, before the first one, and between two, in pixels."""
_INSIDE = 14
_INK, _PALE, _LINE = "#24292f", "#d0d7de", "#0969da"


class Column(NamedTuple):
    """One figure of each size."""

    title: str
    figure: Callable[[Row], float]
    form: str


class Growing(NamedTuple):
    """What grows from left to right, all else being equal."""

    title: str
    x: str
    """Field of the size."""
    rows: Sequence[Row]


COLUMNS = (
    Column("start to all copied, s", lambda row: row["copied_s"], ".0f"),
    Column("idle, % of a core", lambda row: row["cores"] * 100, ".1f"),
    Column("peak memory, MB", lambda row: row["peak_memory_bytes"] / 1e6, ",.0f"),
    Column("a plan, CPU ms", lambda row: row["planned_s"] * 1e3, ",.1f"),
    Column("a scrape, ms", lambda row: row["scrape_s"] * 1e3, ",.1f"),
)


def plot(rows: Sequence[Row]) -> str:
    """Draw all sizes on real brokers."""
    lines = [line for line in _lines(rows) if len(line.rows) > 1]
    width = LEFT + len(COLUMNS) * (WIDTH + GAP)
    height = TOP + len(lines) * (HEIGHT + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="10" fill="{_INK}">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for number, column in enumerate(COLUMNS):
        parts.append(_text(LEFT + number * (WIDTH + GAP) + WIDTH / 2, TOP - 20, column.title, bold=True))
    for row, line in enumerate(lines):
        top = TOP + row * (HEIGHT + GAP)
        for at, words in enumerate(line.title.split("\n")):
            parts.append(_text(LEFT - 16, top + HEIGHT / 2 + 12 * at, words, "end", bold=not at))
        for number, column in enumerate(COLUMNS):
            parts += _panel(LEFT + number * (WIDTH + GAP), top, line, column)
    return "\n".join((*parts, "</svg>")) + "\n"


def _lines(rows: Sequence[Row]) -> list[Growing]:
    counts = [row["size"]["partitions"] for row in rows]
    usual = max(counts, key=counts.count, default=0)
    at = f"{usual:,} partitions"

    def those(**fixed: int) -> list[Row]:
        return [row for row in rows if all(row["size"][name] == value for name, value in fixed.items())]

    def along(name: str, among: list[Row]) -> list[Row]:
        return sorted(among, key=lambda row: int(row["size"][name]))

    clustered = [row for row in those(partitions=usual, flows=1) if row["size"]["workers"]]
    return [
        Growing("partitions\n1 task, 1 flow", "partitions", along("partitions", those(tasks=1, flows=1, workers=0))),
        Growing(f"tasks.max\n{at}", "tasks", along("tasks", those(partitions=usual, flows=1, workers=0))),
        Growing("Spark workers\nas many tasks", "workers", along("workers", clustered)),
    ]


def _panel(left: float, top: float, line: Growing, column: Column) -> list[str]:
    xs = [math.log(row["size"][line.x]) for row in line.rows]
    values = [column.figure(row) for row in line.rows]
    width, most = (max(xs) - min(xs)) or 1.0, max(values) or 1.0
    dots = [
        (
            left + _INSIDE + (x - min(xs)) / width * (WIDTH - 2 * _INSIDE),
            top + HEIGHT - value / most * (HEIGHT - 2 * _INSIDE),
        )
        for x, value in zip(xs, values, strict=True)
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in dots)
    parts = [
        f'<path d="M{left} {top} V{top + HEIGHT} H{left + WIDTH}" fill="none" stroke="{_PALE}"/>',
        f'<polyline points="{path}" fill="none" stroke="{_LINE}" stroke-width="1.5"/>',
    ]
    for (x, y), value, row in zip(dots, values, line.rows, strict=True):
        parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{_LINE}"/>',
            _text(x, y - 5, format(value, column.form)),
            _text(x, top + HEIGHT + 12, f"{row['size'][line.x]:,}"),
        ]
    return parts


def _text(x: float, y: float, words: str, anchor: str = "middle", *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{weight}>{words}</text>'


if __name__ == "__main__":
    sys.stdout.write(plot(json.loads(Path(sys.argv[1]).read_text())["growth"]["real"]))
