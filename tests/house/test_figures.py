"""The README's figures are those of docs/results.md, which alone has what was measured."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
RESULTS = (ROOT / "docs" / "results.md").read_text("utf-8")
NUMBER = re.compile(r"(?<![\w.,-])\d[\d,]*(?:\.\d+)?(?![\w-])")


def figures(section: str) -> list[str]:
    """The numbers in the cells of the README's table, without the first column."""
    rows = [line.split("|")[2:] for line in section.splitlines() if line.startswith("|")]
    return [number for row in rows[2:] for cell in row for number in NUMBER.findall(cell)]


def test_the_readme_takes_its_figures_from_the_page() -> None:
    section = (ROOT / "README.md").read_text("utf-8").partition("## Figures")[2].partition("\n## ")[0]
    numbers = figures(section)
    assert len(numbers) > 12
    measured = set(NUMBER.findall(RESULTS))
    assert [number for number in numbers if number not in measured] == []
    assert re.findall(r"\b2026-\d\d-\d\d\b", section) == ["2026-11-29"], "one date, which the page has"
    (commit,) = re.findall(r"commit ([0-9a-f]{8})", section)
    assert f"commit {commit}" in RESULTS


def test_a_figure_of_its_own_would_be_seen() -> None:
    assert figures("| | a | b |\n|---|---|---|\n| 1 kB | 32.85 | 1,334,921 |\n") == ["32.85", "1,334,921"]
    assert "32.85" not in NUMBER.findall(RESULTS)
