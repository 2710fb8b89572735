"""What the charts hold of other files: the tables of values in their READMEs, alerts, dashboard and licence.

`python -m tests.deploy.chart_pages` writes them again. A table has a row for each comment of values.yaml that begins
with two dashes, as helm-docs has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import yaml
from tests.deploy.terraform import DEPLOY

CHARTS = DEPLOY / "helm"
NAMES = ("sparkmirror", "sparkmirror-operator")
LICENSE = DEPLOY.parent / "LICENSE"
HELD = {
    "sparkmirror/LICENSE": LICENSE,
    "sparkmirror-operator/LICENSE": LICENSE,
    "sparkmirror/files/alerts.yml": DEPLOY / "prometheus" / "alerts.yml",
    "sparkmirror/files/recording.yml": DEPLOY / "prometheus" / "recording.yml",
    "sparkmirror/files/sparkmirror.json": DEPLOY / "grafana" / "dashboards" / "sparkmirror.json",
}
"""Copies, by their place below `deploy/helm`: Helm packs no file from outside of a chart."""
BEGIN, END = "<!-- BEGIN VALUES -->", "<!-- END VALUES -->"


class Value(NamedTuple):
    """A row of the table."""

    path: str
    default: Any
    note: str


def values(chart: str) -> dict[str, Any]:
    """Return the chart's defaults."""
    read: dict[str, Any] = yaml.safe_load((CHARTS / chart / "values.yaml").read_text())
    return read


def described(chart: str) -> Iterator[Value]:
    """Yield the values that have a comment, in the file's order."""
    defaults = values(chart)
    path: list[str] = []
    note = ""
    for line in (CHARTS / chart / "values.yaml").read_text().splitlines():
        if comment := re.fullmatch(r" *# -- (.+)", line):
            note = comment[1]
        elif key := re.match(r"( *)([A-Za-z]\w*):", line):
            path = [*path[: len(key[1]) // 2], key[2]]
            if note:
                yield Value(".".join(path), _at(defaults, path), note)
            note = ""


def _at(tree: Mapping[str, Any], path: list[str]) -> Any:
    found: Any = tree
    for name in path:
        found = found[name]
    return found


def leaves(tree: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield the paths of values that are no maps, or empty ones."""
    for name, below in tree.items():
        if isinstance(below, dict) and below:
            yield from leaves(below, f"{path}{name}.")
        else:
            yield f"{path}{name}"


def page(chart: str) -> str:
    """Return the README's text with the table as values.yaml has it."""
    before, _, rest = (CHARTS / chart / "README.md").read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    rows = "".join(
        f"| `{value.path}` | `{json.dumps(value.default)}` | {value.note.replace('|', chr(92) + '|')} |\n"
        for value in described(chart)
    )
    return f"{before}{BEGIN}\n| value | default | |\n|---|---|---|\n{rows}{END}{after}"


def main() -> None:
    """Write all of it."""
    for chart in NAMES:
        text = page(chart)
        (CHARTS / chart / "README.md").write_text(text)
    for place, source in HELD.items():
        (CHARTS / place).parent.mkdir(exist_ok=True)
        (CHARTS / place).write_text(source.read_text())


if __name__ == "__main__":
    main()
